#include "model/feature.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"

/* Results of entities are kept within this, so that a sum over entities cannot saturate. */
#define ENTITY_LIMIT (INT64_C(1) << 53)
enum { MAX_EWMA_SHIFT = 16, FIRST_DERIVED = OAL_OP_RATIO };

/* A bucket beyond this might make the sum over a window saturate, and then the order of its buckets matters. */
#define LARGE_BUCKET (INT64_C(1) << 56)

/* One feature at one entity: as many words as its operator needs. */
struct cell {
	int64_t acc; /* of the open bucket */
	uint64_t total; /* of the ring, modulo 2^64; exact while no bucket in it is large */
	uint8_t has_acc;
	uint8_t large; /* buckets until the last large one has left the ring */
	uint8_t ring_n, ring_at; /* of MAX, MIN and MEAN; the others' ring is full of zeros at first, and turns with base.ring_at */
	int64_t ring[]; /* closed buckets; for MEAN after two words more */
};
/* MEAN's further words, and its ring of pairs (integral, µs). */
enum { MEAN_HELD, MEAN_SINCE, MEAN_RING };

/* Live entities of a table, so that evaluation does not look at empty slots. */
struct entities {
	unsigned n, n_slots;
	uint16_t *live; /* n slots */
	uint16_t *position; /* slot → place in `live` + 1, or 0 */
};

/* An entity's latest value of a column. */
struct place {
	int64_t value;
	uint32_t changed; /* feature.evaluations at its last row that was not the same as the one before */
	uint16_t position; /* in input.live + 1; 0: it has no value */
};

/* A column under a filter. Features that read the same share it, so that a row is looked at once for all of them. */
struct input {
	uint16_t offset;
	uint8_t type, counter_bits, filter_type;
	uint8_t shift; /* of an entity's number, to its place here */
	bool event;
	int32_t filter_offset; /* −1: none */
	int64_t filter_value;
	uint32_t absent_bit;
	uint8_t n_features, features[OAL_MAX_FEATURES]; /* but LAST, which needs no more than `value` */
	struct place *places; /* per entity */
	uint16_t *live; /* places with a value */
	unsigned n_live;
};

struct base {
	uint8_t op, group;
	uint8_t n_ring; /* words */
	uint8_t window;
	uint8_t ring_at; /* where the next bucket goes; not of MAX, MIN and MEAN */
	bool scaled; /* has a factor or divisor */
	bool sums; /* its group is a sum or a mean */
	bool narrow; /* its values have at most 32 bits and no factor: within ENTITY_LIMIT, and no sum of them can saturate */
	int64_t constant_limit; /* a window of any constant up to this gives that constant; a mean of more might saturate */
	const struct input *input;
	size_t stride;
	uint8_t *cells;
};

struct feature {
	const struct oal_feature_program *program;
	uint64_t next_us;
	uint32_t evaluations;
	struct entities entities[OAL_N_TABLES];
	struct input *inputs[OAL_N_TABLES][OAL_MAX_FEATURES]; /* of a table */
	uint8_t n_inputs[OAL_N_TABLES];
	struct base base[OAL_MAX_FEATURES];
	int64_t ewma[OAL_MAX_FEATURES];
	bool has_ewma[OAL_MAX_FEATURES];
	int64_t x[OAL_MAX_FEATURES];
	int64_t history[OAL_MAX_WINDOW][OAL_MAX_FEATURES]; /* ring of results */
	unsigned n_history, history_at; /* at: where the next goes */
	size_t memory;
};

/* --- saturating arithmetic */

static inline int64_t add(int64_t a, int64_t b)
{
	int64_t r;

	return __builtin_add_overflow(a, b, &r) ? (a < 0 ? INT64_MIN : INT64_MAX) : r;
}

static inline int64_t sub(int64_t a, int64_t b)
{
	int64_t r;

	return __builtin_sub_overflow(a, b, &r) ? (a < 0 ? INT64_MIN : INT64_MAX) : r;
}

static inline int64_t mul(int64_t a, int64_t b)
{
	int64_t r;

	return __builtin_mul_overflow(a, b, &r) ? ((a < 0) == (b < 0) ? INT64_MAX : INT64_MIN) : r;
}

