/* test_golden.c: the contract's golden vectors (schema/golden/README.md): rows, bytes, refusals, features. */
#include "wire/batch_decode.h"
#include "wire/batch_encode.h"
#include "check.h"
#include "offline.h"

#include <stdarg.h>

#define GOLDEN "../schema/golden/"
enum { MAX_ROWS = 65536, NOW_IS_ANY = 0 };
static const uint64_t NOW_US = UINT64_C(1800000000000000);

/* One record of a golden container; false at the end. */
static bool next_record(const uint8_t **at, const uint8_t *end, int *topic, const uint8_t **bytes, size_t *len)
{
	if (end - *at < 5)
		return false;
	*topic = (*at)[0];
	*len = (size_t)((*at)[1] | (*at)[2] << 8 | (*at)[3] << 16 | (uint32_t)(*at)[4] << 24);
	*bytes = *at + 5;
	*at = *bytes + *len;
	return *at <= end;
}

/* Compares text piece by piece with the expected file; counts lines for messages. */
struct expected {
	const char *at, *end;
	unsigned line;
};

__attribute__((format(printf, 2, 3))) static bool expect(struct expected *e, const char *format, ...)
{
	char text[256];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text, sizeof text, format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= sizeof text || e->end - e->at < n || memcmp(e->at, text, (size_t)n)) {
		printf("# line %u: got '%s', want '%.40s'\n", e->line, text, e->at);
		return false;
	}
	for (; n; n--)
		e->line += *e->at++ == '\n';
	return true;
}

static int64_t value_of(const struct oal_column *c, const uint8_t *row)
{
	const void *p = row + c->offset;

	switch (c->type) {
	case OAL_T_U8: return *(const uint8_t *)p;
	case OAL_T_I8: return *(const int8_t *)p;
	case OAL_T_U16: case OAL_T_NAME: case OAL_T_FLOW: return *(const uint16_t *)p;
	case OAL_T_U32: return *(const uint32_t *)p;
	default: return *(const int64_t *)p;
	}
}

static bool same_flow(struct expected *e, const struct batch_flow *f)
{
	bool ok = expect(e, "flow %" PRIu64 " ", f->flow_id);
	unsigned i;

	for (i = 0; ok && i < f->addr_len; i++)
		ok = expect(e, "%02x", f->client_addr[i]);
	ok = ok && expect(e, " ");
	for (i = 0; ok && i < f->addr_len; i++)
		ok = expect(e, "%02x", f->server_addr[i]);
	return ok && expect(e, " %u %u %u %" PRIu64 "\n", f->client_port, f->server_port, f->protocol, f->station_mac);
}

static bool same_row(struct expected *e, const struct batch_view *v, const struct oal_table *t, const uint8_t *row)
{
	bool ok = expect(e, "%s %" PRIu64 " %u", t->name, batch_row_time_us(v, t->id, row),
	                 *(const uint32_t *)(const void *)row);
	unsigned i;

	for (i = 0; ok && i < t->n_columns; i++)
		if (t->columns[i].kind != OAL_TICK && t->columns[i].kind != OAL_TIME_US)
			ok = expect(e, " %" PRId64, value_of(&t->columns[i], row));
	return ok && expect(e, "\n");
}

static const char *text(struct batch_span s, char *buffer, size_t size)
{
	snprintf(buffer, size, "%.*s", s.len ? (int)s.len : 1, s.len ? (const char *)s.at : "-");
	return buffer;
}

static bool same_batch(struct expected *e, const struct batch_view *v)
{
	static _Alignas(8) uint8_t row[512];
	struct batch_flow_cursor flows;
	struct batch_flow f;
	char ap_id[64], site[64];
	uint32_t rows = 0;
	bool ok;
	unsigned i;

	for (i = 0; i < OAL_N_TABLES; i++)
		rows += v->n_rows[i];
	ok = expect(e, "batch %d %s %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %u %u %u\n", v->topic,
	            text(v->ap_id, ap_id, sizeof ap_id), text(v->site, site, sizeof site), v->boot_id, v->seq, v->t0_us,
	            v->tick_us, v->ticks, rows);
	for (batch_flows(&flows, v); ok && batch_next_flow(&flows, &f);)
		ok = same_flow(e, &f);
	for (i = 0; i < OAL_N_TABLES; i++) {
		struct batch_cursor c;

		for (batch_rows(&c, v, i); ok && batch_next_row(&c, row);)
			ok = same_row(e, v, &oal_tables[i], row);
	}
	return ok;
}

