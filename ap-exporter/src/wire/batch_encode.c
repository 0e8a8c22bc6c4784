#include "wire/batch_encode.h"

#include "wire/row_value.h"

#include <string.h>

/* Longest that a value can get: ten bytes, and two for a pending run of zeros' 0 and its count's ten. */
enum { MAX_VARINT = 10, MAX_VALUE = 2 * MAX_VARINT + 1 };

void batch_begin(struct batch_writer *w, uint8_t *buffer, size_t size)
{
	w->start = w->at = buffer;
	w->end = buffer + size;
}

size_t batch_len(const struct batch_writer *w)
{
	return (size_t)(w->at - w->start);
}

static inline uint8_t *write_varint(uint8_t *p, uint64_t v)
{
	while (v > 0x7f) {
		*p++ = (uint8_t)v | 0x80;
		v >>= 7;
	}
	*p++ = (uint8_t)v;
	return p;
}

/* The same for a column's differences, most of which take one or two bytes. */
static inline uint8_t *write_difference(uint8_t *p, uint64_t v)
{
	if (v < 0x80) {
		*p++ = (uint8_t)v;
		return p;
	}
	if (v < 0x4000) {
		p[0] = (uint8_t)v | 0x80;
		p[1] = (uint8_t)(v >> 7);
		return p + 2;
	}
	return write_varint(p, v);
}

static inline uint64_t zigzag(uint64_t v)
{
	return v << 1 ^ (0 - (v >> 63));
}

static inline bool fits(const struct batch_writer *w, size_t n)
{
	return (size_t)(w->end - w->at) >= n;
}

/* A length-delimited field whose length is known only at its end. Two bytes are kept for the length, since most columns
 * take fewer than 16 KB; close_field moves the content if the length takes another number of bytes. */
static bool open_field(struct batch_writer *w, uint32_t field, uint8_t **content)
{
	if (!fits(w, 8))
		return false;
	w->at = write_varint(w->at, field << 3 | 2);
	w->at += 2;
	*content = w->at;
	return true;
}

static bool close_field(struct batch_writer *w, uint8_t *content)
{
	const size_t len = (size_t)(w->at - content);
	const size_t need = len < 0x80 ? 1 : len < 0x4000 ? 2 : len < 0x200000 ? 3 : 4;

	if (need > 2 && !fits(w, need - 2))
		return false;
	if (need != 2)
		memmove(content + need - 2, content, len);
	write_varint(content - 2, len);
	w->at = content - 2 + need + len;
	return true;
}

static bool write_bytes(struct batch_writer *w, uint32_t field, const void *data, size_t len)
{
	if (!fits(w, len + 2 * MAX_VARINT))
		return false;
	w->at = write_varint(write_varint(w->at, field << 3 | 2), len);
	memcpy(w->at, data, len);
	w->at += len;
	return true;
}

static bool write_string(struct batch_writer *w, uint32_t field, const char *s)
{
	return !s || !*s || write_bytes(w, field, s, strlen(s));
}

static bool write_uint(struct batch_writer *w, uint32_t field, uint64_t v)
{
	if (!v)
		return true;
	if (!fits(w, 2 * MAX_VARINT))
		return false;
	w->at = write_varint(write_varint(w->at, field << 3), v);
	return true;
}

static uint8_t *store_fixed64(uint8_t *p, uint64_t v)
{
	int i;

	for (i = 0; i < 8; i++)
		*p++ = (uint8_t)(v >> 8 * i);
	return p;
}

static bool write_fixed64(struct batch_writer *w, uint32_t field, uint64_t v)
{
	if (!v)
		return true;
	if (!fits(w, MAX_VARINT + 8))
		return false;
	w->at = store_fixed64(write_varint(w->at, field << 3 | 1), v);
	return true;
}

static bool write_packed(struct batch_writer *w, uint32_t field, const uint32_t *v, unsigned n)
{
	uint8_t *content;
	unsigned i;

	if (!n)
		return true;
	if (!open_field(w, field, &content))
		return false;
	for (i = 0; i < n; i++) {
		if (!fits(w, MAX_VARINT))
			return false;
		w->at = write_varint(w->at, v[i]);
	}
	return close_field(w, content);
}

