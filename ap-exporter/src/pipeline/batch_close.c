#include "pipeline/batch_close.h"

#include <string.h>

#include "pipeline/flow_rows.h"
#include "pipeline/pipeline_state.h"
#include "pipeline/programs.h"

/* Gives every flow that has rows in the batch a place in its dictionary. */
static unsigned make_dictionary(struct pipeline *p)
{
	const struct row_ring *rings[2] = {&p->rings[OAL_PACKET], &p->rings[OAL_FLOW]};
	unsigned n = 0, r, i;

	memset(p->flow_index, 0xff, p->c.max_flows * sizeof *p->flow_index);
	for (r = 0; r < 2; r++)
		for (i = 0; i < rings[r]->n_touched; i++) {
			const uint16_t flow = rings[r]->touched[i] / 2;
			struct batch_flow *d = &p->dictionary[n];

			if (p->flow_index[flow] != FLOW_NONE)
				continue;
			p->flow_index[flow] = (uint16_t)n++;
			flow_rows_describe(p, &p->flows.flows[flow], d);
			d->flow_id = p->flow_entities[2 * flow].flow_id;
		}
	return senders_describe(p, p->dictionary, n);
}

/* The program that decisions of these rows are of. A host has that of a policy about destinations, wherever its place
 * is: programs of access points, which come with bundles for all, decide nothing there. */
static uint64_t program_of(const struct pipeline *p)
{
#ifdef OAL_HOST
	for (unsigned i = 0; i < PIPELINE_SLOTS; i++)
		if (p->slots[i].running && feature_reads(p->slots[i].running, OAL_SENDER_SESSION))
			return p->slots[i].program_id;
	return 0;
#else
	return p->slots[0].program_id;
#endif
}

static void fill_header(struct pipeline *p, const struct open_batch *b, unsigned topic, struct batch_header *h)
{
	*h = (struct batch_header){.ap_id = p->ap_id,
				   .site = p->site,
				   .boot_id = p->c.boot_id,
				   .seq = p->seq[topic],
				   .t0_us = b->t0_us,
				   .tick_us = p->c.tick_us,
				   .ticks = b->ticks,
				   .schema_revision = OAL_SETTING_SCHEMA_REVISION,
				   .missed_start = b->missed_start,
				   .missed_ticks = b->missed_ticks,
				   .n_missed = b->n_missed,
				   /* Each counted where its rows are, so that a sum over topics is right. */
				   .ring_drops = topic == OAL_TOPIC_PACKETS ? b->ring_drops : 0,
				   .dumps_interrupted = topic == OAL_TOPIC_SAMPLES ? b->dumps_interrupted : 0,
				   .rows_dropped = b->rows_dropped[topic],
				   .tick_late_max_us = b->late_max_us,
				   .clock_state = b->clock_state,
				   .clock_error_us = b->clock_error_us,
				   .feature_hash = program_of(p),
				   .names = p->names.text,
				   .n_names = p->names.n};
}

static void emit_topic(struct pipeline *p, struct open_batch *b, unsigned topic, uint64_t end_us)
{
	struct batch_rows rows[OAL_N_TABLES] = {0};
	uint32_t at = 0, sent = 0;
	struct batch_header header;
	struct batch_writer w;
	unsigned t;
	bool ok;

	for (t = 0; t < OAL_N_TABLES; t++)
		if (oal_tables[t].topic == topic) {
			const uint32_t left_out =
				row_ring_batch(&p->rings[t], end_us, &rows[t], p->order + at, p->run_rows + at);

			rows[t].flow_index =
				t == OAL_SENDER_TCP || t == OAL_SENDER_SESSION ? p->senders.index : p->flow_index;
			at += rows[t].n_rows + left_out;
			count_dropped(p, b, topic, left_out);
		}
	if (topic == OAL_TOPIC_EVENTS && !at)
		return;
	fill_header(p, b, topic, &header);
	batch_begin(&w, p->buffer, p->buffer_size);
	ok = batch_write_header(&w, &header);
	if (topic == OAL_TOPIC_PACKETS)
		ok = ok && batch_write_flows(&w, p->dictionary, make_dictionary(p));
	for (t = 0; ok && t < OAL_N_TABLES; t++) {
		if (!rows[t].n_rows)
			continue;
		if (batch_write_rows(&w, &rows[t])) {
			sent += rows[t].n_rows;
			p->stats.table_rows[t] += rows[t].n_rows;
		} else {
			/* More than a record may hold; the header is written, so the next one says so. */
			count_dropped(p, newest_batch(p), topic, rows[t].n_rows);
		}
	}
	if (ok) {
		const struct batch_out out = {(int)topic, p->buffer, batch_len(&w), p->seq[topic], b->t0_us, sent};

		p->seq[topic]++;
		p->stats.batches++;
		p->stats.batch_bytes += out.len;
		p->stats.rows_sent += sent;
		p->c.emit(p->c.ctx, &out);
	}
}

