#include "pipeline/programs.h"

#include "feature/feature_vector.h"
#include "pipeline/pipeline_state.h"

void pipeline_feature_spaces(const struct pipeline *p, struct feature_space *spaces)
{
	unsigned entities[OAL_N_TABLES], rows[OAL_N_TABLES], t;

	pipeline_limits(&p->c, entities, rows);
	for (t = 0; t < OAL_N_TABLES; t++)
		spaces[t] = (struct feature_space){entities[t], t == OAL_FLOW ? OAL_FLOW_DIRECTION : -1};
}

struct feature_slot *pipeline_slot(struct pipeline *p, unsigned slot)
{
	return &p->slots[slot];
}

#ifdef HAVE_AGENT
int programs_start(struct pipeline *p)
{
	struct feature_space spaces[OAL_N_TABLES];
	int ret;

	if (!p->c.program)
		return 0;
	pipeline_feature_spaces(p, spaces);
	if ((ret = feature_slot_state(&p->slots[0].next, p->c.program, spaces)))
		return ret;
	feature_slot_advance(&p->slots[0]);
	p->stats.memory_bytes += feature_memory(p->slots[0].running);
	return 0;
}

bool programs_read(const struct pipeline *p, enum oal_table_id t)
{
	unsigned i;

	for (i = 0; i < PIPELINE_SLOTS; i++)
		if (p->slots[i].running && feature_reads(p->slots[i].running, t))
			return true;
	return false;
}

void programs_feed(struct pipeline *p, uint64_t end_us)
{
	unsigned t, i;

	for (t = 0; t < OAL_N_TABLES; t++) {
		struct row_ring *r = &p->rings[t];
		const uint32_t first = r->fed;

		if (!programs_read(p, t))
			continue; /* `fed` follows `batched` */
		for (i = 0; i < PIPELINE_SLOTS; i++) {
			struct feature *f = p->slots[i].running;

			if (!f || !feature_reads(f, t))
				continue;
			for (r->fed = first; r->fed != r->next && r->t_us[r->fed & r->mask] < end_us; r->fed++)
				feature_row(f, t, oal_tables[t].event ? 0 : r->entity[r->fed & r->mask],
					    row_ring_at(r, r->fed), r->t_us[r->fed & r->mask]);
		}
	}
}

void programs_drop(struct pipeline *p, enum oal_table_id t, unsigned entity)
{
	unsigned i;

	for (i = 0; i < PIPELINE_SLOTS; i++)
		if (p->slots[i].running)
			feature_drop(p->slots[i].running, t, entity);
}

/* The rows before this batch went to the old program; a new one starts with this batch's keyframes. */
void programs_begin_batch(struct pipeline *p, uint64_t t0_us)
{
	unsigned i;

	for (i = 0; i < PIPELINE_SLOTS; i++) {
		feature_slot_advance(&p->slots[i]);
		if (p->slots[i].running && feature_gap(p->slots[i].running, t0_us))
			feature_restart(p->slots[i].running, t0_us);
	}
}

void programs_evaluate(struct pipeline *p, uint64_t instant_us)
{
	const struct pipeline_consumer *to = &p->c.consumer;
	unsigned i;

	programs_feed(p, instant_us + 1);
	for (i = 0; i < PIPELINE_SLOTS; i++) {
		struct feature *f = p->slots[i].running;

		while (f && feature_next_us(f) <= instant_us) {
			const uint64_t start_ns = p->c.now_ns ? p->c.now_ns() : 0;
			struct feature_vector x = {.instant_us = feature_next_us(f),
						   .program_id = p->slots[i].program_id,
						   .n = feature_program(f)->n};

			x.values = feature_evaluate(f);
			if (p->c.now_ns)
				x.took_ns = (uint32_t)(p->c.now_ns() - start_ns);
			p->stats.decisions++;
			if (to->features)
				to->features(to->ctx, i, &x);
		}
	}
}

#else
/* Nothing in this build asks for features: it neither computes nor holds them. */
int programs_start(struct pipeline *p)
{
	return (void)p, 0;
}

bool programs_read(const struct pipeline *p, enum oal_table_id t)
{
	return (void)p, (void)t, false;
}

void programs_feed(struct pipeline *p, uint64_t end_us)
{
	(void)p, (void)end_us;
}

void programs_drop(struct pipeline *p, enum oal_table_id t, unsigned entity)
{
	(void)p, (void)t, (void)entity;
}

void programs_begin_batch(struct pipeline *p, uint64_t t0_us)
{
	(void)p, (void)t0_us;
}

void programs_evaluate(struct pipeline *p, uint64_t instant_us)
{
	(void)p, (void)instant_us;
}
#endif