static bool header_content(struct batch_writer *w, const struct batch_header *h)
{
	unsigned i;
	bool ok = write_string(w, OAL_HEADER_AP_ID, h->ap_id) && write_string(w, OAL_HEADER_SITE, h->site) &&
	          write_fixed64(w, OAL_HEADER_BOOT_ID, h->boot_id) && write_uint(w, OAL_HEADER_SEQ, h->seq) &&
	          write_uint(w, OAL_HEADER_T0_US, h->t0_us) && write_uint(w, OAL_HEADER_TICK_US, h->tick_us) &&
	          write_uint(w, OAL_HEADER_TICKS, h->ticks) &&
	          write_uint(w, OAL_HEADER_SCHEMA_REVISION, h->schema_revision) &&
	          write_packed(w, OAL_HEADER_MISSED_START, h->missed_start, h->n_missed) &&
	          write_packed(w, OAL_HEADER_MISSED_TICKS, h->missed_ticks, h->n_missed) &&
	          write_uint(w, OAL_HEADER_RING_DROPS, h->ring_drops) &&
	          write_uint(w, OAL_HEADER_ROWS_DROPPED, h->rows_dropped) &&
	          write_uint(w, OAL_HEADER_DUMPS_INTERRUPTED, h->dumps_interrupted) &&
	          write_uint(w, OAL_HEADER_TICK_LATE_MAX_US, h->tick_late_max_us) &&
	          write_uint(w, OAL_HEADER_CLOCK_STATE, h->clock_state) &&
	          write_uint(w, OAL_HEADER_CLOCK_ERROR_US, h->clock_error_us);

	/* An empty name is written too: the position counts. */
	for (i = 0; ok && i < h->n_names; i++)
		ok = write_bytes(w, OAL_HEADER_NAMES, h->names[i], strlen(h->names[i]));
	return ok && write_fixed64(w, OAL_HEADER_FEATURE_HASH, h->feature_hash);
}

bool batch_write_header(struct batch_writer *w, const struct batch_header *h)
{
	uint8_t *before = w->at, *content;

	if (open_field(w, OAL_BATCH_HEADER, &content) && header_content(w, h) && close_field(w, content))
		return true;
	w->at = before;
	return false;
}

static bool flows_content(struct batch_writer *w, const struct batch_flow *f, unsigned n)
{
	uint8_t *content;
	unsigned i, column;
	bool ok = open_field(w, OAL_FLOWS_FLOW_ID, &content) && fits(w, 8 * (size_t)n + 4);

	if (!ok)
		return false;
	for (i = 0; i < n; i++)
		w->at = store_fixed64(w->at, f[i].flow_id);
	ok = close_field(w, content);
	for (i = 0; ok && i < n; i++)
		ok = write_bytes(w, OAL_FLOWS_CLIENT_ADDR, f[i].client_addr, f[i].addr_len);
	for (i = 0; ok && i < n; i++)
		ok = write_bytes(w, OAL_FLOWS_SERVER_ADDR, f[i].server_addr, f[i].addr_len);
	for (column = OAL_FLOWS_CLIENT_PORT; ok && column <= OAL_FLOWS_STATION_MAC; column++) {
		ok = open_field(w, column, &content) && fits(w, (size_t)n * MAX_VARINT);
		for (i = 0; ok && i < n; i++)
			w->at = write_varint(w->at, column == OAL_FLOWS_CLIENT_PORT   ? f[i].client_port
			                          : column == OAL_FLOWS_SERVER_PORT ? f[i].server_port
			                          : column == OAL_FLOWS_PROTOCOL    ? f[i].protocol
			                                                            : f[i].station_mac);
		ok = ok && close_field(w, content);
	}
	return ok;
}

bool batch_write_flows(struct batch_writer *w, const struct batch_flow *f, unsigned n)
{
	uint8_t *before = w->at, *content;

	if (!n || (open_field(w, OAL_BATCH_FLOWS, &content) && flows_content(w, f, n) && close_field(w, content)))
		return true;
	w->at = before;
	return false;
}

/* One value per run. */
static bool key_column(struct batch_writer *w, const struct batch_rows *t, const struct oal_column *c)
{
	uint8_t *before = w->at, *content;
	uint32_t r, i = 0;
	uint64_t any = 0;

	if (!open_field(w, c->field, &content))
		return false;
	for (r = 0; r < t->n_runs; i += t->run_rows[r++]) {
		uint64_t v = (uint64_t)row_load(t->rows + t->order[i] + c->offset, c->type);

		if (c->type == OAL_T_FLOW && t->flow_index)
			v = t->flow_index[v];
		any |= v;
		if (!fits(w, MAX_VARINT))
			return false;
		w->at = write_varint(w->at, zigzag(v));
	}
	if (any)
		return close_field(w, content);
	w->at = before;
	return true;
}

/* The loop of a column, once per type so that the load is a single instruction: this is where an encode spends its
 * time. Built for size there is one loop, which looks at the type for every value. */
