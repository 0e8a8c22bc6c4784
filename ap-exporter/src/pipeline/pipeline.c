#include "pipeline/pipeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/batch_close.h"
#include "pipeline/pipeline_state.h"

/* --- begin and end */

static int allocate(struct pipeline *p)
{
	unsigned entities[OAL_N_TABLES], rows[OAL_N_TABLES], by_topic[OAL_N_TOPICS] = {0}, most = 0, t;
	int r;

	pipeline_limits(&p->c, entities, rows);
	for (t = 0; t < OAL_N_TABLES; t++) {
		if ((r = row_ring_new(&p->rings[t], t, rows[t], entities[t])))
			return r;
		p->stats.memory_bytes += p->rings[t].memory;
		by_topic[oal_tables[t].topic] += p->rings[t].max_mask + 1;
		if (table_is_state(t) || table_is_keyed_event(t)) {
			if ((r = dedup_new(&p->dedup[t], t, entities[t])))
				return r;
			p->stats.memory_bytes += p->dedup[t].memory;
		}
	}
	for (t = 0; t < OAL_N_TOPICS; t++)
		most = by_topic[t] > most ? by_topic[t] : most;
	if ((r = flow_table_new(&p->flows, p->c.max_flows)) ||
	    (r = stations_new(&p->stations, p->c.max_stations, p->c.max_addresses)) ||
	    (r = senders_new(&p->senders, p->c.max_senders)))
		return r;
	p->staged_max = p->c.max_packets_per_batch / 4 < 64 ? 64 : p->c.max_packets_per_batch / 4;
	p->buffer_size = OAL_SETTING_MAX_BATCH_BYTES;
	p->staged = calloc(p->staged_max, sizeof *p->staged);
	p->flow_entities = calloc(2 * p->c.max_flows, sizeof *p->flow_entities);
	p->flow_index = calloc(p->c.max_flows, sizeof *p->flow_index);
	p->dictionary = calloc(p->c.max_flows + p->c.max_senders, sizeof *p->dictionary);
	p->order = calloc(most, sizeof *p->order);
	p->run_rows = calloc(most, sizeof *p->run_rows);
	p->buffer = malloc(p->buffer_size); /* only what a batch takes is ever touched, and so resident */
	if (!p->staged || !p->flow_entities || !p->flow_index || !p->dictionary || !p->order || !p->run_rows ||
	    !p->buffer)
		return -ENOMEM;
	p->stats.memory_bytes +=
		sizeof *p + p->flows.memory + p->stations.memory + senders_memory(&p->senders) +
		p->c.max_senders * sizeof *p->dictionary + p->staged_max * sizeof *p->staged +
		p->c.max_flows * (2 * sizeof *p->flow_entities + sizeof *p->flow_index + sizeof *p->dictionary) +
		most * (sizeof *p->order + sizeof *p->run_rows);
	return programs_start(p);
}

int pipeline_new(struct pipeline **out, const struct pipeline_config *c)
{
	struct pipeline *p = calloc(1, sizeof *p);
	int r;

	if (!p)
		return -ENOMEM;
	rows_find_columns(p);
	r = pipeline_config_complete(&p->c, c);
	if (!r) {
		strcpy(p->ap_id, c->ap_id);
		strcpy(p->site, c->site ? c->site : "");
		if (c->pseudonym_key)
			memcpy(p->key, c->pseudonym_key, sizeof p->key);
		r = allocate(p);
	}
	if (r) {
		pipeline_free(p);
		return r;
	}
	*out = p;
	return 0;
}

void pipeline_free(struct pipeline *p)
{
	unsigned t;

	if (!p)
		return;
	for (t = 0; t < OAL_N_TABLES; t++) {
		row_ring_free(&p->rings[t]);
		dedup_free(&p->dedup[t]);
	}
	flow_table_free(&p->flows);
	stations_free(&p->stations);
	senders_free(&p->senders);
	for (t = 0; t < PIPELINE_SLOTS; t++)
		feature_slot_free(&p->slots[t]);
	free(p->staged);
	free(p->flow_entities);
	free(p->flow_index);
	free(p->dictionary);
	free(p->order);
	free(p->run_rows);
	free(p->buffer);
	free(p);
}

uint16_t pipeline_name(struct pipeline *p, const char *name)
{
	return names_intern(&p->names, name, &p->stats.names_refused);
}

const char *pipeline_name_of(const struct pipeline *p, uint16_t i)
{
	return names_get(&p->names, i);
}

/* --- the settling end */

