#include "restamp.h"

#include "wire/batch_decode.h"
#include "wire/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_ROOM = 192 /* an ap_id, a site, and what longer numbers take */ };

struct restamp {
	int topic;
	uint64_t rows;
	struct batch_header header; /* as it was; names and missed ticks point into `held` */
	size_t header_len, rest_len;
	uint8_t *rest; /* what follows the header */
	void *held[3]; /* names' texts, names, missed ticks */
};

static bool read_names(struct restamp *r, const struct batch_view *v)
{
	size_t len = 0;
	const char **names;
	char *at;

	for (uint32_t i = 0; i < v->n_names; i++)
		len += batch_name(v, i).len + 1;
	at = r->held[0] = malloc(len + 1);
	names = r->held[1] = calloc(v->n_names + 1, sizeof *names);
	for (uint32_t i = 0; at && names && i < v->n_names; i++) {
		const struct batch_span s = batch_name(v, i);

		names[i] = at;
		memcpy(at, s.at, s.len);
		at[s.len] = '\0';
		at += s.len + 1;
	}
	r->header.names = names;
	r->header.n_names = v->n_names;
	return at && names;
}

static bool read_missed(struct restamp *r, const struct batch_view *v)
{
	uint32_t *missed = r->held[2] = calloc(2 * (size_t)v->n_missed + 1, sizeof *missed);
	struct batch_missed_cursor c;
	uint64_t start, ticks;

	if (!missed)
		return false;
	batch_missed(&c, v);
	for (uint32_t i = 0; i < v->n_missed && batch_next_missed(&c, &start, &ticks); i++) {
		missed[i] = (uint32_t)start;
		missed[v->n_missed + i] = (uint32_t)ticks;
	}
	r->header.missed_start = missed;
	r->header.missed_ticks = missed + v->n_missed;
	r->header.n_missed = v->n_missed;
	return true;
}

int restamp_new(struct restamp **out, int topic, const uint8_t *batch, size_t len)
{
	const uint8_t *at = batch;
	struct batch_view v;
	struct wire_field f;
	struct restamp *r;

	if (batch_decode(&v, topic, batch, len, NULL, 0) || wire_next(&at, batch + len, &f) ||
	    f.number != OAL_BATCH_HEADER)
		return -EINVAL;
	r = calloc(1, sizeof *r);
	if (!r)
		return -ENOMEM;
	r->topic = topic;
	r->header = (struct batch_header){.t0_us = v.t0_us,
					  .tick_us = v.tick_us,
					  .ticks = v.ticks,
					  .schema_revision = v.schema_revision,
					  .ring_drops = v.ring_drops,
					  .rows_dropped = v.rows_dropped,
					  .dumps_interrupted = v.dumps_interrupted,
					  .tick_late_max_us = v.tick_late_max_us,
					  .clock_state = v.clock_state,
					  .clock_error_us = v.clock_error_us,
					  .feature_hash = v.feature_hash};
	for (int t = 0; t < OAL_N_TABLES; t++)
		r->rows += v.n_rows[t];
	r->header_len = f.len;
	r->rest_len = (size_t)(batch + len - at);
	r->rest = malloc(r->rest_len + 1);
	if (!r->rest || !read_names(r, &v) || !read_missed(r, &v)) {
		restamp_free(r);
		return -ENOMEM;
	}
	memcpy(r->rest, at, r->rest_len);
	*out = r;
	return 0;
}

void restamp_free(struct restamp *r)
{
	if (!r)
		return;
	for (unsigned i = 0; i < 3; i++)
		free(r->held[i]);
	free(r->rest);
	free(r);
}

int restamp_topic(const struct restamp *r)
{
	return r->topic;
}

uint64_t restamp_rows(const struct restamp *r)
{
	return r->rows;
}

size_t restamp_room(const struct restamp *r)
{
	return r->header_len + r->rest_len + NAMES_ROOM;
}

size_t restamp_write(const struct restamp *r, const struct restamp_to *to, uint8_t *out, size_t size)
{
	struct batch_header h = r->header;
	struct batch_writer w;

	h.ap_id = to->ap_id;
	h.site = to->site;
	h.boot_id = to->boot_id;
	h.seq = to->seq;
	h.t0_us += to->shift_us;
	batch_begin(&w, out, size);
	if (!batch_write_header(&w, &h) || (size_t)(w.end - w.at) < r->rest_len)
		return 0;
	memcpy(w.at, r->rest, r->rest_len);
	return batch_len(&w) + r->rest_len;
}
