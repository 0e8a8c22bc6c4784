#include "feature/feature_state.h"

#include "wire/row_value.h"

static int64_t increment(int64_t old, int64_t now, unsigned counter_bits)
{
	const int64_t d = sat_sub(now, old);

	if (!counter_bits || d >= 0)
		return d;
	return counter_bits == 32 && d < -(INT64_C(1) << 31) ? d + (INT64_C(1) << 32) : now;
}

/* A new value `v` after `old`, which counts only if the entity was `live`. */
static inline void cell_row(uint8_t op, struct cell *c, bool live, int64_t old, int64_t v, unsigned counter_bits,
                            uint64_t t_us, int64_t bucket_us)
{
	switch (op) {
	case OAL_OP_DELTA: case OAL_OP_RATE:
		if (live)
			c->acc = sat_add(c->acc, increment(old, v, counter_bits));
		break;
	case OAL_OP_MAX:
		c->acc = !c->has_acc || v > c->acc ? v : c->acc;
		c->has_acc = 1;
		break;
	case OAL_OP_MIN:
		c->acc = !c->has_acc || v < c->acc ? v : c->acc;
		c->has_acc = 1;
		break;
	case OAL_OP_MEAN:
		if (c->buckets[MEAN_SINCE] < bucket_us) /* it was steady, and evaluations passed it over */
			c->buckets[MEAN_SINCE] = bucket_us;
		if (live)
			cell_integrate(c, old, t_us);
		c->buckets[MEAN_SINCE] = (int64_t)t_us;
		break;
	case OAL_OP_SUM:
		c->acc = sat_add(c->acc, v);
		break;
	default: /* COUNT */
		c->acc++;
		break;
	}
}

void feature_row(struct feature *f, enum oal_table_id table, unsigned entity, const void *row, uint64_t t_us)
{
	const uint8_t *const bytes = row;
	const uint32_t absent = *(const uint32_t *)row;
	struct entities *e = &f->entities[table];
	struct input *const *at = f->inputs[table], *const *const end = at + f->n_inputs[table];
	const int64_t bucket_us = (int64_t)f->next_us - f->program->decision_interval_us;

	if (entity >= e->n_slots)
		return;
	if (!e->position[entity]) {
		e->live[e->n++] = (uint16_t)entity;
		e->position[entity] = (uint16_t)e->n;
	}
	for (; at < end; at++) {
		struct input *in = *at;
		struct place *p;
		unsigned i;
		int64_t v;

		if (absent & in->absent_bit)
			continue;
		if (in->filter_offset >= 0 && row_load(bytes + in->filter_offset, in->filter_type) != in->filter_value)
			continue;
		v = row_load(bytes + in->offset, in->type);
		p = &in->places[entity >> in->shift];
		/* Most columns of a row are as they were. For a state that changes nothing: no increment, no new
		 * extreme, and the same value goes on being held. */
		if (p->value == v && p->position && !in->event)
			continue;
		for (i = 0; i < in->n_features; i++) {
			const struct base *b = &f->base[in->features[i]];

			cell_row(b->op, cell_of(b, entity >> in->shift), p->position, p->value, v, in->counter_bits,
			         t_us, bucket_us);
		}
		p->value = v;
		if (!p->position) {
			in->live[in->n_live++] = (uint16_t)(entity >> in->shift);
			p->position = (uint16_t)in->n_live;
		}
		p->changed = f->evaluations;
	}
}
