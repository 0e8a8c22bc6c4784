#include "replay/play_capture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/pipeline.h"
#include "replay/player_state.h"
#include "wire/batch_decode.h"

static void set(uint8_t *p, uint8_t size, uint64_t v)
{
	switch (size) {
	case 1: *p = (uint8_t)v; break;
	case 2: *(uint16_t *)(void *)p = (uint16_t)v; break;
	case 4: *(uint32_t *)(void *)p = (uint32_t)v; break;
	default: *(uint64_t *)(void *)p = v; break;
	}
}

static uint64_t get(const uint8_t *p, uint8_t size)
{
	switch (size) {
	case 1: return *p;
	case 2: return *(const uint16_t *)(const void *)p;
	case 4: return *(const uint32_t *)(const void *)p;
	default: return *(const uint64_t *)(const void *)p;
	}
}

/* Names of the file become names of the pipeline. */
static void map_names(struct player *p, const struct batch_view *v, const struct oal_table *t, uint8_t *row)
{
	unsigned i;

	for (i = 0; i < t->n_columns; i++)
		if (t->columns[i].type == OAL_T_NAME) {
			uint16_t *name = (uint16_t *)(void *)(row + t->columns[i].offset);
			const struct batch_span s = batch_name(v, *name);
			char text[64];

			snprintf(text, sizeof text, "%.*s", (int)s.len, (const char *)s.at);
			*name = pipeline_name(p->pipeline, text);
		}
}

/* Counters go on where they were when the file began anew. */
static void map_counters(struct player_entity *e, const struct oal_table *t, uint8_t *row)
{
	unsigned i;

	for (i = t->n_keys; i < t->n_columns; i++) {
		const struct oal_column *c = &t->columns[i];
		const uint64_t mask = c->counter_bits == 32 ? UINT32_MAX : INT64_MAX;
		uint64_t v;

		if (c->kind != OAL_COUNTER)
			continue;
		v = get(row + c->offset, c->size);
		if (e->rebase)
			e->offset[i] = e->last[i] - v;
		v = (v + e->offset[i]) & mask;
		e->last[i] = v;
		set(row + c->offset, c->size, v);
	}
	e->rebase = false;
}

/* Finds or makes the entity of a row; NULL when there are too many. */
static struct player_entity *entity_of(struct player *p, unsigned t, const uint8_t *row)
{
	int slot = dedup_find(&p->keys[t], row);

	if (slot < 0 && (slot = dedup_add(&p->keys[t], row)) >= 0)
		p->entities[t][slot] = (struct player_entity){0};
	return slot < 0 ? NULL : &p->entities[t][slot];
}

static void decode_states(struct player *p, const struct batch_view *v, uint32_t *at)
{
	struct batch_cursor c;
	unsigned t;

	for (t = 0; t < OAL_N_TABLES; t++) {
		if (!replay_table_is_state(t))
			continue;
		for (batch_rows(&c, v, t); batch_next_row(&c, p->bytes + *at);) {
			uint8_t *row = p->bytes + *at;
			struct player_entity *e;

			map_names(p, v, &oal_tables[t], row);
			e = entity_of(p, t, row);
			if (!e) {
				p->stats->rows_skipped++;
				continue;
			}
			e->present = true;
			e->group = p->groups_played;
			map_counters(e, &oal_tables[t], row);
			p->rows[p->n_rows++] = (struct player_row){batch_row_time_us(v, t, row) + p->shift_us, t, *at};
			*at += oal_tables[t].row_size;
		}
	}
}

