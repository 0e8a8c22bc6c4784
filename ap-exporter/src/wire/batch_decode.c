#include "wire/batch_decode.h"

#include "wire/wire.h"

#include <string.h>

/* A row's time is within this of t0 (schema/README.md, value_range). */
#define MAX_OFFSET_US (INT64_C(1) << 40)

const char *batch_reason_name(enum batch_reason r)
{
	static const char *const names[BATCH_N_REASONS] = {"ok", "oversized", "truncated", "malformed", "value_range",
	                                                   "unknown_revision", "key_mismatch", "time_range"};

	return (unsigned)r < BATCH_N_REASONS ? names[r] : "?";
}

static inline enum batch_reason reason_of(enum wire_result r)
{
	return r == WIRE_OK ? BATCH_OK : r == WIRE_TRUNCATED ? BATCH_TRUNCATED : BATCH_MALFORMED;
}

static inline enum batch_reason get_varint(const uint8_t **at, const uint8_t *end, uint64_t *out)
{
	return reason_of(wire_varint(at, end, out));
}

/* The next field of a message. At its end: BATCH_OK with number 0. */
static inline enum batch_reason next_field(const uint8_t **at, const uint8_t *end, struct wire_field *f)
{
	return reason_of(wire_next(at, end, f));
}

/* Number of varints of a packed field. */
static enum batch_reason count_varints(const uint8_t *at, size_t len, uint32_t *n)
{
	const uint8_t *const end = at + len;
	uint64_t ignored;
	enum batch_reason r;

	while (at < end) {
		if ((r = get_varint(&at, end, &ignored)))
			return r;
		++*n;
	}
	return BATCH_OK;
}

/* Unicode's table 3-7: no overlong forms, no surrogates. */
bool batch_is_utf8(const uint8_t *s, size_t n)
{
	size_t i = 0, k, more;

	while (i < n) {
		const uint8_t c = s[i++];
		uint8_t lo = 0x80, hi = 0xbf;

		if (c < 0x80)
			continue;
		if (c >= 0xc2 && c <= 0xdf) {
			more = 1;
		} else if ((c & 0xf0) == 0xe0) {
			more = 2;
			lo = c == 0xe0 ? 0xa0 : lo;
			hi = c == 0xed ? 0x9f : hi;
		} else if (c >= 0xf0 && c <= 0xf4) {
			more = 3;
			lo = c == 0xf0 ? 0x90 : lo;
			hi = c == 0xf4 ? 0x8f : hi;
		} else {
			return false;
		}
		if (more > n - i)
			return false;
		for (k = 0; k < more; k++, lo = 0x80, hi = 0xbf)
			if (s[i + k] < lo || s[i + k] > hi)
				return false;
		i += more;
	}
	return true;
}

/* --- packed values that may come in several pieces */

/* An empty span that does not point to NULL. */
static const struct batch_span *none(void)
{
	static const uint8_t nothing;
	static const struct batch_span span = {&nothing, 0};

	return &span;
}

static void values_begin(struct batch_values *v, struct batch_span message, uint32_t field)
{
	if (!message.at)
		message = *none();
	v->message = message.at;
	v->message_end = message.at + message.len;
	v->at = v->end = NULL;
	v->field = field;
}

/* The next piece of the field, whatever its wire type. */
static bool values_piece(struct batch_values *v)
{
	struct wire_field f;

	while (next_field(&v->message, v->message_end, &f) == BATCH_OK && f.number)
		if (f.number == v->field) {
			v->at = f.at;
			v->end = f.at + f.len;
			return true;
		}
	return false;
}

static bool values_next(struct batch_values *v, uint64_t *out)
{
	while (v->at == v->end)
		if (!values_piece(v))
			return false;
	return get_varint(&v->at, v->end, out) == BATCH_OK;
}

/* --- header */

static enum batch_reason check_header(struct batch_view *v)
{
	const uint8_t *at = v->header.at, *const end = at + v->header.len;
	uint64_t u[OAL_HEADER_CLOCK_ERROR_US + 1] = {0}; /* varint fields, by number */
	uint32_t missed_ticks = 0;
	enum batch_reason r;
	struct wire_field f;
	unsigned i;