/* The next batch's turn. */
static void settle_batch(struct pipeline *p)
{
	const uint64_t t0_us = oldest_batch(p)->t0_us;

	if (p->settled_us < t0_us)
		p->settled_us = t0_us;
	programs_begin_batch(p, t0_us);
	if (p->instant_us < t0_us || p->instant_us - t0_us > OAL_SETTING_DECISION_INTERVAL_US)
		p->instant_us = (t0_us + OAL_SETTING_DECISION_INTERVAL_US - 1) / OAL_SETTING_DECISION_INTERVAL_US *
				OAL_SETTING_DECISION_INTERVAL_US;
	flow_rows_keyframes(p);
}

/* A decision instant: flows are sampled, and the feature programs say what they see. */
static void decide(struct pipeline *p)
{
	const uint64_t instant_us = p->instant_us;

	flow_rows_sample(p, instant_us);
	p->instant_us += OAL_SETTING_DECISION_INTERVAL_US;
	programs_evaluate(p, instant_us);
}

/* Brings the settling end forward: packets before `packets_us`, instants before `instants_us`, and the end of every
 * batch but the newest, in the order of time. */
static void settle(struct pipeline *p, uint64_t packets_us, uint64_t instants_us)
{
	while (p->n_open) {
		const uint64_t end_us =
			p->n_open > 1 ? p->open[(p->open_at + 1) % PIPELINE_MAX_OPEN].t0_us : UINT64_MAX;
		const uint64_t packet_us = p->staged_at < p->staged_end ? p->staged[p->staged_at].t_us : UINT64_MAX;

		if (end_us <= packets_us && end_us <= packet_us && end_us <= p->instant_us) {
			batch_close(p, end_us);
			settle_batch(p);
		} else if (packet_us < packets_us && (packet_us <= p->instant_us || p->instant_us >= instants_us)) {
			/* And all that follow before anything else is due. */
			uint64_t until_us = packets_us < end_us ? packets_us : end_us;

			if (p->instant_us < instants_us && until_us > p->instant_us + 1)
				until_us = p->instant_us + 1;
			do
				packets_settle(p, &p->staged[p->staged_at++]);
			while (p->staged_at < p->staged_end && p->staged[p->staged_at].t_us < until_us);
		} else if (p->instant_us < instants_us) {
			decide(p);
		} else {
			break;
		}
	}
	if (p->staged_at == p->staged_end)
		p->staged_at = p->staged_end = 0;
	if (p->settled_us < packets_us)
		p->settled_us = packets_us;
}

/* --- the collecting end */

static void open_batch(struct pipeline *p, uint64_t t0_us)
{
	struct open_batch *b;

	p->n_open++;
	b = newest_batch(p);
	memset(b, 0, offsetof(struct open_batch, missed_start));
	b->ring_drops = b->dumps_interrupted = b->late_max_us = 0;
	memset(b->rows_dropped, 0, sizeof b->rows_dropped);
	b->clock_state = p->clock_state;
	b->clock_error_us = p->clock_error_us;
	b->t0_us = t0_us;
	p->now_us = t0_us;
	p->tick = 0;
	rows_keyframes(p);
	if (p->n_open == 1)
		settle_batch(p);
}

/* Ticks [b->ticks, end) of the newest batch went by unsampled. */
static void mark_missed(struct pipeline *p, uint32_t end)
{
	struct open_batch *b = newest_batch(p);

	if (end <= b->ticks)
		return;
	if (b->n_missed < PIPELINE_MAX_MISSED) {
		b->missed_start[b->n_missed] = b->ticks;
		b->missed_ticks[b->n_missed++] = end - b->ticks;
	}
	b->ticks = end;
}

/* Times before and after a step of the clock do not compare: everything counts as long ago. */
static void forget_times(struct pipeline *p)
{
	unsigned t, i;

	for (t = 0; t < OAL_N_TABLES; t++)
		for (i = 0; i < p->dedup[t].max; i++)
			p->dedup[t].entities[i].row_us = p->dedup[t].entities[i].sampled_us = 0;
	for (i = 0; i < p->flows.touched; i++) {
		p->flow_entities[2 * i].row_us = p->flow_entities[2 * i + 1].row_us = 0;
		p->flows.flows[i].last_us = p->flows.flows[i].closing_us = 0;
	}
	stations_forget_times(&p->stations);
	senders_sweep(&p->senders, UINT64_MAX);
	p->settled_us = p->closed_t0_us = 0;
}

