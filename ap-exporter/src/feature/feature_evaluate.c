/* The one hot spot of a decision: packages are built for size, and this file alone would cost a third more time so. */
#ifndef __clang__
#pragma GCC optimize("O2")
#endif

#include "feature/feature_state.h"

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

static int64_t scaled(const int64_t *w, int64_t v)
{
	v = w[OAL_W_A] != 1 ? sat_mul(v, w[OAL_W_A]) : v;
	return w[OAL_W_B] != 1 ? sat_divide(v, w[OAL_W_B]) : v;
}

/* An entity's value times the factor, over the divisor, within the limit. */
static inline int64_t limited(const struct base *b, const int64_t *w, int64_t v)
{
	if (b->narrow)
		return v;
	if (b->scaled && v)
		v = scaled(w, v);
	if ((uint64_t)v + (uint64_t)ENTITY_LIMIT > 2 * (uint64_t)ENTITY_LIMIT) /* either bound */
		v = v < 0 ? -ENTITY_LIMIT : ENTITY_LIMIT;
	return v;
}

static void fold(struct stats *s, const struct base *b, const int64_t *w, unsigned place, int64_t v)
{
	v = limited(b, w, v);
	if (b->kept)
		b->kept[place] = v;
	if (b->wants & WANT_SUM)
		s->sum = b->narrow ? s->sum + v : sat_add(s->sum, v);
	if (b->wants & WANT_MAX && (!s->n || v > s->max))
		s->max = v;
	if (b->wants & WANT_MIN && (!s->n || v < s->min))
		s->min = v;
	if (b->wants & WANT_POSITIVE)
		s->positive += v > 0;
	s->n++;
}

/* LAST of values that no sum can saturate: what is wanted, one after the other. */
static void fold_narrow(struct stats *s, const struct base *b)
{
	const uint16_t *const begin = b->input->live, *const end = begin + b->input->n_live, *at;
	const struct place *const places = b->input->places;

	s->max = s->min = places[*begin].value;
	if (b->wants & WANT_SUM)
		for (at = begin; at < end; at++)
			s->sum += places[*at].value;
	if (b->wants & WANT_MAX)
		for (at = begin; at < end; at++)
			s->max = places[*at].value > s->max ? places[*at].value : s->max;
	if (b->wants & WANT_MIN)
		for (at = begin; at < end; at++)
			s->min = places[*at].value < s->min ? places[*at].value : s->min;
	if (b->wants & WANT_POSITIVE)
		for (at = begin; at < end; at++)
			s->positive += places[*at].value > 0;
}

static void fold_last(struct stats *s, const struct base *b, const int64_t *w)
{
	const uint16_t *at = b->input->live, *const end = at + b->input->n_live;
	const struct place *const places = b->input->places;

	if (b->narrow && at < end)
		fold_narrow(s, b);
	else
		for (; at < end; at++)
			fold(s, b, w, *at, places[*at].value);
}

/* Where a value of 0 adds nothing to the group. */
static void fold_positive(struct stats *s, const struct base *b, const int64_t *w, const struct feature *f)
{
	const uint16_t *at = b->input->live, *const end = at + b->input->n_live;
	const struct place *const places = b->input->places;
	const int64_t window_us = b->window * f->program->decision_interval_us;
	const uint32_t evaluations = f->evaluations;
	int64_t *const kept = b->kept, sum = 0, v;
	const bool is_rate = b->op == OAL_OP_RATE;
	unsigned positive = 0;

	for (; at < end; at++) {
		if (steady(b, &places[*at], evaluations))
			continue; /* and is kept as 0 already */
		v = close_sum(b, cell_of(b, *at));
		if (v) {
			if (is_rate)
				v = sat_divide(sat_mul(v, 1000000), window_us);
			v = limited(b, w, v);
			sum = b->narrow ? sum + v : sat_add(sum, v);
			positive += v > 0;
		}
		if (kept)
			kept[*at] = v;
	}
	s->sum = sum;
	s->positive = positive;
}

/* DELTA, RATE, SUM, COUNT */
static void fold_sums(struct stats *s, struct base *b, const int64_t *w, const struct feature *f)
{
	const uint16_t *at = b->input->live, *const end = at + b->input->n_live;
	const int64_t window_us = b->window * f->program->decision_interval_us;
	const bool is_rate = b->op == OAL_OP_RATE;

	if (!(b->wants & (WANT_MAX | WANT_MIN)))
		fold_positive(s, b, w, f);
	else
		for (; at < end; at++) {
			int64_t v = 0;

			if (!steady(b, &b->input->places[*at], f->evaluations))
				v = close_sum(b, cell_of(b, *at));
			if (v && is_rate)
				v = sat_divide(sat_mul(v, 1000000), window_us);
			fold(s, b, w, *at, v);
		}
	if (b->window > 1)
		b->bucket_at = (uint8_t)(b->bucket_at + 1 == b->window ? 0 : b->bucket_at + 1);
}