	for (;;) {
		if ((r = next_field(&at, end, &f)))
			return r;
		switch (f.number) {
		case 0:
			goto done;
		case OAL_HEADER_AP_ID: case OAL_HEADER_SITE: case OAL_HEADER_NAMES:
			if (f.type != WIRE_BYTES || !batch_is_utf8(f.at, f.len))
				return BATCH_MALFORMED;
			if (f.number == OAL_HEADER_AP_ID)
				v->ap_id = (struct batch_span){f.at, f.len};
			else if (f.number == OAL_HEADER_SITE)
				v->site = (struct batch_span){f.at, f.len};
			else
				v->n_names++;
			break;
		case OAL_HEADER_BOOT_ID: case OAL_HEADER_FEATURE_HASH:
			if (f.type != WIRE_FIXED64)
				return BATCH_MALFORMED;
			*(f.number == OAL_HEADER_BOOT_ID ? &v->boot_id : &v->feature_hash) = wire_fixed64(f.at);
			break;
		case OAL_HEADER_MISSED_START: case OAL_HEADER_MISSED_TICKS:
			if (f.type != WIRE_BYTES)
				return BATCH_MALFORMED;
			if ((r = count_varints(f.at, f.len, f.number == OAL_HEADER_MISSED_START ? &v->n_missed : &missed_ticks)))
				return r;
			break;
		default:
			if (f.number > OAL_HEADER_CLOCK_ERROR_US)
				break; /* unknown: skipped */
			if (f.type != WIRE_VARINT)
				return BATCH_MALFORMED;
			if ((r = get_varint(&f.at, end, &u[f.number])))
				return r;
		}
	}
done:
	for (i = OAL_HEADER_TICK_US; i <= OAL_HEADER_CLOCK_ERROR_US; i++)
		if (u[i] > UINT32_MAX)
			return BATCH_VALUE_RANGE;
	v->seq = u[OAL_HEADER_SEQ];
	v->t0_us = u[OAL_HEADER_T0_US];
	v->tick_us = (uint32_t)u[OAL_HEADER_TICK_US];
	v->ticks = (uint32_t)u[OAL_HEADER_TICKS];
	v->schema_revision = (uint32_t)u[OAL_HEADER_SCHEMA_REVISION];
	v->ring_drops = (uint32_t)u[OAL_HEADER_RING_DROPS];
	v->rows_dropped = (uint32_t)u[OAL_HEADER_ROWS_DROPPED];
	v->dumps_interrupted = (uint32_t)u[OAL_HEADER_DUMPS_INTERRUPTED];
	v->tick_late_max_us = (uint32_t)u[OAL_HEADER_TICK_LATE_MAX_US];
	v->clock_state = (uint32_t)u[OAL_HEADER_CLOCK_STATE];
	v->clock_error_us = (uint32_t)u[OAL_HEADER_CLOCK_ERROR_US];
	if (v->t0_us >> 62 || v->seq >> 63)
		return BATCH_VALUE_RANGE;
	if (!v->tick_us || !v->ticks)
		return BATCH_MALFORMED;
	if ((uint64_t)v->ticks * v->tick_us >= MAX_OFFSET_US)
		return BATCH_VALUE_RANGE;
	if (v->n_missed != missed_ticks || !v->ap_id.len)
		return BATCH_MALFORMED;
	if (v->schema_revision < 1 || v->schema_revision > OAL_SETTING_SCHEMA_REVISION)
		return BATCH_UNKNOWN_REVISION;
	return BATCH_OK;
}

/* --- flow dictionary */

static enum batch_reason check_flows(struct batch_view *v)
{
	const uint8_t *at = v->flows.at, *const end = at + v->flows.len;
	uint32_t n[OAL_FLOWS_STATION_MAC + 1] = {0};
	struct batch_flow_cursor cursor;
	enum batch_reason r;
	struct wire_field f;
	unsigned i;
	uint32_t left;