static inline int64_t divide(int64_t a, int64_t b)
{
	return b == -1 ? (a == INT64_MIN ? INT64_MAX : -a) : a / b;
}

static inline int64_t clamp(int64_t v, int64_t lo, int64_t hi)
{
	v = v < lo ? lo : v;
	return v > hi ? hi : v;
}

/* Arithmetic shift, defined for negative numbers too. */
static inline int64_t shift_right(int64_t v, unsigned n)
{
	return v < 0 ? ~(~v >> n) : v >> n;
}

static int64_t increment(int64_t old, int64_t now, unsigned counter_bits)
{
	const int64_t d = sub(now, old);

	if (!counter_bits || d >= 0)
		return d;
	return counter_bits == 32 && d < -(INT64_C(1) << 31) ? d + (INT64_C(1) << 32) : now;
}

__attribute__((always_inline)) static inline int64_t load(const uint8_t *p, uint8_t type)
{
	if (type == OAL_T_U32) /* most columns that features read */
		return *(const uint32_t *)(const void *)p;
	switch (type) {
	case OAL_T_U8: return *p;
	case OAL_T_I8: return *(const int8_t *)p;
	case OAL_T_U16: case OAL_T_NAME: case OAL_T_FLOW: return *(const uint16_t *)(const void *)p;
	case OAL_T_I16: return *(const int16_t *)(const void *)p;
	case OAL_T_I32: return *(const int32_t *)(const void *)p;
	default: return *(const int64_t *)(const void *)p;
	}
}

/* --- programs */

static int check_base(const int64_t *w)
{
	const struct oal_table *t;
	const struct oal_column *c;

	if (w[OAL_W_TABLE] < 0 || w[OAL_W_TABLE] >= OAL_N_TABLES)
		return -EINVAL;
	t = &oal_tables[w[OAL_W_TABLE]];
	if (w[OAL_W_COLUMN] < 0 || w[OAL_W_COLUMN] >= t->n_columns || t->topic == OAL_TOPIC_EVENTS)
		return -EINVAL;
	c = &t->columns[w[OAL_W_COLUMN]];
	if (c->kind == OAL_KEY || c->kind == OAL_TICK || c->kind == OAL_TIME_US)
		return -EINVAL;
	if (t->event != (w[OAL_W_OP] == OAL_OP_SUM || w[OAL_W_OP] == OAL_OP_COUNT))
		return -EINVAL;
	if (w[OAL_W_FILTER_COLUMN] < -1 || w[OAL_W_FILTER_COLUMN] >= t->n_keys)
		return -EINVAL;
	if (w[OAL_W_GROUP] < OAL_GROUP_SUM || w[OAL_W_GROUP] > OAL_GROUP_MEAN)
		return -EINVAL;
	return w[OAL_W_A] >= 1 && w[OAL_W_B] >= 1 ? 0 : -EINVAL;
}

static int check_feature(const int64_t *w, uint32_t index)
{
	int64_t max_window = OAL_MAX_WINDOW;

	switch (w[OAL_W_OP]) {
	case OAL_OP_LAST: case OAL_OP_DELTA: case OAL_OP_RATE: case OAL_OP_MAX: case OAL_OP_MIN: case OAL_OP_MEAN:
	case OAL_OP_SUM: case OAL_OP_COUNT:
		if (check_base(w))
			return -EINVAL;
		break;
	case OAL_OP_DIFF: case OAL_OP_ADD: case OAL_OP_RATIO:
		if (w[OAL_W_B] < 0 || w[OAL_W_B] >= index)
			return -EINVAL;
		/* fall through */
	case OAL_OP_EWMA: case OAL_OP_LAG:
		if (w[OAL_W_A] < 0 || w[OAL_W_A] >= index)
			return -EINVAL;
		break;
	default:
		return -EINVAL;
	}
	if (w[OAL_W_OP] == OAL_OP_EWMA)
		max_window = MAX_EWMA_SHIFT;
	if (w[OAL_W_OP] != OAL_OP_RATIO && (w[OAL_W_WINDOW] < 1 || w[OAL_W_WINDOW] > max_window))
		return -EINVAL;
	return 0;
}