/* MAX, MIN, MEAN */
static void fold_held(struct stats *s, const struct base *b, const int64_t *w, const struct feature *f)
{
	const uint16_t *at = b->input->live, *const end = at + b->input->n_live;

	for (; at < end; at++) {
		const struct place *p = &b->input->places[*at];
		struct cell *c = cell_of(b, *at);

		if (steady(b, p, f->evaluations) && p->value <= b->constant_limit && p->value >= -b->constant_limit)
			fold(s, b, w, *at, p->value);
		else if (b->op == OAL_OP_MEAN)
			fold(s, b, w, *at, close_mean(b, c, p->value, f->next_us));
		else
			fold(s, b, w, *at, close_extreme(b, c, p->value));
	}
}

/* Closes the bucket at every entity that the feature reads. */
static void read_entities(const struct feature *f, struct base *b, const int64_t *w)
{
	struct stats *s = &b->stats;

	s->sum = s->max = s->min = 0;
	s->n = s->positive = 0;
	if (b->op == OAL_OP_LAST)
		fold_last(s, b, w);
	else if (b->op == OAL_OP_MAX || b->op == OAL_OP_MIN || b->op == OAL_OP_MEAN)
		fold_held(s, b, w, f);
	else
		fold_sums(s, b, w, f);
	s->n = b->input->n_live;
}

static inline int64_t value_at(const struct base *b, const int64_t *w, unsigned place)
{
	return b->op == OAL_OP_LAST ? limited(b, w, b->input->places[place].value) : b->reads->kept[place];
}

/* The places that have the group's value. */
static void choose(struct base *b, const int64_t *w, int64_t value)
{
	const uint16_t *at = b->input->live, *const end = at + b->input->n_live;
	const bool is_last = b->op == OAL_OP_LAST;
	const struct place *const places = b->input->places;
	const int64_t *const kept = b->reads->kept;
	uint16_t *chosen = b->chosen;

	for (; at < end; at++)
		if ((is_last ? limited(b, w, places[*at].value) : kept[*at]) == value)
			*chosen++ = *at;
	b->n_chosen = (unsigned)(chosen - b->chosen);
}

/* The greatest value at the places that another feature chose. */
static bool at_chosen(const struct base *b, const struct base *by, const int64_t *w, int64_t *out)
{
	const uint16_t *at = by->chosen, *const end = at + by->n_chosen;
	const struct place *const places = b->input->places;
	bool any = false;

	for (; at < end; at++) {
		int64_t v;

		if (!places[*at].position)
			continue;
		v = value_at(b, w, *at);
		if (!any || v > *out)
			*out = v;
		any = true;
	}
	return any;
}

static bool base_evaluate(struct feature *f, uint32_t i, const int64_t *w, int64_t *out)
{
	struct base *b = &f->base[i];
	const struct stats *s = &b->reads->stats;

	if (b->reads == b)
		read_entities(f, b, w);
	switch (b->group) {
	case OAL_GROUP_SUM: *out = s->sum; return true;
	case OAL_GROUP_TOTAL: *out = s->sum; break;
	case OAL_GROUP_MEAN: *out = s->n ? sat_divide(s->sum, s->n) : 0; break;
	case OAL_GROUP_COUNT: *out = s->positive; break;
	case OAL_GROUP_MAX: *out = s->max; break;
	case OAL_GROUP_MIN: *out = s->min; break;
	default: return at_chosen(b, &f->base[b->group - OAL_GROUP_AT], w, out);
	}
	if (b->chosen)
		choose(b, w, *out);
	return s->n > 0;
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
	case OAL_OP_LAG: case OAL_OP_CHANGE:
		if (f->n_history < (uint64_t)w[OAL_W_WINDOW])
			return false;
		at = (f->history_at + OAL_MAX_WINDOW - (unsigned)w[OAL_W_WINDOW]) % OAL_MAX_WINDOW;
		b = f->history[at * f->n_looked_up + f->late[i]];
		*out = w[OAL_W_OP] == OAL_OP_LAG ? b : sat_sub(a, b);
		return b != OAL_MISSING && (w[OAL_W_OP] == OAL_OP_LAG || a != OAL_MISSING);
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
	for (i = 0; i < f->n_looked_up; i++)
		f->history[f->history_at * f->n_looked_up + i] = f->x[f->looked_up[i]];
	f->history_at = (f->history_at + 1) % OAL_MAX_WINDOW;
	if (f->n_history < OAL_MAX_WINDOW)
		f->n_history++;
	f->next_us += (uint64_t)f->program->decision_interval_us;
	f->evaluations++;
	return f->x;
}