#ifdef __OPTIMIZE_SIZE__
#define PER_TYPE static
#else
#define PER_TYPE __attribute__((always_inline)) static inline
#endif
PER_TYPE bool value_column(struct batch_writer *w, const struct batch_rows *t, const struct oal_column *c, uint8_t type)
{
	const uint8_t *const rows = t->rows + c->offset;
	const uint32_t *order = t->order;
	uint8_t *before = w->at, *content, *p;
	uint64_t zeros = 0;
	uint32_t r;

	if (!open_field(w, c->field, &content))
		return false;
	p = w->at;
	for (r = 0; r < t->n_runs; r++) {
		const uint32_t *const end = order + t->run_rows[r];
		uint64_t last = 0;

		for (; order < end; order++) {
			const uint64_t v = (uint64_t)row_load(rows + *order, type);

			if (v == last) {
				zeros++;
				continue;
			}
			if ((size_t)(w->end - p) < MAX_VALUE)
				return false;
			if (zeros) {
				*p++ = 0;
				p = write_difference(p, 2 * (zeros - 1));
				zeros = 0;
			}
			p = write_difference(p, zigzag(v - last));
			last = v;
		}
	}
	if (p == w->at) { /* nothing but zeros */
		w->at = before;
		return true;
	}
	if (zeros) {
		if ((size_t)(w->end - p) < MAX_VALUE)
			return false;
		*p++ = 0;
		p = write_varint(p, zigzag(zeros - 1));
	}
	w->at = p;
	return close_field(w, content);
}

static bool column(struct batch_writer *w, const struct batch_rows *t, const struct oal_column *c)
{
	if (c->kind == OAL_KEY)
		return key_column(w, t, c);
	switch (c->type) {
	case OAL_T_U8: return value_column(w, t, c, OAL_T_U8);
	case OAL_T_I8: return value_column(w, t, c, OAL_T_I8);
	case OAL_T_U16: case OAL_T_NAME: case OAL_T_FLOW: return value_column(w, t, c, OAL_T_U16);
	case OAL_T_I16: return value_column(w, t, c, OAL_T_I16);
	case OAL_T_U32: return value_column(w, t, c, OAL_T_U32);
	case OAL_T_I32: return value_column(w, t, c, OAL_T_I32);
	default: return value_column(w, t, c, OAL_T_U64);
	}
}

static uint32_t absent_of(const struct batch_rows *t, uint32_t i)
{
	return *(const uint32_t *)(const void *)(t->rows + t->order[i]); /* `absent` is the first member of every row */
}

static bool write_absent(struct batch_writer *w, const struct batch_rows *t)
{
	uint8_t *before = w->at, *content;
	uint32_t r, i = 0, any = 0;

	if (!open_field(w, OAL_RUN_ABSENT, &content))
		return false;
	for (r = 0; r < t->n_runs; i += t->run_rows[r++]) {
		any |= absent_of(t, i);
		if (!fits(w, MAX_VARINT))
			return false;
		w->at = write_varint(w->at, absent_of(t, i));
	}
	if (any)
		return close_field(w, content);
	w->at = before;
	return true;
}

static bool rows_content(struct batch_writer *w, const struct batch_rows *t)
{
	const struct oal_column *c = t->table->columns, *const end = c + t->table->n_columns;

	if (!write_packed(w, OAL_RUN_ROWS, t->run_rows, t->n_runs) || !write_absent(w, t))
		return false;
	while (c < end && column(w, t, c))
		c++;
	return c == end;
}

bool batch_write_rows(struct batch_writer *w, const struct batch_rows *t)
{
	uint8_t *before = w->at, *content;

	if (!t->n_rows || (open_field(w, t->table->field, &content) && rows_content(w, t) && close_field(w, content)))
		return true;
	w->at = before;
	return false;
}

static bool same_run(const struct oal_table *t, const uint8_t *a, const uint8_t *b)
{
	unsigned i;

	if (memcmp(a, b, 4))
		return false;
	for (i = 0; i < t->n_keys; i++)
		if (memcmp(a + t->columns[i].offset, b + t->columns[i].offset, t->columns[i].size))
			return false;
	return true;
}

uint32_t batch_find_runs(const struct oal_table *t, const uint8_t *rows, const uint32_t *order, uint32_t n_rows,
                         uint32_t *run_rows, uint32_t max_runs)
{
	uint32_t i, n = 0;

	for (i = 0; i < n_rows; i++) {
		if (!i || !same_run(t, rows + order[i - 1], rows + order[i])) {
			if (n == max_runs)
				return 0;
			run_rows[n++] = 0;
		}
		run_rows[n - 1]++;
	}
	return n;
}

static uint64_t fnv1a(uint64_t h, const uint8_t *p, size_t n)
{
	while (n--)
		h = (h ^ *p++) * UINT64_C(0x100000001b3);
	return h;
}

uint64_t batch_flow_id(const struct batch_flow *f)
{
	const uint8_t tail[5] = {(uint8_t)(f->client_port >> 8), (uint8_t)f->client_port,
	                         (uint8_t)(f->server_port >> 8), (uint8_t)f->server_port, f->protocol};
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	h = fnv1a(h, f->client_addr, f->addr_len);
	h = fnv1a(h, f->server_addr, f->addr_len);
	return fnv1a(h, tail, sizeof tail);
}