	for (;;) {
		if ((r = next_field(&at, end, &f)))
			return r;
		if (!f.number)
			break;
		if (f.number > OAL_FLOWS_STATION_MAC)
			continue;
		if (f.type != WIRE_BYTES)
			return BATCH_MALFORMED;
		if (f.number == OAL_FLOWS_FLOW_ID) {
			if (f.len % 8)
				return BATCH_MALFORMED;
			n[f.number] += (uint32_t)(f.len / 8);
		} else if (f.number == OAL_FLOWS_CLIENT_ADDR || f.number == OAL_FLOWS_SERVER_ADDR) {
			if (f.len != 4 && f.len != 16)
				return BATCH_MALFORMED;
			n[f.number]++;
		} else if ((r = count_varints(f.at, f.len, &n[f.number]))) {
			return r;
		}
	}
	for (i = OAL_FLOWS_CLIENT_ADDR; i <= OAL_FLOWS_STATION_MAC; i++)
		if (n[i] != n[OAL_FLOWS_FLOW_ID])
			return BATCH_MALFORMED;
	v->n_flows = n[OAL_FLOWS_FLOW_ID];
	batch_flows(&cursor, v);
	for (left = v->n_flows; left; left--) {
		static const uint64_t limit[4] = {UINT16_MAX, UINT16_MAX, UINT8_MAX, (UINT64_C(1) << 48) - 1};
		uint64_t value;

		values_piece(&cursor.client);
		values_piece(&cursor.server);
		for (i = 0; i < 4; i++)
			if (!values_next(&cursor.numbers[i], &value) || value > limit[i])
				return BATCH_VALUE_RANGE;
		if (cursor.client.end - cursor.client.at != cursor.server.end - cursor.server.at)
			return BATCH_MALFORMED;
	}
	return BATCH_OK;
}

void batch_flows(struct batch_flow_cursor *c, const struct batch_view *v)
{
	unsigned i;

	c->view = v;
	c->left = v->n_flows;
	values_begin(&c->ids, v->flows, OAL_FLOWS_FLOW_ID);
	values_begin(&c->client, v->flows, OAL_FLOWS_CLIENT_ADDR);
	values_begin(&c->server, v->flows, OAL_FLOWS_SERVER_ADDR);
	for (i = 0; i < 4; i++)
		values_begin(&c->numbers[i], v->flows, OAL_FLOWS_CLIENT_PORT + i);
}

bool batch_next_flow(struct batch_flow_cursor *c, struct batch_flow *f)
{
	uint64_t n[4] = {0};
	unsigned i;

	if (!c->left)
		return false;
	c->left--;
	memset(f, 0, sizeof *f);
	while (c->ids.at == c->ids.end)
		if (!values_piece(&c->ids))
			return false;
	f->flow_id = wire_fixed64(c->ids.at);
	c->ids.at += 8;
	if (!values_piece(&c->client) || !values_piece(&c->server))
		return false;
	f->addr_len = (uint8_t)(c->client.end - c->client.at);
	memcpy(f->client_addr, c->client.at, f->addr_len);
	memcpy(f->server_addr, c->server.at, f->addr_len);
	for (i = 0; i < 4; i++)
		values_next(&c->numbers[i], &n[i]);
	f->client_port = (uint16_t)n[0];
	f->server_port = (uint16_t)n[1];
	f->protocol = (uint8_t)n[2];
	f->station_mac = n[3];
	return true;
}

/* --- tables */

struct table_spans {
	struct batch_span run_rows, run_absent, columns[64];
};

static void column_begin(struct batch_column_cursor *c, struct batch_span s)
{
	c->at = s.at;
	c->end = s.at + s.len;
	c->value = 0;
	c->zeros = 0;
}

/* Where a table's columns are. Columns left out get an empty span with `at` NULL. */
static enum batch_reason table_spans(struct table_spans *s, const struct oal_table *t, struct batch_span message)
{
	const uint8_t *at = message.at, *const end = at + message.len;
	enum batch_reason r;
	struct wire_field f;

