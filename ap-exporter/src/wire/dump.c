#include "wire/dump.h"

#include "base/version.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "wire/batch_decode.h"
#include "wire/capture_file.h"
#include "wire/row_value.h"

enum { MAX_ROW = 512 };

/* --- the records of a file of any of the three kinds */

typedef int (*record_fn)(void *ctx, const struct capture_record *);

/* Is this whole file a container? */
static bool is_container(const uint8_t *b, size_t len)
{
	size_t at = 0;

	while (at + 5 <= len) {
		const size_t n = b[at + 1] | (size_t)b[at + 2] << 8 | (size_t)b[at + 3] << 16 | (size_t)b[at + 4] << 24;

		if (b[at] >= OAL_N_TOPICS || n > len - at - 5)
			return false;
		at += 5 + n;
	}
	return at == len && len;
}

static int each_contained(const uint8_t *b, size_t len, record_fn fn, void *ctx)
{
	size_t at = 0;
	int r = 0;

	while (!r && at + 5 <= len) {
		const struct capture_record record = {
			b[at], b + at + 5,
			b[at + 1] | (size_t)b[at + 2] << 8 | (size_t)b[at + 3] << 16 | (size_t)b[at + 4] << 24, 0};

		r = fn(ctx, &record);
		at += 5 + record.len;
	}
	return r;
}

/* A batch alone does not say its topic: it is the one whose tables it has. */
static int guess_topic(const uint8_t *b, size_t len)
{
	uint32_t best_rows = 0;
	int topic, best = OAL_TOPIC_SAMPLES;

	for (topic = 0; topic < OAL_N_TOPICS; topic++) {
		struct batch_view v;
		uint32_t rows = 1;
		unsigned t;

		if (batch_decode(&v, topic, b, len, NULL, 0))
			continue;
		for (t = 0; t < OAL_N_TABLES; t++)
			rows += v.n_rows[t];
		if (rows > best_rows) {
			best_rows = rows;
			best = topic;
		}
	}
	return best;
}

static int each_record(const char *path, struct capture_reader *reader, record_fn fn, void *ctx)
{
	uint8_t *bytes;
	size_t len;
	int r = capture_load(path, &bytes, &len);

	if (r) {
		fprintf(stderr, OAL_PROGRAM ": cannot read %s: %s\n", path, strerror(-r));
		return r;
	}
	memset(reader, 0, sizeof *reader);
	if (!capture_open(reader, bytes, len)) {
		struct capture_record record;

		while (!r && capture_next(reader, &record))
			r = fn(ctx, &record);
	} else if (is_container(bytes, len)) {
		r = each_contained(bytes, len, fn, ctx);
	} else {
		const struct capture_record record = {guess_topic(bytes, len), bytes, len, 0};

		r = fn(ctx, &record);
	}
	free(bytes);
	return r;
}

/* --- rows */

static void print_text(FILE *out, struct batch_span s)
{
	size_t i;

	putc('"', out);
	for (i = 0; i < s.len; i++)
		if (s.at[i] < 0x20 || s.at[i] == '"' || s.at[i] == '\\')
			fprintf(out, "\\u%04x", s.at[i]);
		else
			putc(s.at[i], out);
	putc('"', out);
}

static void print_mac(FILE *out, uint64_t m)
{
	fprintf(out, "\"%02x:%02x:%02x:%02x:%02x:%02x\"", (unsigned)(m >> 40 & 255), (unsigned)(m >> 32 & 255),
	        (unsigned)(m >> 24 & 255), (unsigned)(m >> 16 & 255), (unsigned)(m >> 8 & 255), (unsigned)(m & 255));
}