/* Ends all open batches where they are. */
static void end_batches(struct pipeline *p)
{
	if (!p->n_open)
		return;
	settle(p, batch_nominal_end(p, newest_batch(p)), p->now_us + 1);
	/* What came later than the batch could hold has no batch to go to. */
	count_dropped(p, newest_batch(p), OAL_TOPIC_PACKETS, p->staged_end - p->staged_at);
	p->staged_at = p->staged_end = 0;
	batch_close(p, UINT64_MAX);
	forget_times(p);
}

void pipeline_tick(struct pipeline *p, uint64_t due_us, uint32_t missed_before, uint32_t late_us)
{
	const uint64_t settle_us = (uint64_t)p->c.settle_ticks * p->c.tick_us;
	struct open_batch *b;
	bool first;

	p->stats.ticks += 1 + (uint64_t)missed_before;
	p->stats.ticks_missed += missed_before;
	if (late_us > p->stats.tick_late_max_us)
		p->stats.tick_late_max_us = late_us;
	/* The clock was stepped, or the daemon stood still: no row of this hole could be told from a guess. */
	if (p->n_open && (due_us < p->due_us || due_us - p->due_us > OAL_SETTING_FEATURE_GAP_US))
		end_batches(p);
	first = !p->n_open;
	if (first)
		open_batch(p, due_us);
	while (due_us >= batch_nominal_end(p, newest_batch(p))) {
		const uint64_t end_us = batch_nominal_end(p, newest_batch(p));

		mark_missed(p, p->c.batch_ticks);
		/* Batches shorter than the settling time's slack: only by odd settings. */
		if (p->n_open == PIPELINE_MAX_OPEN)
			settle(p, newest_batch(p)->t0_us, newest_batch(p)->t0_us);
		open_batch(p, end_us);
	}
	b = newest_batch(p);
	p->due_us = due_us;
	p->tick = (uint32_t)((due_us - b->t0_us) / p->c.tick_us);
	p->now_us = b->t0_us + (uint64_t)p->tick * p->c.tick_us;
	mark_missed(p, p->tick);
	if (b->ticks == p->tick)
		b->ticks++;
	if (late_us > b->late_max_us)
		b->late_max_us = late_us;
	if (p->c.consumer.begin_tick)
		p->c.consumer.begin_tick(p->c.consumer.ctx);
	if (!first) /* decisions that come of it are events of this tick */
		settle(p, due_us - settle_us, due_us - settle_us);
	if (p->c.consumer.end_tick)
		p->c.consumer.end_tick(p->c.consumer.ctx, due_us);
}

uint32_t pipeline_until_decision(const struct pipeline *p)
{
	/* Instants before this are settled by a tick that is due at `due_us` (pipeline_tick()). */
	const uint64_t at_us = p->instant_us + p->c.settle_ticks * p->c.tick_us;

	return p->n_open && at_us > p->due_us ? (uint32_t)(at_us - p->due_us) / p->c.tick_us + 1 : 1;
}

/* --- news, and what was counted */

void pipeline_station_addr(struct pipeline *p, const uint8_t *ip, int ip_len, uint64_t mac)
{
	if (ip_len == 4 || ip_len == 16)
		stations_address(&p->stations, ip, (unsigned)ip_len, mac);
}

void pipeline_account(struct pipeline *p, uint32_t ring_drops, uint32_t dumps_interrupted, uint8_t clock_state,
		      uint32_t clock_error_us)
{
	p->stats.ring_drops += ring_drops;
	p->stats.dumps_interrupted += dumps_interrupted;
	p->clock_state = clock_state;
	p->clock_error_us = clock_error_us;
	if (p->n_open) {
		struct open_batch *b = newest_batch(p);

		b->ring_drops += ring_drops;
		b->dumps_interrupted += dumps_interrupted;
		if (clock_state > b->clock_state) /* the worst of the batch: stepped, then unsynchronised */
			b->clock_state = clock_state;
		if (clock_error_us > b->clock_error_us)
			b->clock_error_us = clock_error_us;
	}
}

void pipeline_stats(const struct pipeline *p, struct pipeline_stats *out)
{
	*out = p->stats;
	out->flows = p->flows.used;
	out->stations_bypassed = stations_n_bypassed(&p->stations);
}

const uint64_t *pipeline_skipped(const struct pipeline *p)
{
	return p->skipped;
}

void pipeline_stats_reset_max(struct pipeline *p)
{
	p->stats.tick_late_max_us = 0;
}

void pipeline_flush(struct pipeline *p)
{
	end_batches(p);
}