	memset(s, 0, sizeof *s);
	for (;;) {
		struct batch_span *span = NULL;
		unsigned i;

		if ((r = next_field(&at, end, &f)) || !f.number)
			return r;
		if (f.number == OAL_RUN_ROWS)
			span = &s->run_rows;
		else if (f.number == OAL_RUN_ABSENT)
			span = &s->run_absent;
		for (i = 0; !span && i < t->n_columns; i++)
			if (t->columns[i].field == f.number)
				span = &s->columns[i];
		if (!span)
			continue;
		if (f.type != WIRE_BYTES || span->at)
			return BATCH_MALFORMED;
		*span = (struct batch_span){f.at, f.len};
	}
}

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

static enum batch_reason check_values(struct batch_span s, struct batch_span run_rows, uint32_t n_rows, struct extent *x)
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
	if (c->kind == OAL_TICK && (x.lo < 0 || x.hi >= (MAX_OFFSET_US + v->tick_us - 1) / v->tick_us))
		return BATCH_VALUE_RANGE;
	if (c->kind == OAL_TIME_US && (x.lo < 0 || x.hi >= MAX_OFFSET_US))
		return BATCH_VALUE_RANGE;
	return BATCH_OK;
}

static enum batch_reason check_table(struct batch_view *v, const struct oal_table *t)
{
	const uint8_t *at, *end;
	struct table_spans s;
	uint32_t n_optional = 0, n = 0;
	uint64_t rows = 0, u;
	bool too_many = false;
	enum batch_reason r;
	unsigned i;