static void print_flow(FILE *out, const struct batch_flow *f)
{
	char client[INET6_ADDRSTRLEN] = "?", server[INET6_ADDRSTRLEN] = "?";
	const int family = f->addr_len == 4 ? AF_INET : AF_INET6;

	inet_ntop(family, f->client_addr, client, sizeof client);
	inet_ntop(family, f->server_addr, server, sizeof server);
	/* 64 bits do not survive as a number in every JSON reader. */
	fprintf(out,
	        "{\"id\":\"%" PRIu64
	        "\",\"client\":\"%s\",\"client_port\":%u,\"server\":\"%s\",\"server_port\":%u,\"station\":",
	        f->flow_id, client, f->client_port, server, f->server_port);
	print_mac(out, f->station_mac);
	putc('}', out);
}

static void print_row(FILE *out, const struct batch_view *v, const struct oal_table *t, const uint8_t *row,
                    const struct batch_flow *flows)
{
	const uint32_t absent = *(const uint32_t *)(const void *)row;
	unsigned i;

	fprintf(out, "{\"table\":\"%s\",\"ap_id\":", t->name);
	print_text(out, v->ap_id);
	fprintf(out, ",\"boot_id\":\"%" PRIu64 "\",\"seq\":%" PRIu64 ",\"ts_us\":%" PRIu64, v->boot_id, v->seq,
	        batch_row_time_us(v, t->id, row));
	for (i = 0; i < t->n_columns; i++) {
		const struct oal_column *c = &t->columns[i];

		if (c->kind == OAL_TICK || c->kind == OAL_TIME_US)
			continue;
		fprintf(out, ",\"%s\":", c->name);
		if (c->optional >= 0 && absent >> c->optional & 1)
			fputs("null", out);
		else if (c->type == OAL_T_NAME)
			print_text(out, batch_name(v, (uint32_t)row_value(c, row)));
		else if (c->type == OAL_T_MAC)
			print_mac(out, (uint64_t)row_value(c, row));
		else if (c->type == OAL_T_FLOW)
			print_flow(out, &flows[row_value(c, row)]);
		else
			fprintf(out, "%" PRId64, row_value(c, row));
	}
	fputs("}\n", out);
}

static int dump_record(void *ctx, const struct capture_record *r)
{
	FILE *out = ctx;
	_Alignas(8) uint8_t row[MAX_ROW];
	struct batch_flow_cursor fc;
	struct batch_flow *flows;
	struct batch_view v;
	uint32_t n = 0;
	unsigned t;
	const enum batch_reason reason = batch_decode(&v, r->topic, r->bytes, r->len, NULL, 0);

	if (reason) {
		fprintf(out, "{\"refused\":\"%s\",\"topic\":\"%s\",\"bytes\":%zu}\n", batch_reason_name(reason),
		        oal_topic_names[r->topic], r->len);
		return 0;
	}
	flows = calloc(v.n_flows + 1u, sizeof *flows);
	if (!flows)
		return -ENOMEM;
	for (batch_flows(&fc, &v); batch_next_flow(&fc, &flows[n]); n++)
		;
	for (t = 0; t < OAL_N_TABLES; t++) {
		struct batch_cursor c;

		for (batch_rows(&c, &v, t); batch_next_row(&c, row);)
			print_row(out, &v, &oal_tables[t], row, flows);
	}
	free(flows);
	return ferror(out) ? -EIO : 0;
}

int dump_rows(const char *path, FILE *out)
{
	struct capture_reader reader;
	const int r = each_record(path, &reader, dump_record, out);

	if (reader.breaks)
		fprintf(stderr, OAL_PROGRAM ": %s is damaged in %" PRIu64 " places; %" PRIu64 " bytes were skipped\n",
		        path, reader.breaks, reader.skipped_bytes);
	return r;
}

/* --- counts */

struct ap_count {
	struct batch_span ap_id; /* a copy */
	uint64_t batches[OAL_N_TOPICS], rows[OAL_N_TABLES];
};
struct count {
	struct ap_count all;
	struct ap_count *aps;
	size_t n_aps, room;
	uint64_t bytes, refused[BATCH_N_REASONS], first_us, last_us, rows_dropped, ring_drops;
};

static struct ap_count *count_of(struct count *c, struct batch_span ap_id)
{
	uint8_t *copy;
	size_t i;

