#include "feature/feature_state.h"

#include <string.h>

/* Results of entities are kept within this, so that a sum over entities cannot saturate. */
#define ENTITY_LIMIT (INT64_C(1) << 53)
/* A bucket beyond this might make the sum over a window saturate, and then the order of its buckets matters. */
#define LARGE_BUCKET (INT64_C(1) << 56)

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

static inline bool is_large(int64_t bucket)
{
	return (uint64_t)bucket + (uint64_t)LARGE_BUCKET > 2 * (uint64_t)LARGE_BUCKET; /* either sign */
}

/* Saturating sum over `n` buckets in turn, every `step` words, from the oldest, at `at`, to the newest. */
static int64_t large_sum(const int64_t *buckets, unsigned n, unsigned step, unsigned at)
{
	int64_t total = 0;
	unsigned i;

	for (i = 0; i < n; i++, at = at + step == n * step ? 0 : at + step)
		total = sat_add(total, buckets[at]);
	return total;
}

/* DELTA, RATE, SUM, COUNT: closes the bucket and sums over the window. */
static inline int64_t close_sum(const struct base *b, struct cell *c)
{
	const int64_t acc = c->acc;
	int64_t *const at = c->buckets + b->bucket_at;

	c->acc = 0;
	if (b->window == 1)
		return acc;
	c->total += (uint64_t)acc - (uint64_t)*at;
	*at = acc;
	if (!is_large(acc) && !c->large)
		return (int64_t)c->total;
	c->large = is_large(acc) ? b->window : (uint8_t)(c->large - 1);
	if (!c->large)
		return (int64_t)c->total;
	return large_sum(c->buckets, b->window, 1, b->bucket_at + 1u == b->window ? 0 : b->bucket_at + 1u);
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
	c->buckets[c->bucket_at] = v;
	c->bucket_at = (uint8_t)(c->bucket_at + 1 == b->window ? 0 : c->bucket_at + 1);
	if (c->n_buckets < b->window)
		c->n_buckets++;
	for (i = 0; i < c->n_buckets; i++)
		if (b->op == OAL_OP_MAX ? c->buckets[i] > v : c->buckets[i] < v)
			v = c->buckets[i];
	return v;
}

static int64_t close_mean(const struct base *b, struct cell *c, int64_t value, uint64_t instant)
{
	int64_t *const pairs = c->buckets + MEAN_BUCKETS, total, held = 0;
	unsigned i;

	cell_integrate(c, value, instant);
	pairs[c->bucket_at] = c->acc;
	pairs[c->bucket_at + 1] = c->buckets[MEAN_HELD];
	c->bucket_at = (uint8_t)(c->bucket_at + 2 == b->n_words ? 0 : c->bucket_at + 2);
	if (c->n_buckets < b->window)
		c->n_buckets++;
	c->acc = c->buckets[MEAN_HELD] = 0;
	c->buckets[MEAN_SINCE] = (int64_t)instant;
	for (i = 0; i < c->n_buckets; i++)
		held += pairs[2 * i + 1];
	total = large_sum(pairs, c->n_buckets, 2, c->n_buckets < b->window ? 0 : c->bucket_at);
	return held ? sat_divide(total, held) : value;
}

/* Has the value been the same for more than a whole window? Then every bucket says the same, one more changes nothing,
 * and what the window gives is known. */
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
		v = w[OAL_W_A] != 1 ? sat_mul(v, w[OAL_W_A]) : v;
		v = w[OAL_W_B] != 1 ? sat_divide(v, w[OAL_W_B]) : v;
	}
	if ((uint64_t)v + (uint64_t)ENTITY_LIMIT > 2 * (uint64_t)ENTITY_LIMIT) /* either bound */
		v = v < 0 ? -ENTITY_LIMIT : ENTITY_LIMIT;
	if (b->sums)
		f->total = sat_add(f->total, v);
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
			v = sat_divide(sat_mul(v, 1000000), window_us);
		fold(&sum, b, w, v);
	}
	group->total = sum.total;
	group->n = b->input->n_live;
	if (b->window > 1)
		base->bucket_at = (uint8_t)(b->bucket_at + 1 == b->window ? 0 : b->bucket_at + 1);
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
	*out = b->group == OAL_GROUP_MEAN && group.n ? sat_divide(group.total, group.n) : group.total;
	return group.n || b->group == OAL_GROUP_SUM;
}

static bool derived_evaluate(struct feature *f, uint32_t i, const int64_t *w, int64_t *out)
{
	const int64_t a = f->x[w[OAL_W_A]];
	unsigned at;
	int64_t b;

	switch (w[OAL_W_OP]) {
	case OAL_OP_EWMA:
		if (a == OAL_MISSING)
			return false;
		b = sat_mul(a, 256);
		f->ewma[i] = f->has_ewma[i] ? sat_add(f->ewma[i],
		                                      shift_right(sat_sub(b, f->ewma[i]), (unsigned)w[OAL_W_WINDOW]))
		                            : b;
		f->has_ewma[i] = true;
		*out = f->ewma[i] / 256;
		return true;
	case OAL_OP_LAG:
		if (f->n_history < (uint64_t)w[OAL_W_WINDOW])
			return false;
		at = (f->history_at + OAL_MAX_WINDOW - (unsigned)w[OAL_W_WINDOW]) % OAL_MAX_WINDOW;
		*out = f->history[at][w[OAL_W_A]];
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
		*out = sat_divide(sat_mul(a, w[OAL_W_WINDOW]), b);
	} else {
		*out = w[OAL_W_OP] == OAL_OP_DIFF ? sat_sub(a, b) : sat_add(a, b);
	}
	return true;
}

const int64_t *feature_evaluate(struct feature *f)
{
	uint32_t i;

	for (i = 0; i < f->program->n; i++) {
		const int64_t *w = f->program->words[i];
		int64_t v = 0;
		const bool have = w[OAL_W_OP] < FIRST_DERIVED ? base_evaluate(f, i, w, &v)
		                                              : derived_evaluate(f, i, w, &v);

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