int feature_program_check(const struct oal_feature_program *p)
{
	uint32_t i;

	/* An interval of an hour is more than anybody means, and keeps every product of times within 64 bits. */
	if (p->n > OAL_MAX_FEATURES || p->decision_interval_us < 1000 || p->decision_interval_us > INT64_C(3600000000))
		return -EINVAL;
	for (i = 0; i < p->n; i++)
		if (check_feature(p->words[i], i))
			return -EINVAL;
	return 0;
}

static int64_t be64(const uint8_t *p)
{
	uint64_t v = 0;
	int i;

	for (i = 0; i < 8; i++)
		v = v << 8 | p[i];
	return (int64_t)v;
}

int feature_program_load(struct oal_feature_program *p, int64_t (*words)[OAL_N_WORDS], const uint8_t *bytes, size_t len)
{
	int64_t n;
	unsigned i, k;

	if (len < 21 || memcmp(bytes, "OALF1", 5))
		return -EINVAL;
	n = be64(bytes + 13);
	if (n < 0 || n > OAL_MAX_FEATURES || len != 21 + (size_t)n * OAL_N_WORDS * 8)
		return -EINVAL;
	memset(p, 0, sizeof *p);
	p->n = (uint32_t)n;
	p->decision_interval_us = be64(bytes + 5);
	p->words = (const int64_t(*)[OAL_N_WORDS])words;
	for (i = 0; i < p->n; i++)
		for (k = 0; k < OAL_N_WORDS; k++)
			words[i][k] = be64(bytes + 21 + 8 * (i * OAL_N_WORDS + k));
	sha256(p->hash, bytes, len);
	return feature_program_check(p);
}

uint64_t feature_program_id(const struct oal_feature_program *p)
{
	uint64_t id = 0;
	unsigned i;

	for (i = 0; i < 8; i++)
		id = id << 8 | p->hash[i];
	return id;
}

/* --- state */

static void *keep(struct feature *f, size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size);

	if (p)
		f->memory += n * size;
	return p;
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
		if (in->offset == c->offset && in->filter_offset == (filter ? filter->offset : -1) && (!filter || in->filter_value == w[OAL_W_FILTER_VALUE]))
			return in;
	}
	in = keep(f, 1, sizeof *in);
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
	n = t->event ? 1 : (space->entities + in->shift) >> in->shift;
	in->places = keep(f, n, sizeof *in->places);
	in->live = keep(f, n, sizeof *in->live);
	return in->places && in->live ? in : NULL;
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
	b->op = (uint8_t)w[OAL_W_OP];
	b->group = (uint8_t)w[OAL_W_GROUP];
	b->window = (uint8_t)w[OAL_W_WINDOW];
	b->scaled = w[OAL_W_A] != 1 || w[OAL_W_B] != 1;
	b->sums = b->group == OAL_GROUP_SUM || b->group == OAL_GROUP_MEAN;
	b->narrow = !b->scaled && oal_tables[w[OAL_W_TABLE]].columns[w[OAL_W_COLUMN]].size <= 4;
	if (b->op == OAL_OP_LAST)
		return 0;
	in->features[in->n_features++] = (uint8_t)i;
	b->n_ring = b->op == OAL_OP_MEAN ? (uint8_t)(2 * b->window) : b->window == 1 ? 0 : b->window; /* a ring of one would hold the open bucket */
	b->constant_limit = b->op == OAL_OP_MEAN ? INT64_MAX / (b->window * f->program->decision_interval_us) : INT64_MAX;
	b->stride = sizeof(struct cell) + (b->n_ring + (b->op == OAL_OP_MEAN ? MEAN_RING : 0)) * sizeof(int64_t);
	b->cells = keep(f, in->event ? 1 : (space->entities + in->shift) >> in->shift, b->stride);
	return b->cells ? 0 : -ENOMEM;
}

int feature_new(struct feature **out, const struct oal_feature_program *p, const struct feature_space spaces[OAL_N_TABLES])
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
		e->live = keep(f, e->n_slots, sizeof *e->live);
		e->position = keep(f, e->n_slots, sizeof *e->position);
		if (!e->live || !e->position)
			goto no_memory;
	}
	for (i = 0; i < p->n; i++)
		if (p->words[i][OAL_W_OP] < FIRST_DERIVED && new_base(f, i, spaces))
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
	for (i = 0; i < OAL_MAX_FEATURES; i++)
		free(f->base[i].cells);
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