/* Decodes a batch to rows and encodes these again. */
static bool reencodes(const struct batch_view *v, const uint8_t *bytes, size_t len)
{
	static uint8_t out[OAL_SETTING_MAX_BATCH_BYTES];
	static char strings[300][64], ap_id[64], site[64];
	static const char *names[300];
	static uint32_t starts[256], ticks[256], order[MAX_ROWS], run_rows[MAX_ROWS];
	static struct batch_flow flow[256];
	struct batch_header h = {
		.ap_id = text(v->ap_id, ap_id, sizeof ap_id),
		.site = v->site.len ? text(v->site, site, sizeof site) : "", .boot_id = v->boot_id, .seq = v->seq,
		.t0_us = v->t0_us, .tick_us = v->tick_us, .ticks = v->ticks, .schema_revision = v->schema_revision,
		.missed_start = starts, .missed_ticks = ticks, .ring_drops = v->ring_drops,
		.rows_dropped = v->rows_dropped, .dumps_interrupted = v->dumps_interrupted,
		.tick_late_max_us = v->tick_late_max_us, .clock_state = v->clock_state,
		.clock_error_us = v->clock_error_us, .feature_hash = v->feature_hash, .names = names,
	};
	struct batch_missed_cursor missed;
	struct batch_flow_cursor flows;
	struct batch_writer w;
	uint64_t a, b;
	unsigned n = 0, i;

	for (; h.n_names < v->n_names; h.n_names++) {
		struct batch_span s = batch_name(v, h.n_names);

		snprintf(strings[h.n_names], 64, "%.*s", (int)s.len, (const char *)s.at);
		names[h.n_names] = strings[h.n_names];
	}
	for (batch_missed(&missed, v); batch_next_missed(&missed, &a, &b); h.n_missed++) {
		starts[h.n_missed] = (uint32_t)a;
		ticks[h.n_missed] = (uint32_t)b;
	}
	for (batch_flows(&flows, v); batch_next_flow(&flows, &flow[n]); n++)
		;
	batch_begin(&w, out, sizeof out);
	if (!batch_write_header(&w, &h) || !batch_write_flows(&w, flow, n))
		return false;
	for (i = 0; i < OAL_N_TABLES; i++) {
		const struct oal_table *t = &oal_tables[i];
		struct batch_rows r = {.table = t, .order = order, .run_rows = run_rows};
		uint8_t *rows = malloc((size_t)t->row_size * (v->n_rows[i] + 1));
		struct batch_cursor c;
		bool ok;

		for (batch_rows(&c, v, i); rows && batch_next_row(&c, rows + (size_t)r.n_rows * t->row_size);
		     r.n_rows++)
			order[r.n_rows] = r.n_rows * t->row_size;
		r.rows = rows;
		r.n_runs = batch_find_runs(t, rows, order, r.n_rows, run_rows, MAX_ROWS);
		ok = rows && batch_write_rows(&w, &r);
		free(rows);
		if (!ok)
			return false;
	}
	return batch_len(&w) == len && !memcmp(out, bytes, len);
}

static void check_rows(const char *bin, const char *txt)
{
	size_t bin_len, txt_len, len;
	uint8_t *data = check_file(bin, &bin_len), *want = check_file(txt, &txt_len);
	struct expected e = {(const char *)want, (const char *)want + txt_len, 1};
	const uint8_t *at = data, *bytes;
	struct batch_view v;
	unsigned records = 0;
	int topic;

	while (next_record(&at, data + bin_len, &topic, &bytes, &len)) {
		CHECK_EQ(batch_decode(&v, topic, bytes, len, "ap-1", NOW_IS_ANY), BATCH_OK);
		if (e.at < e.end)
			CHECK(same_batch(&e, &v));
		CHECK(reencodes(&v, bytes, len));
		records++;
		if (check_errors)
			break;
	}
	CHECK(e.at == e.end);
	CHECK(records > 0);
	free(data);
	free(want);
}