	if ((r = table_spans(&s, t, v->tables[t->id])))
		return r;
	if (!s.run_rows.at)
		s.run_rows = *none();
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

static const struct oal_table *table_of(int topic, uint32_t field)
{
	unsigned i;

	for (i = 0; i < OAL_N_TABLES; i++)
		if (oal_tables[i].topic == topic && oal_tables[i].field == field)
			return &oal_tables[i];
	return NULL;
}

enum batch_reason batch_decode(struct batch_view *v, int topic, const uint8_t *bytes, size_t len, const char *key,
                               uint64_t now_us)
{
	const uint8_t *at = bytes, *const end = bytes + len;
	enum batch_reason r;
	struct wire_field f;
	unsigned i;

	memset(v, 0, sizeof *v);
	v->topic = topic;
	if (len > OAL_SETTING_MAX_BATCH_BYTES)
		return BATCH_OVERSIZED;
	for (;;) {
		struct batch_span *span = NULL;
		const struct oal_table *t;

		if ((r = next_field(&at, end, &f)))
			return r;
		if (!f.number)
			break;
		if (f.number == OAL_BATCH_HEADER)
			span = &v->header;
		else if (f.number == OAL_BATCH_FLOWS && topic == OAL_TOPIC_PACKETS)
			span = &v->flows;
		else if ((t = table_of(topic, f.number)))
			span = &v->tables[t->id];
		if (!span)
			continue;
		if (f.type != WIRE_BYTES || span->at)
			return BATCH_MALFORMED;
		*span = (struct batch_span){f.at, f.len};
	}
	if (!v->header.at)
		return BATCH_MALFORMED;
	if ((r = check_header(v)))
		return r;
	if (v->flows.at && (r = check_flows(v)))
		return r;
	for (i = 0; i < OAL_N_TABLES; i++)
		if (v->tables[i].at && (r = check_table(v, &oal_tables[i])))
			return r;
	if (key && (strlen(key) != v->ap_id.len || memcmp(key, v->ap_id.at, v->ap_id.len)))
		return BATCH_KEY_MISMATCH;
	if (now_us && (v->t0_us > now_us + OAL_SETTING_MAX_FUTURE_US || v->t0_us + OAL_SETTING_MAX_PAST_US < now_us))
		return BATCH_TIME_RANGE;
	return BATCH_OK;
}

/* --- reading rows of a checked batch */

void batch_rows(struct batch_cursor *c, const struct batch_view *v, enum oal_table_id id)
{
	struct table_spans s;
	unsigned i;

	memset(c, 0, sizeof *c);
	c->view = v;
	c->table = &oal_tables[id];
	c->rows_left = v->n_rows[id];
	if (!c->rows_left)
		return;
	table_spans(&s, c->table, v->tables[id]);
	column_begin(&c->run_rows, s.run_rows);
	column_begin(&c->run_absent, s.run_absent.at ? s.run_absent : *none());
	for (i = 0; i < c->table->n_columns; i++)
		column_begin(&c->columns[i], s.columns[i].at ? s.columns[i] : *none());
}

static void next_value(struct batch_column_cursor *c, bool first)
{
	uint64_t raw;

	if (first)
		c->value = 0;
	if (c->zeros) {
		c->zeros--;
		return;
	}
	if (c->at == c->end || get_varint(&c->at, c->end, &raw)) /* a column left out: all 0 */
		return;
	if (raw) {
		c->value += (uint64_t)wire_unzigzag(raw);
		return;
	}
	if (!get_varint(&c->at, c->end, &raw))
		c->zeros = raw >> 1;
}

static void store(uint8_t *p, uint8_t size, uint64_t v)
{
	switch (size) {
	case 1: *p = (uint8_t)v; break;
	case 2: *(uint16_t *)(void *)p = (uint16_t)v; break;
	case 4: *(uint32_t *)(void *)p = (uint32_t)v; break;
	default: *(uint64_t *)(void *)p = v; break;
	}
}

bool batch_next_row(struct batch_cursor *c, void *row)
{
	const struct oal_table *t = c->table;
	bool first = false;
	unsigned i;

	if (!c->rows_left)
		return false;
	c->rows_left--;
	if (!c->run_left) {
		uint64_t absent = 0;

		first = true;
		get_varint(&c->run_rows.at, c->run_rows.end, &c->run_left);
		if (c->run_absent.at < c->run_absent.end)
			get_varint(&c->run_absent.at, c->run_absent.end, &absent);
		c->absent = (uint32_t)absent;
	}
	c->run_left--;
	memset(row, 0, t->row_size);
	*(uint32_t *)row = c->absent;
	for (i = 0; i < t->n_columns; i++) {
		const struct oal_column *col = &t->columns[i];
		struct batch_column_cursor *cc = &c->columns[i];

		if (col->kind == OAL_KEY) {
			uint64_t raw;

			if (first && cc->at < cc->end && !get_varint(&cc->at, cc->end, &raw))
				cc->value = (uint64_t)wire_unzigzag(raw);
		} else {
			next_value(cc, first);
		}
		store((uint8_t *)row + col->offset, col->size, cc->value);
	}
	return true;
}

uint64_t batch_row_time_us(const struct batch_view *v, enum oal_table_id id, const void *row)
{
	const struct oal_table *t = &oal_tables[id];
	unsigned i;

	for (i = t->n_keys; i < t->n_columns; i++) {
		const uint8_t *p = (const uint8_t *)row + t->columns[i].offset;

		if (t->columns[i].kind == OAL_TICK)
			return v->t0_us + (uint64_t)*(const uint32_t *)(const void *)p * v->tick_us;
		if (t->columns[i].kind == OAL_TIME_US)
			return v->t0_us + (uint64_t)*(const int64_t *)(const void *)p;
	}
	return v->t0_us;
}

struct batch_span batch_name(const struct batch_view *v, uint32_t i)
{
	struct batch_values names;
	uint32_t k;

	values_begin(&names, v->header, OAL_HEADER_NAMES);
	for (k = 0; values_piece(&names); k++)
		if (k == i)
			return (struct batch_span){names.at, (size_t)(names.end - names.at)};
	return *none();
}

void batch_missed(struct batch_missed_cursor *c, const struct batch_view *v)
{
	c->left = v->n_missed;
	values_begin(&c->start, v->header, OAL_HEADER_MISSED_START);
	values_begin(&c->ticks, v->header, OAL_HEADER_MISSED_TICKS);
}

bool batch_next_missed(struct batch_missed_cursor *c, uint64_t *start, uint64_t *ticks)
{
	if (!c->left)
		return false;
	c->left--;
	return values_next(&c->start, start) && values_next(&c->ticks, ticks);
}