static inline struct cell *cell_of(const struct base *b, unsigned place)
{
	return (struct cell *)(void *)(b->cells + place * b->stride);
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
			memset(cell_of(&f->base[in->features[k]], entity >> in->shift), 0, f->base[in->features[k]].stride);
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

	return f->next_us == UINT64_MAX || t0_us > last_us + OAL_SETTING_FEATURE_GAP_US || t0_us + OAL_SETTING_FEATURE_GAP_US < last_us;
}

int feature_reads(const struct feature *f, enum oal_table_id table)
{
	return f->n_inputs[table] > 0;
}

uint64_t feature_next_us(const struct feature *f)
{
	return f->next_us;
}

/* --- rows */

/* MEAN: adds the value held since MEAN_SINCE. */
static void integrate(struct cell *c, int64_t value, uint64_t t_us)
{
	const int64_t us = (int64_t)t_us - c->ring[MEAN_SINCE];

	c->acc = add(c->acc, mul(value, us));
	c->ring[MEAN_HELD] += us;
}

/* A new value `v` after `old`, which counts only if the entity was `live`. */
static inline void cell_row(uint8_t op, struct cell *c, bool live, int64_t old, int64_t v, unsigned counter_bits, uint64_t t_us, int64_t bucket_us)
{
	switch (op) {
	case OAL_OP_DELTA: case OAL_OP_RATE:
		if (live)
			c->acc = add(c->acc, increment(old, v, counter_bits));
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
		if (c->ring[MEAN_SINCE] < bucket_us) /* it was steady, and evaluations passed it over */
			c->ring[MEAN_SINCE] = bucket_us;
		if (live)
			integrate(c, old, t_us);
		c->ring[MEAN_SINCE] = (int64_t)t_us;
		break;
	case OAL_OP_SUM:
		c->acc = add(c->acc, v);
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
		if (in->filter_offset >= 0 && load(bytes + in->filter_offset, in->filter_type) != in->filter_value)
			continue;
		v = load(bytes + in->offset, in->type);
		p = &in->places[entity >> in->shift];
		/* Most columns of a row are as they were. For a state that changes nothing: no increment, no new extreme, and
		 * the same value goes on being held. */
		if (p->value == v && p->position && !in->event)
			continue;
		for (i = 0; i < in->n_features; i++) {
			const struct base *b = &f->base[in->features[i]];

			cell_row(b->op, cell_of(b, entity >> in->shift), p->position, p->value, v, in->counter_bits, t_us, bucket_us);
		}
		p->value = v;
		if (!p->position) {
			in->live[in->n_live++] = (uint16_t)(entity >> in->shift);
			p->position = (uint16_t)in->n_live;
		}
		p->changed = f->evaluations;
	}
}

/* --- evaluation */

static inline bool is_large(int64_t bucket)
{
	return (uint64_t)bucket + (uint64_t)LARGE_BUCKET > 2 * (uint64_t)LARGE_BUCKET; /* either sign */
}

/* Saturating sum over a ring of `n` buckets, every `step` words, from the oldest, at `at`, to the newest. */
static int64_t large_sum(const int64_t *ring, unsigned n, unsigned step, unsigned at)
{
	int64_t total = 0;
	unsigned i;

	for (i = 0; i < n; i++, at = at + step == n * step ? 0 : at + step)
		total = add(total, ring[at]);
	return total;
}

/* DELTA, RATE, SUM, COUNT: closes the bucket and sums over the window. */
static inline int64_t close_sum(const struct base *b, struct cell *c)
{
	const int64_t acc = c->acc;
	int64_t *const at = c->ring + b->ring_at;

	c->acc = 0;
	if (b->window == 1)
		return acc;
	c->total += (uint64_t)acc - (uint64_t)*at;
	*at = acc;
	if (!is_large(acc) && !c->large)
		return (int64_t)c->total;
	c->large = is_large(acc) ? b->window : (uint8_t)(c->large - 1);
	return c->large ? large_sum(c->ring, b->window, 1, b->ring_at + 1u == b->window ? 0 : b->ring_at + 1u) : (int64_t)c->total;
}

