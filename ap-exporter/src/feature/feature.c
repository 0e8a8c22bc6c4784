#include "feature/feature_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void *allocate(struct feature *f, size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size);

	if (p)
		f->memory += n * size;
	return p;
}

static unsigned places_of(const struct input *in, const struct feature_space *space)
{
	return in->event ? 1 : (space->entities + in->shift) >> in->shift;
}

static struct input *find_input(struct feature *f, const int64_t *w, const struct feature_space *space)
{
	const struct oal_table *t = &oal_tables[w[OAL_W_TABLE]];
	const struct oal_column *c = &t->columns[w[OAL_W_COLUMN]];
	const struct oal_column *filter = w[OAL_W_FILTER_COLUMN] >= 0 ? &t->columns[w[OAL_W_FILTER_COLUMN]] : NULL;
	struct input *in;
	unsigned i, n;

	for (i = 0; i < f->n_inputs[t->id]; i++) {
		in = f->inputs[t->id][i];
		if (in->offset == c->offset && in->filter_offset == (filter ? filter->offset : -1) &&
		    (!filter || in->filter_value == w[OAL_W_FILTER_VALUE]))
			return in;
	}
	in = allocate(f, 1, sizeof *in);
	if (!in)
		return NULL;
	f->inputs[t->id][f->n_inputs[t->id]++] = in;
	in->offset = c->offset;
	in->type = c->type;
	in->counter_bits = c->kind == OAL_COUNTER ? c->counter_bits : 0;
	in->event = t->event;
	in->absent_bit = c->optional >= 0 ? UINT32_C(1) << c->optional : 0;
	in->filter_offset = -1;
	if (filter) {
		in->filter_offset = filter->offset;
		in->filter_type = filter->type;
		in->filter_value = w[OAL_W_FILTER_VALUE];
	}
	in->shift = !t->event && filter && space->low_bit_column == w[OAL_W_FILTER_COLUMN];
	n = places_of(in, space);
	in->places = allocate(f, n, sizeof *in->places);
	in->live = allocate(f, n, sizeof *in->live);
	return in->places && in->live ? in : NULL;
}

/* An earlier feature that reads the same in the same way, or the feature itself. */
static struct base *find_reader(struct feature *f, uint32_t i)
{
	const int64_t *w = f->program->words[i], *v;
	uint32_t k;

	for (k = 0; k < i; k++) {
		v = f->program->words[k];
		if (f->base[k].reads == &f->base[k] && !memcmp(v, w, OAL_W_GROUP * sizeof *w) &&
		    !memcmp(v + OAL_W_WINDOW, w + OAL_W_WINDOW, (OAL_W_LO - OAL_W_WINDOW) * sizeof *w))
			return &f->base[k];
	}
	return &f->base[i];
}

/* Room for the values of its entities: one by one. */
static int keep(struct feature *f, struct base *reader, unsigned n_places)
{
	if (!reader->kept && reader->op != OAL_OP_LAST)
		reader->kept = allocate(f, n_places, sizeof *reader->kept);
	return reader->kept || reader->op == OAL_OP_LAST ? 0 : -ENOMEM;
}

/* Prepares what the group of feature `i` needs. */
static int new_group(struct feature *f, uint32_t i, const struct feature_space *space)
{
	static const uint8_t wants[] = {
		[OAL_GROUP_SUM] = WANT_SUM, [OAL_GROUP_MAX] = WANT_MAX, [OAL_GROUP_MIN] = WANT_MIN,
		[OAL_GROUP_MEAN] = WANT_SUM, [OAL_GROUP_COUNT] = WANT_POSITIVE, [OAL_GROUP_TOTAL] = WANT_SUM,
	};
	const int64_t group = f->program->words[i][OAL_W_GROUP];
	struct base *b = &f->base[i], *by;
	const unsigned n = places_of(b->input, space);

	if (group < OAL_GROUP_AT) {
		b->reads->wants |= wants[group];
		return 0;
	}
	by = &f->base[group - OAL_GROUP_AT];
	if (!by->chosen)
		by->chosen = allocate(f, n, sizeof *by->chosen);
	return by->chosen && !keep(f, b->reads, n) && !keep(f, by->reads, n) ? 0 : -ENOMEM;
}

static int new_base(struct feature *f, uint32_t i, const struct feature_space *spaces)
{
	const int64_t *w = f->program->words[i];
	const struct feature_space *space = &spaces[w[OAL_W_TABLE]];
	struct input *in = find_input(f, w, space);
	struct base *b = &f->base[i];

	if (!in)
		return -ENOMEM;
	b->input = in;
	b->reads = find_reader(f, i);
	b->op = (uint8_t)w[OAL_W_OP];
	b->group = (uint8_t)w[OAL_W_GROUP];
	b->window = (uint8_t)w[OAL_W_WINDOW];
	b->scaled = w[OAL_W_A] != 1 || w[OAL_W_B] != 1;
	b->narrow = !b->scaled && !in->event && oal_tables[w[OAL_W_TABLE]].columns[w[OAL_W_COLUMN]].size <= 4;
	if (new_group(f, i, space))
		return -ENOMEM;
	if (b->op == OAL_OP_LAST || b->reads != b)
		return 0;
	in->features[in->n_features++] = (uint8_t)i;
	/* A window of one bucket keeps no closed one. */
	b->n_words = b->op == OAL_OP_MEAN ? (uint8_t)(2 * b->window) : b->window == 1 ? 0 : b->window;
	b->constant_limit = b->op == OAL_OP_MEAN ? INT64_MAX / (b->window * f->program->decision_interval_us)
	                                         : INT64_MAX;
	b->stride = sizeof(struct cell) + (b->n_words + (b->op == OAL_OP_MEAN ? MEAN_BUCKETS : 0)) * sizeof(int64_t);
	b->cells = allocate(f, places_of(in, space), b->stride);
	return b->cells ? 0 : -ENOMEM;
}

