#include "pipeline/packets.h"

#include <string.h>

#include "packet/packet.h"
#include "pipeline/flow_rows.h"
#include "pipeline/pipeline_state.h"

/* Room for one more packet at the end of the staging list; NULL when there is none. */
static struct packet *stage(struct pipeline *p)
{
	if (p->staged_end == p->staged_max && p->staged_at) {
		memmove(p->staged, p->staged + p->staged_at, (p->staged_end - p->staged_at) * sizeof *p->staged);
		p->staged_end -= p->staged_at;
		p->staged_at = 0;
	}
	return p->staged_end < p->staged_max ? &p->staged[p->staged_end] : NULL;
}

void pipeline_frame(struct pipeline *p, const uint8_t *frame, uint32_t caplen, uint32_t wirelen, uint64_t t_us,
                    enum pipeline_direction direction)
{
	struct packet *k = stage(p);
	enum packet_reason used, reason;

	p->stats.packets++;
	if (!k) {
		if (p->n_open)
			count_dropped(p, newest_batch(p), OAL_TOPIC_PACKETS, 1);
		return;
	}
	reason = packet_parse(k, PACKET_LINK_ETHERNET, frame, caplen, wirelen, &used);
	p->skipped[reason ? reason : used]++;
	if (reason) {
		p->stats.packets_skipped++;
		return;
	}
	k->t_us = t_us;
	k->direction = (uint8_t)direction;
	p->staged_end++;
}

void pipeline_packet(struct pipeline *p, const struct packet *packet)
{
	struct packet *k = stage(p);

	p->stats.packets++;
	if (!k) {
		if (p->n_open)
			count_dropped(p, newest_batch(p), OAL_TOPIC_PACKETS, 1);
		return;
	}
	*k = *packet;
	p->skipped[PACKET_OK]++;
	p->staged_end++;
}

void pipeline_skipped_frame(struct pipeline *p, unsigned reason)
{
	p->stats.packets++;
	p->stats.packets_skipped++;
	p->skipped[reason < PACKET_N_REASONS ? reason : PACKET_BAD_HEADER]++;
}

/* A flow's number for a new flow when all are taken: that of the flow longest without a packet, if nothing refers to
 * it. */
static bool evict_flow(struct pipeline *p)
{
	const uint16_t i = p->flows.oldest;
	const struct flow_entity *e = &p->flow_entities[2 * i];

	if (i == FLOW_NONE || e[0].live || e[1].live || e[0].row_us >= p->closed_t0_us ||
	    e[1].row_us >= p->closed_t0_us || p->flows.flows[i].last_us >= oldest_batch(p)->t0_us)
		return false;
	flow_remove(&p->flows, i);
	p->stats.flows_evicted++;
	return true;
}

/* What belongs to a new flow beside the table: its number for other systems, and no rows yet. */
static void describe_flow(struct pipeline *p, uint16_t i)
{
	struct batch_flow named;

	memset(&p->flow_entities[2 * i], 0, 2 * sizeof *p->flow_entities);
	flow_rows_describe(p, &p->flows.flows[i], &named);
	p->flow_entities[2 * i].flow_id = batch_flow_id(&named);
}

static uint16_t flow_of(struct pipeline *p, struct packet *k)
{
	const bool unknown = k->direction > PIPELINE_UP;
	uint16_t i;

	if (unknown)
		k->direction = (uint8_t)packet_guess_direction(k);
	i = flow_find(&p->flows, k);
	if (i == FLOW_NONE && unknown) { /* unless the flow is known the other way round, the guess stands */
		k->direction = !k->direction;
		i = flow_find(&p->flows, k);
		if (i == FLOW_NONE) {
			k->direction = !k->direction;
			p->stats.packets_guessed += !(k->flags & PACKET_SYN);
		}
	}
	if (i != FLOW_NONE)
		return i;
	if (flow_table_full(&p->flows) && !evict_flow(p))
		return FLOW_NONE;
	i = flow_add(&p->flows, k);
	describe_flow(p, i);
	p->flows.flows[i].station_mac =
		stations_of(&p->stations, p->flows.flows[i].client_mac, p->flows.flows[i].client_addr, k->addr_len);
	return i;
}

/* SYNs that the earlier data path held and had not looked at yet. */
static void adopt_staged(struct pipeline *p, const struct pipeline *before)
{
	unsigned k;

	for (k = before->staged_at; k < before->staged_end; k++) {
		struct packet syn = before->staged[k];
		struct flow *f;
		uint16_t i;

		if (!(syn.flags & PACKET_SYN) || (i = flow_of(p, &syn)) == FLOW_NONE)
			continue;
		f = &p->flows.flows[i];
		if (!(syn.flags & PACKET_ACK)) /* another connection on these ports */
			f->scale_state[0] = f->scale_state[1] = FLOW_SCALE_UNKNOWN;
		flow_learn_syn(f, &syn);
		f->last_us = syn.t_us;
	}
}

void pipeline_adopt_flows(struct pipeline *p, const struct pipeline *before)
{
	const struct flow_table *from = &before->flows;
	unsigned skip = from->used > p->flows.max ? from->used - p->flows.max : 0;
	uint16_t i;

	for (i = from->oldest; i != FLOW_NONE; i = from->flows[i].newer) {
		uint16_t adopted;

		if (skip) {
			skip--;
			continue;
		}
		if (from->flows[i].closing)
			continue;
		adopted = flow_adopt(&p->flows, &from->flows[i]);
		if (adopted != FLOW_NONE)
			describe_flow(p, adopted);
	}
	adopt_staged(p, before);
}

void packets_settle(struct pipeline *p, struct packet *k)
{
	struct open_batch *b = oldest_batch(p);
	struct oal_packet_row *row;
	uint32_t number;
	uint16_t i;

	p->stats.rows_sampled++;
	/* Processors stamp packets a little out of order; a late one would belong to what has left already. */
	if (k->t_us < p->settled_us) {
		p->stats.packets_late += p->settled_us - k->t_us > p->c.tick_us;
		k->t_us = p->settled_us;
	}
	p->settled_us = k->t_us;
	i = flow_of(p, k);
	if (i == FLOW_NONE) {
		count_dropped(p, b, OAL_TOPIC_PACKETS, 1);
		return;
	}
	if (k->payload_bytes && !p->flow_entities[2 * i + k->direction].live)
		flow_rows_wake(p, 2u * i + k->direction, k->t_us);
	flow_packet(&p->flows, i, k);
	stations_touch(&p->stations, p->flows.flows[i].station_mac, k->t_us);
	row = row_ring_push(&p->rings[OAL_PACKET], 2u * i + k->direction, k->t_us, &number);
	if (!row) {
		count_dropped(p, b, OAL_TOPIC_PACKETS, 1);
		return;
	}
	*row = (struct oal_packet_row){.absent = k->has_ts ? 0 : OAL_PACKET_ABSENT_TS_VAL | OAL_PACKET_ABSENT_TS_ECR,
				       .flow = i,
				       .direction = k->direction,
				       .t_us = (int64_t)(k->t_us - b->t0_us),
				       .seq = k->seq,
				       .ack = k->ack,
				       .payload_bytes = k->payload_bytes,
				       .window_raw = k->window_raw,
				       .flags = k->flags,
				       .syn_options = k->syn_options,
				       .wscale = k->wscale,
				       .mss_bytes = k->mss_bytes,
				       .sack_blocks = k->sack_blocks,
				       .ts_val = k->ts_val,
				       .ts_ecr = k->ts_ecr,
				       .ip_ecn = k->ip_ecn};
}
