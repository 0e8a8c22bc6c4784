/* feature_state.h: what the interpreter of a feature program keeps; of feature*.c alone. */
#ifndef OAL_FEATURE_STATE_H
#define OAL_FEATURE_STATE_H

#include "feature/feature.h"
#include "feature/saturating.h"

#include <stdbool.h>

enum { FIRST_DERIVED = OAL_OP_RATIO }; /* operators from here on read other features, not columns */

/* One feature at one entity: as many words as its operator needs. */
struct cell {
	int64_t acc; /* of the open bucket */
	uint64_t total; /* of the closed buckets, modulo 2^64; exact while none is large */
	uint8_t has_acc;
	uint8_t large; /* buckets until the last large one has left the window */
	/* Of MAX, MIN and MEAN. The others begin with a window full of zeros, and share base.bucket_at. */
	uint8_t n_buckets, bucket_at;
	int64_t buckets[]; /* the closed ones of the window, in turn; for MEAN after two words more */
};
/* MEAN's further words, before its buckets: pairs (integral, µs). */
enum { MEAN_HELD, MEAN_SINCE, MEAN_BUCKETS };

/* Live entities of a table, so that evaluation passes over empty slots. */
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

/* A column under a filter. Features that read the same share it, so that a row is read once for all of them. */
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

/* What a feature's entities gave at the last evaluation, of which `wants` says what is computed. */
enum { WANT_SUM = 1, WANT_MAX = 2, WANT_MIN = 4, WANT_POSITIVE = 8 };
struct stats {
	int64_t sum, max, min;
	unsigned n, positive;
};

struct base {
	/* The feature whose entities are read: itself, or an earlier one that differs in its group alone. What follows
	 * is of the one that reads; of the others only `op`, `group`, `scaled`, `input` and the chosen. */
	struct base *reads;
	uint8_t op, group;
	uint8_t wants;
	uint8_t n_words; /* of a cell's buckets */
	uint8_t window;
	uint8_t bucket_at; /* where the next bucket goes; not of MAX, MIN and MEAN */
	bool scaled; /* has a factor or divisor */
	/* Its values have at most 32 bits and no factor, and no events are summed: within ENTITY_LIMIT, and no sum of
	 * them can saturate. */
	bool narrow;
	/* A window of any constant up to this gives that constant; a mean of more might saturate. */
	int64_t constant_limit;
	const struct input *input;
	size_t stride;
	uint8_t *cells;
	struct stats stats;
	int64_t *kept; /* per place, its value at the last evaluation; NULL where nobody asks, and of LAST */
	uint16_t *chosen; /* places that have the group's value; NULL where nobody asks */
	unsigned n_chosen;
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
	/* Latest results of the features that are looked up later, in turn. */
	uint8_t n_looked_up, looked_up[OAL_MAX_FEATURES];
	uint8_t late[OAL_MAX_FEATURES]; /* of LAG and CHANGE: place of the operand among them */
	int64_t *history; /* OAL_MAX_WINDOW times n_looked_up */
	unsigned n_history, history_at; /* at: where the next goes */
	size_t memory;
};

static inline struct cell *cell_of(const struct base *b, unsigned place)
{
	return (struct cell *)(void *)(b->cells + place * b->stride);
}

/* MEAN: adds the value held since MEAN_SINCE. */
static inline void cell_integrate(struct cell *c, int64_t value, uint64_t t_us)
{
	const int64_t us = (int64_t)t_us - c->buckets[MEAN_SINCE];

	c->acc = sat_add(c->acc, sat_mul(value, us));
	c->buckets[MEAN_HELD] += us;
}

#endif