/* MAX, MIN */
static int64_t close_extreme(const struct base *b, struct cell *c, int64_t value)
{
	int64_t v = c->acc;
	unsigned i;

	c->acc = value; /* the next bucket starts with the value held */
	c->has_acc = 1;
	if (b->window == 1)
		return v;
	c->ring[c->ring_at] = v;
	c->ring_at = (uint8_t)(c->ring_at + 1 == b->window ? 0 : c->ring_at + 1);
	if (c->ring_n < b->window)
		c->ring_n++;
	for (i = 0; i < c->ring_n; i++)
		if (b->op == OAL_OP_MAX ? c->ring[i] > v : c->ring[i] < v)
			v = c->ring[i];
	return v;
}

static int64_t close_mean(const struct base *b, struct cell *c, int64_t value, uint64_t instant)
{
	int64_t *const ring = c->ring + MEAN_RING, total, held = 0;
	unsigned i;

	integrate(c, value, instant);
	ring[c->ring_at] = c->acc;
	ring[c->ring_at + 1] = c->ring[MEAN_HELD];
	c->ring_at = (uint8_t)(c->ring_at + 2 == b->n_ring ? 0 : c->ring_at + 2);
	if (c->ring_n < b->window)
		c->ring_n++;
	c->acc = c->ring[MEAN_HELD] = 0;
	c->ring[MEAN_SINCE] = (int64_t)instant;
	for (i = 0; i < c->ring_n; i++)
		held += ring[2 * i + 1];
	total = large_sum(ring, c->ring_n, 2, c->ring_n < b->window ? 0 : c->ring_at);
	return held ? divide(total, held) : value;
}

/* Has the value been the same for more than a whole window? Then every bucket of the ring says the same, putting one more there
 * changes nothing, and what the window gives is known. */
static inline bool steady(const struct base *b, const struct place *p, uint32_t evaluations)
{
	return evaluations - p->changed > b->window;
}

/* What the entities of a group have given so far. */
struct fold {
	int64_t total;
	unsigned n;
};

static inline void fold(struct fold *f, const struct base *b, const int64_t *w, int64_t v)
{
	if (b->scaled && v) {
		v = w[OAL_W_A] != 1 ? mul(v, w[OAL_W_A]) : v;
		v = w[OAL_W_B] != 1 ? divide(v, w[OAL_W_B]) : v;
	}
	if ((uint64_t)v + (uint64_t)ENTITY_LIMIT > 2 * (uint64_t)ENTITY_LIMIT) /* either bound */
		v = v < 0 ? -ENTITY_LIMIT : ENTITY_LIMIT;
	if (b->sums)
		f->total = add(f->total, v);
	else if (!f->n || (b->group == OAL_GROUP_MAX ? v > f->total : v < f->total))
		f->total = v;
	f->n++;
}

static void fold_last(struct fold *group, const struct base *b, const int64_t *w)
{
	const uint16_t *at = b->input->live, *const end = at + b->input->n_live;
	const struct place *const places = b->input->places;

	if (!b->narrow || at == end) {
		for (; at < end; at++)
			fold(group, b, w, places[*at].value);
		return;
	}
	group->n = b->input->n_live;
	group->total = places[*at++].value;
	if (b->sums)
		for (; at < end; at++)
			group->total += places[*at].value;
	else if (b->group == OAL_GROUP_MAX)
		for (; at < end; at++)
			group->total = places[*at].value > group->total ? places[*at].value : group->total;
	else
		for (; at < end; at++)
			group->total = places[*at].value < group->total ? places[*at].value : group->total;
}

static void fold_sums(struct fold *group, struct base *base, const int64_t *w, const struct feature *f)
{
	const struct base local = *base, *const b = &local; /* which no store to a cell can change */
	const uint16_t *at = b->input->live, *const end = at + b->input->n_live;
	const struct place *const places = b->input->places;
	const int64_t window_us = b->window * f->program->decision_interval_us;
	const uint32_t evaluations = f->evaluations;
	struct fold sum = { 0, 0 };

	for (; at < end; at++) {
		const bool passed = steady(b, &places[*at], evaluations);
		int64_t v;

		if (passed && b->sums)
			continue; /* adds nothing */
		v = passed ? 0 : close_sum(b, cell_of(b, *at));
		if (!v && b->sums)
			continue;
		if (b->op == OAL_OP_RATE)
			v = divide(mul(v, 1000000), window_us);
		fold(&sum, b, w, v);
	}
	group->total = sum.total;
	group->n = b->input->n_live;
	if (b->window > 1)
		base->ring_at = (uint8_t)(b->ring_at + 1 == b->window ? 0 : b->ring_at + 1);
}

