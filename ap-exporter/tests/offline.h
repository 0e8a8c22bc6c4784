/* offline.h: features of an AP from its batches, as the cluster computes them: decodes, sorts the rows by time, and
 * lets feature.c run over them. Compared with golden vectors, and with what the pipeline computed while it made the
 * batches. */
#ifndef OAL_OFFLINE_H
#define OAL_OFFLINE_H

#include "wire/batch_decode.h"
#include "check.h"
#include "feature/feature.h"

enum { OFFLINE_ENTITIES = 600, OFFLINE_ROWS = 60000, OFFLINE_KEYS = 6, OFFLINE_ROW_SIZE = 240 };

struct offline_entity {
	uint64_t keys[OFFLINE_KEYS];
	bool live, seen;
};
struct offline_row {
	uint64_t t_us;
	uint32_t table, order, entity;
	_Alignas(8) uint8_t bytes[OFFLINE_ROW_SIZE];
};
struct offline {
	struct feature *feature;
	uint64_t boot_id;
	bool any, open[OAL_N_TOPICS];
	struct offline_entity entities[OAL_N_TABLES][OFFLINE_ENTITIES];
	struct offline_row rows[OFFLINE_ROWS];
	size_t n_rows;
	void (*instant)(void *ctx, uint64_t t_us, const int64_t *x, unsigned n);
	void *ctx;
	unsigned n;
};

static struct offline *offline_new(const struct oal_feature_program *p,
                                   void (*instant)(void *, uint64_t, const int64_t *, unsigned), void *ctx)
{
	struct feature_space spaces[OAL_N_TABLES];
	unsigned i;
	struct offline *o = calloc(1, sizeof *o);

	for (i = 0; i < OAL_N_TABLES; i++)
		spaces[i] = (struct feature_space){OFFLINE_ENTITIES, -1};
	if (!o || feature_new(&o->feature, p, spaces))
		exit(1);
	o->instant = instant;
	o->ctx = ctx;
	o->n = p->n;
	return o;
}

static void offline_free(struct offline *o)
{
	feature_free(o->feature);
	free(o);
}

static uint64_t offline_hash(struct batch_span s)
{
	uint64_t h = 1469598103934665603u;
	size_t i;

	for (i = 0; i < s.len; i++)
		h = (h ^ s.at[i]) * 1099511628211u;
	return h;
}

static uint64_t offline_key(const struct batch_view *v, const struct oal_column *c, const uint8_t *row)
{
	const void *p = row + c->offset;
	const uint64_t n = c->size == 1   ? *(const uint8_t *)p
	                   : c->size == 2 ? *(const uint16_t *)p
	                   : c->size == 4 ? *(const uint32_t *)p
	                                  : *(const uint64_t *)p;
	struct batch_flow_cursor flows;
	struct batch_flow f = {0};
	uint64_t i;

	if (c->type == OAL_T_NAME)
		return offline_hash(batch_name(v, (uint32_t)n));
	if (c->type != OAL_T_FLOW)
		return n;
	for (batch_flows(&flows, v), i = 0; i <= n && batch_next_flow(&flows, &f); i++)
		;
	return f.flow_id;
}

static uint32_t offline_entity(struct offline *o, const struct batch_view *v, const struct oal_table *t,
                               const uint8_t *row)
{
	uint64_t keys[OFFLINE_KEYS] = {0};
	struct offline_entity *e = o->entities[t->id];
	unsigned i, unused = OFFLINE_ENTITIES;

	if (t->event)
		return 0;
	for (i = 0; i < t->n_keys; i++)
		keys[i] = offline_key(v, &t->columns[i], row);
	for (i = 0; i < OFFLINE_ENTITIES; i++) {
		if (e[i].live && !memcmp(e[i].keys, keys, sizeof keys))
			return i;
		if (!e[i].live && unused == OFFLINE_ENTITIES)
			unused = i;
	}
	if (unused == OFFLINE_ENTITIES)
		exit(1);
	e[unused].live = true;
	e[unused].seen = false;
	memcpy(e[unused].keys, keys, sizeof keys);
	return unused;
}

static void offline_evaluate(struct offline *o)
{
	const uint64_t t_us = feature_next_us(o->feature);

	o->instant(o->ctx, t_us, feature_evaluate(o->feature), o->n);
}

static void offline_sweep(struct offline *o, int topic)
{
	unsigned t, i;

	for (t = 0; t < OAL_N_TABLES; t++)
		for (i = 0; oal_tables[t].topic == topic && !oal_tables[t].event && i < OFFLINE_ENTITIES; i++) {
			struct offline_entity *e = &o->entities[t][i];

			if (e->live && !e->seen) {
				feature_drop(o->feature, t, i);
				e->live = false;
			}
			e->seen = false;
		}
}

static int offline_compare(const void *a, const void *b)
{
	const struct offline_row *x = a, *y = b;

	if (x->t_us != y->t_us)
		return x->t_us < y->t_us ? -1 : 1;
	if (x->table != y->table)
		return x->table < y->table ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static void offline_restart(struct offline *o, uint64_t t0_us)
{
	feature_restart(o->feature, t0_us);
	memset(o->entities, 0, sizeof o->entities);
	memset(o->open, 0, sizeof o->open);
}

/* The batches that share one t0_us. */
static void offline_feed(struct offline *o, const struct batch_view *views, unsigned n)
{
	struct batch_cursor c;
	unsigned i, t;
	size_t r;

	if (!o->any || views[0].boot_id != o->boot_id || feature_gap(o->feature, views[0].t0_us))
		offline_restart(o, views[0].t0_us);
	o->any = true;
	o->boot_id = views[0].boot_id;
	while (feature_next_us(o->feature) < views[0].t0_us)
		offline_evaluate(o);
	for (i = 0; i < n; i++) {
		if (o->open[views[i].topic])
			offline_sweep(o, views[i].topic);
		o->open[views[i].topic] = true;
	}
	o->n_rows = 0;
	for (i = 0; i < n; i++)
		for (t = 0; t < OAL_N_TABLES; t++)
			for (batch_rows(&c, &views[i], t);
			     o->n_rows < OFFLINE_ROWS && batch_next_row(&c, o->rows[o->n_rows].bytes); o->n_rows++) {
				struct offline_row *row = &o->rows[o->n_rows];

				row->table = t;
				row->order = (uint32_t)o->n_rows;
				row->t_us = batch_row_time_us(&views[i], t, row->bytes);
				row->entity = offline_entity(o, &views[i], &oal_tables[t], row->bytes);
				o->entities[t][row->entity].seen = true;
			}
	qsort(o->rows, o->n_rows, sizeof *o->rows, offline_compare);
	for (r = 0; r < o->n_rows; r++) {
		while (feature_next_us(o->feature) < o->rows[r].t_us)
			offline_evaluate(o);
		feature_row(o->feature, o->rows[r].table, o->rows[r].entity, o->rows[r].bytes, o->rows[r].t_us);
	}
}

#endif