/* Entities without a row in the batch are dropped from feature state, and forgotten unless they have rows by now. */
static void sweep(struct pipeline *p, enum oal_table_id t, uint64_t end_us)
{
	const struct row_ring *ring = &p->rings[t];
	struct dedup *d = &p->dedup[t];
	unsigned i;

	for (i = 0; i < d->max; i++) {
		if (d->entities[i].state == DEDUP_FREE || ring->count[i])
			continue;
		if (!oal_tables[t].event)
			programs_drop(p, t, i);
		if (d->entities[i].row_us >= end_us)
			continue;
		if (t == OAL_STATION)
			stations_remove(&p->stations, ((const struct oal_station_row *)dedup_known(d, i))->mac);
		dedup_remove(d, i);
	}
}

static void sweep_flows(struct pipeline *p, uint64_t t0_us, uint64_t end_us)
{
	const struct row_ring *ring = &p->rings[OAL_FLOW];
	unsigned i;

	for (i = 0; i < p->flows.touched; i++) {
		struct flow *f = &p->flows.flows[i];
		struct flow_entity *e = &p->flow_entities[2 * i];
		bool idle;

		if (!f->used)
			continue;
		if (!ring->count[2 * i])
			programs_drop(p, OAL_FLOW, 2 * i);
		if (!ring->count[2 * i + 1])
			programs_drop(p, OAL_FLOW, 2 * i + 1);
		idle = f->last_us + FLOW_ROWS_QUIET_US < end_us;
		if (idle || (f->closing && f->closing_us + FLOW_ROWS_CLOSING_US < end_us))
			e[0].live = e[1].live = false;
		/* Its number is used anew only when nothing refers to it: no row in this batch, none since. */
		if (!e[0].live && !e[1].live && e[0].row_us < t0_us && e[1].row_us < t0_us && f->last_us < t0_us &&
		    (f->last_us + p->c.flow_idle_us < end_us || (idle && f->closing)))
			flow_remove(&p->flows, (uint16_t)i);
	}
}

void batch_close(struct pipeline *p, uint64_t end_us)
{
	struct open_batch *b = oldest_batch(p);
	unsigned topic, t;

	programs_feed(p, end_us);
	for (topic = 0; topic < OAL_N_TOPICS; topic++)
		emit_topic(p, b, topic, end_us);
	for (t = 0; t < OAL_N_TABLES; t++)
		if (table_is_state(t) || table_is_keyed_event(t))
			sweep(p, t, end_us);
	senders_sweep(&p->senders, end_us);
	sweep_flows(p, b->t0_us, b->t0_us + (uint64_t)b->ticks * p->c.tick_us);
	for (t = 0; t < OAL_N_TABLES; t++) {
		row_ring_batched(&p->rings[t]);
		if (!programs_read(p, t))
			p->rings[t].fed = p->rings[t].batched;
	}
	p->closed_t0_us = b->t0_us;
	p->open_at = (p->open_at + 1) % PIPELINE_MAX_OPEN;
	p->n_open--;
}