/* MAX, MIN, MEAN */
static void fold_held(struct fold *group, const struct base *b, const int64_t *w, const struct feature *f)
{
	const uint16_t *at = b->input->live, *const end = at + b->input->n_live;

	for (; at < end; at++) {
		const struct place *p = &b->input->places[*at];
		struct cell *c = cell_of(b, *at);

		if (steady(b, p, f->evaluations) && p->value <= b->constant_limit && p->value >= -b->constant_limit)
			fold(group, b, w, p->value);
		else if (b->op == OAL_OP_MEAN)
			fold(group, b, w, close_mean(b, c, p->value, f->next_us));
		else
			fold(group, b, w, close_extreme(b, c, p->value));
	}
}

static bool base_evaluate(struct feature *f, uint32_t i, const int64_t *w, int64_t *out)
{
	struct base *b = &f->base[i];
	struct fold group = { 0, 0 };

	if (b->op == OAL_OP_LAST)
		fold_last(&group, b, w);
	else if (b->op == OAL_OP_MAX || b->op == OAL_OP_MIN || b->op == OAL_OP_MEAN)
		fold_held(&group, b, w, f);
	else
		fold_sums(&group, b, w, f);
	*out = b->group == OAL_GROUP_MEAN && group.n ? divide(group.total, group.n) : group.total;
	return group.n || b->group == OAL_GROUP_SUM;
}

static bool derived_evaluate(struct feature *f, uint32_t i, const int64_t *w, int64_t *out)
{
	const int64_t a = f->x[w[OAL_W_A]];
	int64_t b;

	switch (w[OAL_W_OP]) {
	case OAL_OP_EWMA:
		if (a == OAL_MISSING)
			return false;
		b = mul(a, 256);
		f->ewma[i] = f->has_ewma[i] ? add(f->ewma[i], shift_right(sub(b, f->ewma[i]), (unsigned)w[OAL_W_WINDOW])) : b;
		f->has_ewma[i] = true;
		*out = f->ewma[i] / 256;
		return true;
	case OAL_OP_LAG:
		if (f->n_history < (uint64_t)w[OAL_W_WINDOW])
			return false;
		*out = f->history[(f->history_at + OAL_MAX_WINDOW - (unsigned)w[OAL_W_WINDOW]) % OAL_MAX_WINDOW][w[OAL_W_A]];
		return *out != OAL_MISSING;
	default:
		break;
	}
	b = f->x[w[OAL_W_B]];
	if (a == OAL_MISSING || b == OAL_MISSING)
		return false;
	if (w[OAL_W_OP] == OAL_OP_RATIO) {
		if (!b)
			return false;
		*out = divide(mul(a, w[OAL_W_WINDOW]), b);
	} else {
		*out = w[OAL_W_OP] == OAL_OP_DIFF ? sub(a, b) : add(a, b);
	}
	return true;
}

const int64_t *feature_evaluate(struct feature *f)
{
	uint32_t i;

	for (i = 0; i < f->program->n; i++) {
		const int64_t *w = f->program->words[i];
		int64_t v = 0;
		const bool have = w[OAL_W_OP] < FIRST_DERIVED ? base_evaluate(f, i, w, &v) : derived_evaluate(f, i, w, &v);

		f->x[i] = have ? clamp(v, w[OAL_W_LO], w[OAL_W_HI]) : w[OAL_W_DEFAULT];
	}
	memcpy(f->history[f->history_at], f->x, f->program->n * sizeof f->x[0]);
	f->history_at = (f->history_at + 1) % OAL_MAX_WINDOW;
	if (f->n_history < OAL_MAX_WINDOW)
		f->n_history++;
	f->next_us += (uint64_t)f->program->decision_interval_us;
	f->evaluations++;
	return f->x;
}