static void decode_packets(struct player *p, const struct batch_view *v)
{
	struct batch_flow *flows = p->flows;
	struct batch_flow_cursor fc;
	struct oal_packet_row row;
	struct batch_cursor c;
	unsigned n = 0;

	for (batch_flows(&fc, v); batch_next_flow(&fc, &flows[n]); n++)
		if (flows[n].station_mac)
			pipeline_station_addr(p->pipeline, flows[n].client_addr, flows[n].addr_len,
					      flows[n].station_mac);
	for (batch_rows(&c, v, OAL_PACKET); batch_next_row(&c, &row);) {
		const struct batch_flow *f = &flows[row.flow];
		const uint16_t client_port = player_port(p, f->client_port, f->server_port),
			       server_port = player_port(p, f->server_port, f->client_port);
		const bool up = row.direction;
		struct packet k = {.t_us = v->t0_us + (uint64_t)row.t_us + p->shift_us,
				   .src_mac = up ? f->station_mac : 0,
				   .dst_mac = up ? 0 : f->station_mac,
				   .addr_len = f->addr_len,
				   .direction = up,
				   .flags = row.flags,
				   .ip_ecn = row.ip_ecn & 3,
				   .src_port = up ? client_port : server_port,
				   .dst_port = up ? server_port : client_port,
				   .seq = row.seq,
				   .ack = row.ack,
				   .payload_bytes = row.payload_bytes,
				   .window_raw = row.window_raw,
				   .mss_bytes = row.mss_bytes,
				   .syn_options = row.syn_options,
				   .wscale = row.wscale,
				   .sack_blocks = row.sack_blocks,
				   .has_ts = !(row.absent & OAL_PACKET_ABSENT_TS_VAL),
				   .ts_val = row.ts_val,
				   .ts_ecr = row.ts_ecr};

		if (f->protocol != 6)
			continue;
		memcpy(k.src, up ? f->client_addr : f->server_addr, f->addr_len);
		memcpy(k.dst, up ? f->server_addr : f->client_addr, f->addr_len);
		p->packets[p->n_packets++] = k;
	}
}

static int compare_rows(const void *a, const void *b)
{
	const struct player_row *x = a, *y = b;

	if (x->t_us != y->t_us)
		return x->t_us < y->t_us ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

static int compare_packets(const void *a, const void *b)
{
	const struct packet *x = a, *y = b;

	return x->t_us < y->t_us ? -1 : x->t_us > y->t_us;
}

/* Entities of which the group says nothing have left. */
static void remove_absent(struct player *p)
{
	unsigned t, i;

	for (t = 0; t < OAL_N_TABLES; t++)
		for (i = 0; p->entities[t] && i < p->keys[t].max; i++) {
			struct player_entity *e = &p->entities[t][i];

			if (!e->present || e->group == p->groups_played)
				continue;
			e->present = false;
			pipeline_gone(p->pipeline, t, dedup_known(&p->keys[t], i));
		}
}

void play_capture_group(struct player *p)
{
	const struct replay_file *f = p->file;
	const struct replay_group *g = &f->groups[p->group++];
	bool samples = false;
	uint32_t i, at = 0;

	p->groups_played++;
	p->n_rows = p->row = p->n_packets = p->packet = 0;
	p->n_missed = 0;
	p->group_end_us = g->end_us + p->shift_us;
	for (i = g->first; i < g->first + g->n; i++) {
		struct batch_missed_cursor missed;
		uint64_t from, n;
		struct batch_view v;

		batch_decode(&v, f->records[i].topic, f->records[i].bytes, f->records[i].len, NULL, 0);
		p->stats->batches_read++;
		pipeline_account(p->pipeline, v.ring_drops, v.dumps_interrupted,
				 v.clock_state > 3 ? 0 : (uint8_t)v.clock_state, v.clock_error_us);
		if (v.topic == OAL_TOPIC_PACKETS) {
			decode_packets(p, &v);
			continue;
		}
		samples = true;
		decode_states(p, &v, &at);
		for (batch_missed(&missed, &v); p->n_missed < PLAYER_MISSED && batch_next_missed(&missed, &from, &n);
		     p->n_missed++) {
			p->missed_from[p->n_missed] = v.t0_us + from * v.tick_us + p->shift_us;
			p->missed_to[p->n_missed] = p->missed_from[p->n_missed] + n * v.tick_us;
		}
	}
	if (samples)
		remove_absent(p);
	qsort(p->rows, p->n_rows, sizeof *p->rows, compare_rows);
	qsort(p->packets, p->n_packets, sizeof *p->packets, compare_packets);
}

bool play_capture_missed(const struct player *p)
{
	unsigned i;

	/* A hole between two batches of the file; the seam between two loops is none. */
	if (!p->file->is_pcap && p->due_us >= p->group_end_us && p->group_end_us && p->due_us < p->end_us)
		return true;
	for (i = 0; i < p->n_missed; i++)
		if (p->due_us >= p->missed_from[i] && p->due_us < p->missed_to[i])
			return true;
	return false;
}

void play_capture_packets(struct player *p, uint64_t before_us)
{
	for (; p->packet < p->n_packets && p->packets[p->packet].t_us < before_us; p->packet++)
		pipeline_packet(p->pipeline, &p->packets[p->packet]);
}
