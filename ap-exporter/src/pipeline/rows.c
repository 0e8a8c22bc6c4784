#include "pipeline/rows.h"

#include <string.h>

#include "pipeline/pipeline_state.h"

/* What a row of the table drop_event names as its cause. */
enum { CAUSE_CODEL = 1, CAUSE_OVERLIMIT, CAUSE_QDISC, CAUSE_MAC };

void rows_find_columns(struct pipeline *p)
{
	unsigned t, i;

	for (t = 0; t < OAL_N_TABLES; t++)
		for (i = 0; i < oal_tables[t].n_columns; i++) {
			const struct oal_column *c = &oal_tables[t].columns[i];

			if (c->kind == OAL_TICK)
				p->tick_offset[t] = c->offset;
			if (!strcmp(c->name, "device"))
				p->device_offset[t] = c->offset;
		}
}

static void set_tick(const struct pipeline *p, enum oal_table_id t, void *row)
{
	*(uint32_t *)(void *)((uint8_t *)row + p->tick_offset[t]) = p->tick;
}

static void push_state(struct pipeline *p, enum oal_table_id t, unsigned slot)
{
	struct dedup_entity *e = &p->dedup[t].entities[slot];
	struct row_ring *ring = &p->rings[t];
	void *row;

	if (e->row_us == p->now_us && row_ring_open(ring, e->row))
		row = row_ring_at(ring,
				  e->row); /* the batch's keyframe, made at this tick from what was known before */
	else
		row = row_ring_push(ring, slot, p->now_us, &e->row);
	e->unsent = !row;
	if (!row) {
		count_dropped(p, newest_batch(p), oal_tables[t].topic, 1);
		return;
	}
	memcpy(row, dedup_known(&p->dedup[t], slot), ring->table->row_size);
	e->row_us = p->now_us;
}

void rows_keyframes(struct pipeline *p)
{
	unsigned t, i;

	for (t = 0; t < OAL_N_TABLES; t++)
		for (i = 0; table_is_state(t) && i < p->dedup[t].max; i++)
			if (p->dedup[t].entities[i].state == DEDUP_LIVE) {
				set_tick(p, t, dedup_known(&p->dedup[t], i));
				push_state(p, t, i);
			}
}

/* Growth of a loss counter; as features count increments. */
static uint32_t growth(uint32_t old, uint32_t now)
{
	return now >= old ? now - old : old - now > UINT32_C(1) << 31 ? now - old : now;
}

/* An event of this tick; `row` but for its tick. */
static void push_event(struct pipeline *p, enum oal_table_id t, const void *row)
{
	struct dedup *d = table_is_keyed_event(t) ? &p->dedup[t] : NULL;
	int slot = d ? dedup_find(d, row) : 0;
	uint32_t number;
	void *out;

	if (slot < 0)
		slot = dedup_add(d, row);
	out = slot < 0 ? NULL : row_ring_push(&p->rings[t], (unsigned)slot, p->now_us, &number);
	if (!out) {
		count_dropped(p, newest_batch(p), oal_tables[t].topic, 1);
		return;
	}
	memcpy(out, row, oal_tables[t].row_size);
	set_tick(p, t, out);
	if (d)
		d->entities[slot].row_us = p->now_us;
}

static void push_drop(struct pipeline *p, unsigned cause, uint16_t device, uint64_t mac, uint32_t queue, uint32_t count)
{
	const struct oal_drop_event_row row = {
		.cause = (uint8_t)cause, .device = device, .mac = mac, .queue = queue, .count = count};

	if (count)
		push_event(p, OAL_DROP_EVENT, &row);
}

/* The counter grew between two rows of which both have it: one that appears with a value says nothing of drops. */
#define GREW(a, b, column, bit) ((a)->column != (b)->column && !(((a)->absent | (b)->absent) & (bit)))

static void derive_drops(struct pipeline *p, enum oal_table_id t, const void *before, const void *now)
{
	if (t == OAL_STATION) {
		const struct oal_station_row *a = before, *b = now;

		if (GREW(a, b, tx_failed, OAL_STATION_ABSENT_TX_FAILED))
			push_drop(p, CAUSE_MAC, b->device, b->mac, 0, growth(a->tx_failed, b->tx_failed));
	} else if (t == OAL_STATION_AC) {
		const struct oal_station_ac_row *a = before, *b = now;

		if (GREW(a, b, drops, OAL_STATION_AC_ABSENT_DROPS))
			push_drop(p, CAUSE_CODEL, b->device, b->mac, b->ac, growth(a->drops, b->drops));
		if (GREW(a, b, overlimit, OAL_STATION_AC_ABSENT_OVERLIMIT))
			push_drop(p, CAUSE_OVERLIMIT, b->device, b->mac, b->ac, growth(a->overlimit, b->overlimit));
	} else if (t == OAL_QUEUE) {
		const struct oal_queue_row *a = before, *b = now;

		/* mq only adds up its children, which are reported themselves. */
		if (a->drops != b->drops && strncmp(names_get(&p->names, b->kind), "mq", 2))
			push_drop(p, CAUSE_QDISC, b->device, 0, b->handle, growth(a->drops, b->drops));
	}
}

void pipeline_row(struct pipeline *p, enum oal_table_id t, const void *row)
{
	struct dedup *d = &p->dedup[t];
	struct dedup_entity *e;
	bool send;
	int slot;

	if (!p->n_open)
		return;
	p->stats.rows_sampled++;
	if (oal_tables[t].topic == OAL_TOPIC_EVENTS) {
		push_event(p, t, row);
		return;
	}
	if (!table_is_state(t))
		return;
	slot = dedup_find(d, row);
	if (slot < 0) {
		slot = dedup_add(d, row);
		if (slot < 0) {
			p->stats.entities_refused++;
			count_dropped(p, newest_batch(p), oal_tables[t].topic, 1);
			return;
		}
		if (t == OAL_STATION)
			stations_add(&p->stations, ((const struct oal_station_row *)row)->mac);
		e = &d->entities[slot];
		send = true;
	} else {
		e = &d->entities[slot];
		/* At the batch's first tick the keyframe is rewritten even if only what does not count has changed. */
		send = e->unsent || e->state == DEDUP_GONE || dedup_changed(d, (unsigned)slot, row) ||
		       e->row_us == p->now_us;
		if (send)
			derive_drops(p, t, dedup_known(d, (unsigned)slot), row);
		e->state = DEDUP_LIVE;
		memcpy(dedup_known(d, (unsigned)slot), row, d->table->row_size);
	}
	set_tick(p, t, dedup_known(d, (unsigned)slot));
	e->sampled_us = p->now_us;
	if (send)
		push_state(p, t, (unsigned)slot);
}

void pipeline_gone(struct pipeline *p, enum oal_table_id t, const void *row)
{
	int slot;

	if (!table_is_state(t) || (slot = dedup_find(&p->dedup[t], row)) < 0)
		return;
	p->dedup[t].entities[slot].state = DEDUP_GONE;
}

void pipeline_gone_before(struct pipeline *p, enum oal_table_id t, uint16_t device, uint64_t since_us)
{
	struct dedup *d = &p->dedup[t];
	unsigned i;

	for (i = 0; table_is_state(t) && i < d->max; i++) {
		struct dedup_entity *e = &d->entities[i];

		if (e->state == DEDUP_LIVE && e->sampled_us < since_us &&
		    *(const uint16_t *)(const void *)((const uint8_t *)dedup_known(d, i) + p->device_offset[t]) ==
			    device)
			e->state = DEDUP_GONE;
	}
}