/* The place of a feature among those whose earlier results are kept. */
static uint8_t look_up(struct feature *f, uint8_t operand)
{
	uint8_t i = 0;

	while (i < f->n_looked_up && f->looked_up[i] != operand)
		i++;
	if (i == f->n_looked_up)
		f->looked_up[f->n_looked_up++] = operand;
	return i;
}

int feature_new(struct feature **out, const struct oal_feature_program *p,
                const struct feature_space spaces[OAL_N_TABLES])
{
	struct feature *f;
	unsigned t;
	uint32_t i;

	if (feature_program_check(p))
		return -EINVAL;
	f = calloc(1, sizeof *f);
	if (!f)
		return -ENOMEM;
	f->memory = sizeof *f;
	f->program = p;
	f->next_us = UINT64_MAX;
	for (t = 0; t < OAL_N_TABLES; t++) {
		struct entities *e = &f->entities[t];

		e->n_slots = oal_tables[t].event ? 1 : spaces[t].entities;
		e->live = allocate(f, e->n_slots, sizeof *e->live);
		e->position = allocate(f, e->n_slots, sizeof *e->position);
		if (!e->live || !e->position)
			goto no_memory;
	}
	for (i = 0; i < p->n; i++)
		if (p->words[i][OAL_W_OP] < FIRST_DERIVED && new_base(f, i, spaces))
			goto no_memory;
	for (i = 0; i < p->n; i++)
		if (p->words[i][OAL_W_OP] == OAL_OP_LAG || p->words[i][OAL_W_OP] == OAL_OP_CHANGE)
			f->late[i] = look_up(f, (uint8_t)p->words[i][OAL_W_A]);
	f->history = allocate(f, (size_t)OAL_MAX_WINDOW * f->n_looked_up, sizeof *f->history);
	if (!f->history)
		goto no_memory;
	*out = f;
	return 0;
no_memory:
	feature_free(f);
	return -ENOMEM;
}

void feature_free(struct feature *f)
{
	unsigned i, k;

	if (!f)
		return;
	for (i = 0; i < OAL_N_TABLES; i++) {
		free(f->entities[i].live);
		free(f->entities[i].position);
		for (k = 0; k < f->n_inputs[i]; k++) {
			free(f->inputs[i][k]->places);
			free(f->inputs[i][k]->live);
			free(f->inputs[i][k]);
		}
	}
	for (i = 0; i < OAL_MAX_FEATURES; i++) {
		free(f->base[i].cells);
		free(f->base[i].kept);
		free(f->base[i].chosen);
	}
	free(f->history);
	free(f);
}

size_t feature_memory(const struct feature *f)
{
	return f->memory;
}

const struct oal_feature_program *feature_program(const struct feature *f)
{
	return f->program;
}

/* Has the entity a place there? With a shift, only the half that passes the filter. */
static inline bool has_place(const struct input *in, unsigned entity)
{
	return !in->shift || (entity & 1) == in->filter_value;
}

void feature_drop(struct feature *f, enum oal_table_id table, unsigned entity)
{
	struct entities *e = &f->entities[table];
	unsigned i, k, place;

	if (entity >= e->n_slots || !e->position[entity])
		return;
	place = e->position[entity] - 1u;
	e->live[place] = e->live[--e->n];
	e->position[e->live[place]] = (uint16_t)(place + 1);
	e->position[entity] = 0;
	for (i = 0; i < f->n_inputs[table]; i++) {
		struct input *in = f->inputs[table][i];
		struct place *p = &in->places[entity >> in->shift];
		uint16_t last;

		if (!has_place(in, entity) || !p->position)
			continue;
		last = in->live[--in->n_live];
		in->live[p->position - 1u] = last;
		in->places[last].position = p->position;
		p->position = 0;
		for (k = 0; k < in->n_features; k++)
			memset(cell_of(&f->base[in->features[k]], entity >> in->shift), 0,
			       f->base[in->features[k]].stride);
	}
}

void feature_restart(struct feature *f, uint64_t t0_us)
{
	const uint64_t interval = (uint64_t)f->program->decision_interval_us;
	unsigned t;

	for (t = 0; t < OAL_N_TABLES; t++)
		while (f->entities[t].n)
			feature_drop(f, t, f->entities[t].live[0]);
	memset(f->has_ewma, 0, sizeof f->has_ewma);
	f->n_history = f->history_at = 0;
	f->next_us = (t0_us + interval - 1) / interval * interval;
}

int feature_gap(const struct feature *f, uint64_t t0_us)
{
	uint64_t last_us = f->next_us - (uint64_t)f->program->decision_interval_us;

	return f->next_us == UINT64_MAX || t0_us > last_us + OAL_SETTING_FEATURE_GAP_US ||
	       t0_us + OAL_SETTING_FEATURE_GAP_US < last_us;
}

int feature_reads(const struct feature *f, enum oal_table_id table)
{
	return f->n_inputs[table] > 0;
}

uint64_t feature_next_us(const struct feature *f)
{
	return f->next_us;
}
