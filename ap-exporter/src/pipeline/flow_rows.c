#include "pipeline/flow_rows.h"

#include <string.h>

#include "pipeline/pipeline_state.h"

void flow_rows_pseudonymise(const struct pipeline *p, uint8_t *addr, unsigned len)
{
	uint8_t input[17] = {0};
	unsigned i, k;

	memcpy(input, addr, len);
	for (i = 0; i < len; i += 8) {
		uint64_t h;

		input[len] = (uint8_t)i; /* both halves of a long address depend on all of it */
		h = siphash(p->key, input, len + 1);
		for (k = i; k < len && k < i + 8; k++, h >>= 8)
			addr[k] = (uint8_t)h;
	}
}

void flow_rows_describe(const struct pipeline *p, const struct flow *f, struct batch_flow *d)
{
	d->addr_len = f->addr_len;
	memcpy(d->client_addr, f->client_addr, 16);
	memcpy(d->server_addr, f->server_addr, 16);
	if (p->c.pseudonym_key) {
		flow_rows_pseudonymise(p, d->client_addr, d->addr_len);
		flow_rows_pseudonymise(p, d->server_addr, d->addr_len);
	}
	d->client_port = f->client_port;
	d->server_port = f->server_port;
	d->protocol = 6;
	d->station_mac = f->station_mac;
}

/* Writes what is known of a flow's direction into the oldest batch. */
static void push(struct pipeline *p, unsigned entity, uint32_t tick)
{
	struct flow_entity *e = &p->flow_entities[entity];
	const uint64_t t_us = oldest_batch(p)->t0_us + (uint64_t)tick * p->c.tick_us;
	struct row_ring *ring = &p->rings[OAL_FLOW];
	struct oal_flow_row *row;

	e->known.tick = tick;
	if (e->row_us == t_us && row_ring_open(ring, e->row))
		row = row_ring_at(ring, e->row);
	else
		row = row_ring_push(ring, entity, t_us, &e->row);
	e->unsent = !row;
	if (!row) {
		count_dropped(p, oldest_batch(p), OAL_TOPIC_PACKETS, 1);
		return;
	}
	*row = e->known;
	e->row_us = t_us;
}

void flow_rows_keyframes(struct pipeline *p)
{
	unsigned i;

	for (i = 0; i < 2 * p->flows.touched; i++)
		if (p->flow_entities[i].live)
			push(p, i, 0);
}

void flow_rows_wake(struct pipeline *p, unsigned entity, uint64_t t_us)
{
	struct flow_entity *e = &p->flow_entities[entity];
	const struct open_batch *b = oldest_batch(p);
	uint64_t tick = (t_us - b->t0_us) / p->c.tick_us;

	e->live = true;
	if (!e->known.sent_pkts)
		e->known.absent = OAL_FLOW_ABSENT_RWND_BYTES;
	e->known.flow = (uint16_t)(entity / 2);
	e->known.direction = entity % 2;
	memset(p->flows.flows[entity / 2].dir[entity % 2].history, 0, sizeof p->flows.flows->dir->history);
	p->flows.flows[entity / 2].dir[entity % 2].history_n = 0;
	/* Not at or before an instant that was evaluated; and the next batch begins with such a row anyway. */
	if (b->t0_us + tick * p->c.tick_us + OAL_SETTING_DECISION_INTERVAL_US <= p->instant_us)
		tick++;
	if (tick < p->c.batch_ticks)
		push(p, entity, (uint32_t)tick);
}

static bool flow_row_changed(const struct oal_flow_row *a, const struct oal_flow_row *b)
{
	return a->absent != b->absent || a->sent_bytes != b->sent_bytes || a->sent_pkts != b->sent_pkts ||
	       a->retrans_bytes != b->retrans_bytes || a->retrans_pkts != b->retrans_pkts ||
	       a->delivered_bytes != b->delivered_bytes || a->dup_acks != b->dup_acks ||
	       a->unacked_bytes != b->unacked_bytes || a->rwnd_bytes != b->rwnd_bytes ||
	       a->rtt_down_us != b->rtt_down_us || a->rtt_up_us != b->rtt_up_us ||
	       a->delivery_rate_kbps != b->delivery_rate_kbps;
}

static void sample_flow(struct pipeline *p, unsigned i, unsigned direction, uint32_t tick)
{
	struct flow *f = &p->flows.flows[i];
	const struct flow_direction *d = &f->dir[direction];
	struct flow_entity *e = &p->flow_entities[2 * i + direction];
	const bool has_rwnd = flow_has_rwnd(f, direction);
	struct oal_flow_row row = {.absent = has_rwnd ? 0 : OAL_FLOW_ABSENT_RWND_BYTES,
				   .flow = (uint16_t)i,
				   .direction = (uint8_t)direction,
				   .sent_bytes = d->sent_bytes,
				   .sent_pkts = d->sent_pkts,
				   .retrans_bytes = d->retrans_bytes,
				   .retrans_pkts = d->retrans_pkts,
				   .delivered_bytes = d->delivered_bytes,
				   .dup_acks = d->dup_acks,
				   .unacked_bytes = flow_unacked(d),
				   .rwnd_bytes = has_rwnd ? d->rwnd_bytes : 0,
				   .rtt_down_us = d->srtt_us,
				   .rtt_up_us = f->dir[!direction].srtt_us,
				   .delivery_rate_kbps =
					   flow_delivery_kbps(f, direction, OAL_SETTING_DECISION_INTERVAL_US)};

	p->stats.rows_sampled++;
	if (!e->unsent && !flow_row_changed(&row, &e->known))
		return;
	e->known = row;
	push(p, 2 * i + direction, tick);
}

void flow_rows_sample(struct pipeline *p, uint64_t instant_us)
{
	const uint32_t tick = (uint32_t)((instant_us - oldest_batch(p)->t0_us) / p->c.tick_us);
	uint16_t i;

	for (i = p->flows.newest;
	     i != FLOW_NONE &&
	     p->flows.flows[i].last_us + FLOW_ROWS_QUIET_US + OAL_SETTING_DECISION_INTERVAL_US >= instant_us;
	     i = p->flows.flows[i].older) {
		struct flow *f = &p->flows.flows[i];

		if (!f->station_mac)
			f->station_mac = stations_of(&p->stations, f->client_mac, f->client_addr, f->addr_len);
		if (p->flow_entities[2 * i].live)
			sample_flow(p, i, 0, tick);
		if (p->flow_entities[2 * i + 1].live)
			sample_flow(p, i, 1, tick);
	}
}

void pipeline_flows_end(struct pipeline *p)
{
	unsigned i;

	for (i = 0; i < 2 * p->flows.touched; i++)
		p->flow_entities[i].live = false;
}
