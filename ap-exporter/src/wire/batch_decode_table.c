/* What is asked of a table before its rows may be read. */
#include "wire/batch_fields.h"

static void range_of(uint8_t type, int64_t *lo, int64_t *hi)
{
	*lo = 0;
	switch (type) {
	case OAL_T_U8: *hi = UINT8_MAX; break;
	case OAL_T_U16: case OAL_T_NAME: case OAL_T_FLOW: *hi = UINT16_MAX; break;
	case OAL_T_U32: *hi = UINT32_MAX; break;
	case OAL_T_MAC: *hi = (INT64_C(1) << 48) - 1; break;
	case OAL_T_I8: *lo = INT8_MIN; *hi = INT8_MAX; break;
	case OAL_T_I16: *lo = INT16_MIN; *hi = INT16_MAX; break;
	case OAL_T_I32: *lo = INT32_MIN; *hi = INT32_MAX; break;
	case OAL_T_I64: *lo = INT64_MIN; *hi = INT64_MAX; break;
	default: *hi = INT64_MAX; break; /* U64: 63 bits are usable */
	}
}

/* Smallest and largest value of a column, found while its structure is checked. */
struct extent {
	int64_t lo, hi;
};

static void extend(struct extent *x, int64_t v)
{
	if (v < x->lo)
		x->lo = v;
	if (v > x->hi)
		x->hi = v;
}

static enum batch_reason check_keys(struct batch_span s, uint32_t n_runs, struct extent *x)
{
	const uint8_t *at = s.at, *const end = at + s.len;
	uint32_t n = 0;
	enum batch_reason r;
	uint64_t v;

	for (; at < end; n++) {
		if ((r = get_varint(&at, end, &v)))
			return r;
		extend(x, wire_unzigzag(v));
	}
	return n == n_runs ? BATCH_OK : BATCH_MALFORMED;
}

static enum batch_reason check_values(struct batch_span s, struct batch_span run_rows, uint32_t n_rows,
                                      struct extent *x)
{
	const uint8_t *at = s.at, *const end = at + s.len;
	const uint8_t *run = run_rows.at, *const run_end = run + run_rows.len;
	uint64_t left_in_run = 0, n = 0;
	int64_t value = 0;
	enum batch_reason r;

	while (at < end) {
		uint64_t raw, repeat = 1;
		int64_t delta;

		if ((r = get_varint(&at, end, &raw)))
			return r;
		delta = wire_unzigzag(raw);
		if (!delta) {
			if (at == end)
				return BATCH_MALFORMED;
			if ((r = get_varint(&at, end, &raw)))
				return r;
			if (raw & 1 || raw >> 1 >= n_rows)
				return BATCH_MALFORMED;
			repeat = (raw >> 1) + 1;
		}
		if (repeat > n_rows - n)
			return BATCH_MALFORMED;
		n += repeat;
		/* Zeros may extend over several runs; the first row of each has the value itself, which is 0 then. */
		while (repeat) {
			uint64_t step;

			if (!left_in_run) {
				get_varint(&run, run_end, &left_in_run);
				value = 0;
			}
			if (__builtin_add_overflow(value, delta, &value))
				return BATCH_VALUE_RANGE;
			extend(x, value);
			step = delta ? 1 : left_in_run < repeat ? left_in_run : repeat;
			left_in_run -= step;
			repeat -= step;
		}
	}
	return n == n_rows ? BATCH_OK : BATCH_MALFORMED;
}

static enum batch_reason check_column(const struct batch_view *v, const struct oal_column *c, struct batch_span s,
                                      const struct table_spans *spans, uint32_t n_rows, uint32_t n_runs)
{
	struct extent x = {INT64_MAX, INT64_MIN};
	enum batch_reason r = BATCH_OK;
	int64_t lo, hi;

	if (!s.at)
		x = (struct extent){n_rows ? 0 : INT64_MAX, n_rows ? 0 : INT64_MIN};
	else if (c->kind == OAL_KEY)
		r = check_keys(s, n_runs, &x);
	else
		r = check_values(s, spans->run_rows, n_rows, &x);
	if (r || x.lo > x.hi)
		return r;
	range_of(c->type, &lo, &hi);
	if (x.lo < lo || x.hi > hi)
		return BATCH_VALUE_RANGE;
	if (c->type == OAL_T_NAME && x.hi >= v->n_names)
		return BATCH_MALFORMED;
	if (c->type == OAL_T_FLOW && x.hi >= v->n_flows)
		return BATCH_MALFORMED;
	if (c->kind == OAL_TICK && (x.lo < 0 || x.hi >= (BATCH_MAX_OFFSET_US + v->tick_us - 1) / v->tick_us))
		return BATCH_VALUE_RANGE;
	if (c->kind == OAL_TIME_US && (x.lo < 0 || x.hi >= BATCH_MAX_OFFSET_US))
		return BATCH_VALUE_RANGE;
	return BATCH_OK;
}

enum batch_reason batch_check_table(struct batch_view *v, const struct oal_table *t)
{
	const uint8_t *at, *end;
	struct table_spans s;
	uint32_t n_optional = 0, n = 0;
	uint64_t rows = 0, u;
	bool too_many = false;
	enum batch_reason r;
	unsigned i;

	if ((r = batch_table_spans(&s, t, v->tables[t->id])))
		return r;
	if (!s.run_rows.at)
		s.run_rows = batch_empty_span();
	for (at = s.run_rows.at, end = at + s.run_rows.len; at < end; n++) {
		if ((r = get_varint(&at, end, &u)))
			return r;
		if (!u || u > t->max_rows || (rows += u) > t->max_rows)
			too_many = true, rows = 0;
	}
	if (too_many || n > t->max_runs)
		return BATCH_MALFORMED;
	for (i = 0; i < t->n_columns; i++)
		n_optional += t->columns[i].optional >= 0;
	v->n_runs[t->id] = n;
	v->n_rows[t->id] = (uint32_t)rows;
	if (s.run_absent.at) {
		uint32_t m = 0;
		bool bad = false;

		for (at = s.run_absent.at, end = at + s.run_absent.len; at < end; m++) {
			if ((r = get_varint(&at, end, &u)))
				return r;
			bad |= u >> n_optional != 0;
		}
		if (bad || m != n)
			return BATCH_MALFORMED;
	}
	for (i = 0; i < t->n_columns; i++)
		if ((r = check_column(v, &t->columns[i], s.columns[i], &s, (uint32_t)rows, n)))
			return r;
	return BATCH_OK;
}
