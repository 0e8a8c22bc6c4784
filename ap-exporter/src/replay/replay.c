#include "replay/replay.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/pipeline.h"
#include "replay/player.h"
#include "replay/player_state.h"
#include "wire/batch_encode.h"

enum { MAX_APS = 1000 };

struct replay {
	struct replay_config c;
	struct replay_file file;
	struct pcap_network net;
	struct player *players;
	struct batch_flow *flows; /* for the players */
	struct replay_stats stats;
};

int replay_new(struct replay **out, const struct replay_config *c, char *err, size_t size)
{
	struct replay *r = calloc(1, sizeof *r);
	unsigned i;
	int code;

	if (size)
		*err = '\0';
	if (!r)
		return replay_fail(-ENOMEM, err, size, "no memory to replay %s", c->path);
	r->c = *c;
	r->c.aps = c->aps ? c->aps : 1;
	r->c.speed_percent = c->speed_percent ? c->speed_percent : 100;
	if (r->c.aps > MAX_APS) {
		code = replay_fail(-EINVAL, err, size, "%u virtual APs; at most %d in one process", r->c.aps, MAX_APS);
		goto failed;
	}
	if (c->client_net && *c->client_net && pcap_network_parse(&r->net, c->client_net)) {
		code = replay_fail(-EINVAL, err, size, "'%s' is not a network: write it like 192.168.1.0/24",
				   c->client_net);
		goto failed;
	}
	if ((code = replay_file_read(&r->file, c->path, err, size)))
		goto failed;
	r->stats.aps = r->c.aps;
	r->players = calloc(r->c.aps, sizeof *r->players);
	r->flows = calloc(r->file.max_flows + 1, sizeof *r->flows);
	if (!r->players || !r->flows) {
		code = replay_fail(-ENOMEM, err, size, "no memory for %u virtual APs", r->c.aps);
		goto failed;
	}
	for (i = 0; i < r->c.aps; i++)
		r->players[i] = (struct player){
			.config = &r->c, .file = &r->file, .stats = &r->stats, .net = &r->net, .flows = r->flows};
	for (i = 0; i < r->c.aps; i++)
		if ((code = player_new(&r->players[i], i, err, size))) {
			if (!*err)
				replay_fail(code, err, size, "cannot set up virtual AP %u of %u: %s", i + 1, r->c.aps,
				     strerror(-code));
			goto failed;
		}
	*out = r;
	return 0;
failed:
	replay_free(r);
	return code;
}

void replay_free(struct replay *r)
{
	unsigned i;

	if (!r)
		return;
	for (i = 0; r->players && i < r->c.aps && r->players[i].config; i++)
		player_free(&r->players[i]);
	free(r->players);
	free(r->flows);
	replay_file_free(&r->file);
	free(r);
}

/* The clock as the rows see it, when it is `now_us`. */
static uint64_t played_time(const struct replay *r, uint64_t now_us)
{
	return now_us <= r->c.start_us ? now_us : r->c.start_us + (now_us - r->c.start_us) * r->c.speed_percent / 100;
}

int replay_advance(struct replay *r, uint64_t now_us)
{
	const uint64_t until_us = played_time(r, now_us);
	int more = 0;
	unsigned i;

	for (i = 0; i < r->c.aps; i++) {
		struct player *p = &r->players[i];

		while (!p->done && p->due_us <= until_us)
			player_tick(p);
		more |= !p->done;
	}
	return more;
}

int replay_step(struct replay *r, uint64_t now_us)
{
	const uint64_t next_us = replay_next_us(r);
	const bool behind = next_us < now_us && now_us - next_us > REPLAY_STEP_US;

	return replay_advance(r, behind ? next_us + REPLAY_STEP_US : now_us);
}

uint64_t replay_next_us(const struct replay *r)
{
	uint64_t next_us = UINT64_MAX;
	unsigned i;

	for (i = 0; i < r->c.aps; i++)
		if (!r->players[i].done && r->players[i].due_us < next_us)
			next_us = r->players[i].due_us;
	if (next_us == UINT64_MAX || next_us <= r->c.start_us)
		return next_us;
	return r->c.start_us + ((next_us - r->c.start_us) * 100 + r->c.speed_percent - 1) / r->c.speed_percent;
}

void replay_flush(struct replay *r)
{
	unsigned i;

	for (i = 0; i < r->c.aps; i++)
		if (!r->players[i].done) {
			pipeline_flush(r->players[i].pipeline);
			r->players[i].done = true;
		}
}

void replay_stats(const struct replay *r, struct replay_stats *out)
{
	unsigned i, t;

	*out = r->stats;
	out->batches_refused = r->file.batches_refused;
	out->other_ap = r->file.other_ap;
	out->breaks = r->file.breaks;
	for (i = 0; i < r->c.aps; i++) {
		struct pipeline_stats s;

		pipeline_stats(r->players[i].pipeline, &s);
#define SUM(field) out->pipeline.field += s.field
		SUM(ticks);
		SUM(ticks_missed);
		SUM(packets);
		SUM(packets_skipped);
		SUM(packets_late);
		SUM(packets_guessed);
		SUM(ring_drops);
		SUM(rows_sampled);
		SUM(rows_sent);
		SUM(rows_dropped);
		SUM(entities_refused);
		SUM(flows);
		SUM(flows_evicted);
		SUM(names_refused);
		SUM(dumps_interrupted);
		SUM(batches);
		SUM(batch_bytes);
		SUM(decisions);
		SUM(memory_bytes);
#undef SUM
		for (t = 0; t < OAL_N_TABLES; t++)
			out->pipeline.table_rows[t] += s.table_rows[t];
	}
}