static void check_refused(void)
{
	size_t bin_len, txt_len, len;
	uint8_t *data = check_file(GOLDEN "refused.bin", &bin_len), *want = check_file(GOLDEN "refused.txt", &txt_len);
	const char *line = (const char *)want, *const end = line + txt_len;
	const uint8_t *at = data, *bytes;
	struct batch_view v;
	unsigned records = 0;
	int topic;

	for (; next_record(&at, data + bin_len, &topic, &bytes, &len); records++) {
		/* An exact copy on the heap, so that reading past the end is seen by AddressSanitizer. */
		uint8_t *copy = malloc(len ? len : 1);
		const char *reason;
		size_t n;

		memcpy(copy, bytes, len);
		reason = batch_reason_name(batch_decode(&v, topic, copy, len, "ap-1", NOW_US));
		n = strlen(reason);
		free(copy);
		if ((size_t)(end - line) < n || memcmp(line, reason, n) || line[n] != '\n')
			printf("# record %u is refused as %s, not %.*s\n", records, reason, (int)strcspn(line, "\n"),
			       line),
				check_errors++;
		line += strcspn(line, "\n") + 1;
	}
	CHECK(line == end);
	CHECK(records > 10);
	free(data);
	free(want);
}

static void expect_instant(void *ctx, uint64_t t_us, const int64_t *x, unsigned n)
{
	struct expected *e = ctx;
	bool ok = !check_errors && expect(e, "%" PRIu64, t_us);
	unsigned i;

	for (i = 0; ok && i < n; i++)
		ok = x[i] == OAL_MISSING ? expect(e, " -") : expect(e, " %" PRId64, x[i]);
	CHECK(ok && expect(e, "\n"));
}

static void check_features(const struct oal_feature_program *p, const char *txt)
{
	size_t bin_len, txt_len, len;
	uint8_t *data = check_file(GOLDEN "features.bin", &bin_len), *want = check_file(txt, &txt_len);
	struct expected e = {(const char *)want, (const char *)want + txt_len, 1};
	struct offline *o = offline_new(p, expect_instant, &e);
	const uint8_t *at = data, *bytes;
	struct batch_view v, group[2];
	unsigned n = 0;
	int topic;

	while (next_record(&at, data + bin_len, &topic, &bytes, &len)) {
		CHECK_EQ(batch_decode(&v, topic, bytes, len, NULL, NOW_IS_ANY), BATCH_OK);
		if (n && v.t0_us != group[0].t0_us) {
			offline_feed(o, group, n);
			n = 0;
		}
		group[n++] = v;
	}
	offline_feed(o, group, n);
	CHECK(e.line > 50);
	CHECK(e.at == e.end);
	offline_free(o);
	free(data);
	free(want);
}

static void check_program_file(const char *path, int64_t (*words)[OAL_N_WORDS], struct oal_feature_program *p)
{
	size_t len;
	uint8_t *bytes = check_file(path, &len);

	CHECK_EQ(feature_program_load(p, words, bytes, len), 0);
	CHECK(feature_program_load(p, words, bytes, len - 1) < 0);
	CHECK_EQ(feature_program_load(p, words, bytes, len), 0);
	free(bytes);
}

int main(void)
{
	static int64_t words[OAL_MAX_FEATURES][OAL_N_WORDS];
	struct oal_feature_program p;

	test("golden batches with extreme values decode to the contract's rows and encode to the same bytes");
	check_rows(GOLDEN "extremes.bin", GOLDEN "extremes.rows.txt");
	test("golden batches of a sequence decode to the contract's rows and encode to the same bytes");
	check_rows(GOLDEN "features.bin", GOLDEN "features.rows.txt");
	test("golden batches with the table action decode to the contract's rows and encode to the same bytes");
	check_rows(GOLDEN "actions.bin", GOLDEN "actions.rows.txt");
	test("golden batches with counter_refresh decode to the contract's rows and encode to the same bytes");
	check_rows(GOLDEN "refresh.bin", GOLDEN "refresh.rows.txt");
	test("golden batches with senders decode to the contract's rows and encode to the same bytes");
	check_rows(GOLDEN "senders.bin", GOLDEN "senders.rows.txt");
	check_rows(GOLDEN "sessions.bin", GOLDEN "sessions.rows.txt");
	test("golden records that must be refused are, with the contract's reason");
	check_refused();
	test("the congestion program's file is the compiled-in program, with the same hash");
	check_program_file("../schema/generated/features/congestion.oalf", words, &p);
	CHECK_EQ(p.n, oal_feature_congestion.n);
	CHECK(!memcmp(words, oal_feature_congestion.words, p.n * sizeof *words));
	CHECK(!memcmp(p.hash, oal_feature_congestion.hash, sizeof p.hash));
	test("features of the congestion program are the golden ones");
	check_features(&oal_feature_congestion, GOLDEN "features.congestion.txt");
	test("every operator and group gives the golden values");
	check_program_file(GOLDEN "operators.oalf", words, &p);
	check_features(&p, GOLDEN "features.operators.txt");
	return done();
}