	for (i = 0; i < c->n_aps; i++)
		if (c->aps[i].ap_id.len == ap_id.len && !memcmp(c->aps[i].ap_id.at, ap_id.at, ap_id.len))
			return &c->aps[i];
	if (c->n_aps == c->room) {
		struct ap_count *more = realloc(c->aps, (c->room = c->room ? 2 * c->room : 16) * sizeof *more);

		if (!more)
			return NULL;
		c->aps = more;
	}
	copy = malloc(ap_id.len);
	if (!copy)
		return NULL;
	memcpy(copy, ap_id.at, ap_id.len);
	c->aps[c->n_aps] = (struct ap_count){.ap_id = {copy, ap_id.len}};
	return &c->aps[c->n_aps++];
}

static int count_record(void *ctx, const struct capture_record *r)
{
	struct count *c = ctx;
	struct ap_count *ap;
	struct batch_view v;
	const enum batch_reason reason = batch_decode(&v, r->topic, r->bytes, r->len, NULL, 0);
	const uint64_t end_us = v.t0_us + (uint64_t)v.ticks * v.tick_us;
	unsigned t;

	c->bytes += r->len;
	if (reason) {
		c->refused[reason]++;
		return 0;
	}
	ap = count_of(c, v.ap_id);
	if (!ap)
		return -ENOMEM;
	if (!c->last_us || v.t0_us < c->first_us)
		c->first_us = v.t0_us;
	if (end_us > c->last_us)
		c->last_us = end_us;
	c->rows_dropped += v.rows_dropped;
	c->ring_drops += v.ring_drops;
	ap->batches[r->topic]++;
	c->all.batches[r->topic]++;
	for (t = 0; t < OAL_N_TABLES; t++) {
		ap->rows[t] += v.n_rows[t];
		c->all.rows[t] += v.n_rows[t];
	}
	return 0;
}

static void print_counts(FILE *out, const struct ap_count *a)
{
	unsigned i;

	fputs("\"batches\":{", out);
	for (i = 0; i < OAL_N_TOPICS; i++)
		fprintf(out, "%s\"%s\":%" PRIu64, i ? "," : "", oal_topic_names[i], a->batches[i]);
	fputs("},\"rows\":{", out);
	for (i = 0; i < OAL_N_TABLES; i++)
		fprintf(out, "%s\"%s\":%" PRIu64, i ? "," : "", oal_tables[i].name, a->rows[i]);
	putc('}', out);
}

int dump_count(const char *path, FILE *out)
{
	struct capture_reader reader;
	struct count c = {0};
	int r = each_record(path, &reader, count_record, &c);
	size_t i;

	if (!r) {
		putc('{', out);
		print_counts(out, &c.all);
		fprintf(out,
		        ",\"bytes\":%" PRIu64 ",\"first_us\":%" PRIu64 ",\"last_us\":%" PRIu64
		        ",\"rows_dropped\":%" PRIu64 ",\"ring_drops\":%" PRIu64 ",\"damaged_places\":%" PRIu64
		        ",\"skipped_bytes\":%" PRIu64 ",\"refused\":{",
		        c.bytes, c.first_us, c.last_us, c.rows_dropped, c.ring_drops, reader.breaks,
		        reader.skipped_bytes);
		for (i = BATCH_OK + 1; i < BATCH_N_REASONS; i++)
			fprintf(out, "%s\"%s\":%" PRIu64, i > BATCH_OK + 1 ? "," : "",
			        batch_reason_name((enum batch_reason)i), c.refused[i]);
		fputs("},\"aps\":{", out);
		for (i = 0; i < c.n_aps; i++) {
			if (i)
				putc(',', out);
			print_text(out, c.aps[i].ap_id);
			fputs(":{", out);
			print_counts(out, &c.aps[i]);
			putc('}', out);
		}
		fputs("}}\n", out);
		r = ferror(out) ? -EIO : 0;
	}
	for (i = 0; i < c.n_aps; i++)
		free((void *)(uintptr_t)c.aps[i].ap_id.at);
	free(c.aps);
	return r;
}
