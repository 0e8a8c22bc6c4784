#include "replay/player.h"

#include <errno.h>
#include <stdlib.h>

#include "base/config.h"
#include "pipeline/pipeline.h"
#include "replay/play_capture.h"
#include "replay/play_pcap.h"
#include "replay/player_state.h"

enum { HEALTH_TICKS = 250 /* once a second */ };
static const uint64_t INTERVAL_US = OAL_SETTING_DECISION_INTERVAL_US;

static void emit(void *ctx, const struct batch_out *b)
{
	struct player *p = ctx;

	p->config->emit(p->config->ctx, p->ap_id, b);
}

static uint64_t round_up(uint64_t v, uint64_t unit)
{
	return (v + unit - 1) / unit * unit;
}

/* Begins the file for the n-th time, its first interval at `at_us`. */
static void begin_loop(struct player *p, uint64_t at_us)
{
	const struct replay_file *f = p->file;
	unsigned t, i;

	p->shift_us = at_us - f->first_us / INTERVAL_US * INTERVAL_US;
	p->end_us = f->last_us + p->shift_us;
	p->group = 0;
	p->group_end_us = 0;
	p->stats->loops++;
	if (f->is_pcap)
		pcap_open(&p->pcap, f->bytes, f->len);
	for (t = 0; t < OAL_N_TABLES; t++)
		for (i = 0; p->entities[t] && i < p->keys[t].max; i++)
			p->entities[t][i].rebase = true;
	if (p->loop)
		pipeline_flows_end(p->pipeline);
}

int player_new(struct player *p, unsigned i, char *err, size_t size)
{
	static const unsigned most[OAL_N_TABLES] = {
		[OAL_STATION] = 256, [OAL_STATION_AC] = 1024, [OAL_CHANNEL] = 64,
		[OAL_QUEUE] = 256,   [OAL_BEACON] = 512,      [OAL_NEIGHBOUR_AP] = 256,
	};
	const struct replay_config *c = p->config;
	const struct replay_file *f = p->file;
	const struct pipeline_config data_path = {
		.ap_id = p->ap_id,
		.site = c->site,
		.boot_id = c->boot_id + i,
		.tick_us = f->tick_us,
		.max_flows = c->max_flows,
		.max_packets_per_batch = c->max_packets_per_batch,
		.pseudonym_key = c->pseudonym_key,
		.pseudonym_key_len = c->pseudonym_key_len,
		.program = c->program,
		.now_ns = c->now_ns,
		.emit = emit,
		.ctx = p,
	};
	const uint64_t stagger_us = (uint64_t)OAL_SETTING_BATCH_TICKS * i / c->aps * f->tick_us;
	const uint64_t at_us = round_up(c->start_us, INTERVAL_US) + stagger_us;
	unsigned t;
	int code;

	config_virtual_ap(p->ap_id, sizeof p->ap_id, c->ap_id, c->aps, i);
	code = c->open_ap ? c->open_ap(c->ctx, i, &data_path, &p->pipeline, err, size) :
			    pipeline_new(&p->pipeline, &data_path);
	for (t = 0; !code && !f->is_pcap && t < OAL_N_TABLES; t++)
		if (replay_table_is_state(t)) {
			code = dedup_new(&p->keys[t], t, most[t]);
			p->entities[t] = calloc(most[t], sizeof *p->entities[t]);
			if (!p->entities[t])
				code = -ENOMEM;
		}
	p->rows = calloc(f->max_rows + 1, sizeof *p->rows);
	p->bytes = malloc(f->max_row_bytes + 1);
	p->packets = calloc(f->max_packets + 1, sizeof *p->packets);
	if (!code && (!p->rows || !p->bytes || !p->packets))
		code = -ENOMEM;
	if (code)
		return code;
	begin_loop(p, at_us);
	/* A capture's ticks are met exactly; a pcap file has none. */
	p->due_us = (f->is_pcap ? f->first_us / f->tick_us * f->tick_us : f->first_us) + p->shift_us;
	return 0;
}

void player_free(struct player *p)
{
	unsigned t;

	if (!p->config->open_ap)
		pipeline_free(p->pipeline);
	for (t = 0; t < OAL_N_TABLES; t++) {
		dedup_free(&p->keys[t]);
		free(p->entities[t]);
	}
	free(p->rows);
	free(p->bytes);
	free(p->packets);
}

static void write_health(struct player *p)
{
	const struct replay_config *c = p->config;
	struct oal_health_row row = {0};
	struct pipeline_stats s;

	if (!c->version || p->ticks % HEALTH_TICKS)
		return;
	pipeline_stats(p->pipeline, &s);
	row.version = pipeline_name(p->pipeline, c->version);
	row.ticks = s.ticks;
	row.ticks_missed = s.ticks_missed;
	row.tick_late_max_us = s.tick_late_max_us;
	row.packets = s.packets;
	row.ring_drops = s.ring_drops;
	row.packets_skipped = s.packets_skipped;
	row.rows_sampled = s.rows_sampled;
	row.rows_sent = s.rows_sent;
	row.rows_dropped = s.rows_dropped;
	row.flows = s.flows;
	row.flows_evicted = s.flows_evicted;
	row.dumps_interrupted = s.dumps_interrupted;
	row.batches = s.batches;
	row.batch_bytes = s.batch_bytes;
	if (c->health)
		c->health(c->ctx, &row);
	pipeline_stats_reset_max(p->pipeline);
	pipeline_row(p->pipeline, OAL_HEALTH, &row);
}

/* The tick that is due, or the next loop, or the end. */
void player_tick(struct player *p)
{
	const struct replay_file *f = p->file;

	if (p->due_us >= p->end_us) {
		if (f->is_pcap)
			play_pcap_packets(p, UINT64_MAX);
		else
			play_capture_packets(p, UINT64_MAX);
		if (!p->config->loop) {
			pipeline_flush(p->pipeline);
			p->done = true;
			return;
		}
		p->loop++;
		/* Staggered APs are off the decision grid by whole ticks and stay so. */
		begin_loop(p, p->shift_us + round_up(f->last_us, INTERVAL_US));
	}
	if (!f->is_pcap && p->due_us >= p->group_end_us && p->group < f->n_groups &&
	    p->due_us >= f->groups[p->group].t0_us + p->shift_us) {
		play_capture_packets(p, UINT64_MAX);
		play_capture_group(p);
	}
	if (f->is_pcap)
		play_pcap_packets(p, p->due_us);
	else
		play_capture_packets(p, p->due_us);
	if (play_capture_missed(p)) {
		p->missed++;
	} else {
		pipeline_tick(p->pipeline, p->due_us, p->missed, 0);
		p->missed = 0;
		for (; p->row < p->n_rows && p->rows[p->row].t_us <= p->due_us; p->row++)
			pipeline_row(p->pipeline, p->rows[p->row].table, p->bytes + p->rows[p->row].at);
		write_health(p);
	}
	p->ticks++;
	p->due_us += f->tick_us;
}
