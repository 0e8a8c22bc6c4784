/* feature.h: interpreter of feature programs (schema/README.md, "Feature programs"), bit exact with Java and Python.
 *
 * The caller brings rows in time order and asks for each decision instant once all rows up to it were given:
 *     while (feature_next_us(f) < row's time) feature_evaluate(f, …);
 *     feature_row(f, …);
 * An entity is a small number that the caller keeps for as long as the entity lives. Event tables have one entity,
 * 0. */
#ifndef OAL_FEATURE_H
#define OAL_FEATURE_H

#include <stddef.h>
#include <stdint.h>

#include "feature/feature_program.h"
#include "oal_schema.h"

struct feature;

/* The numbers that a table's entities may have: 0 … entities − 1. */
struct feature_space {
	unsigned entities;
	/* −1, or the KEY column that is the lowest bit of an entity's number: features that filter on it then need no
	 * room for the other half. */
	int low_bit_column;
};

/* Negative errno: -EINVAL for a program that feature_program_check() refuses, -ENOMEM. */
int feature_new(struct feature **, const struct oal_feature_program *, const struct feature_space spaces[OAL_N_TABLES]);
void feature_free(struct feature *);
size_t feature_memory(const struct feature *);
const struct oal_feature_program *feature_program(const struct feature *);

/* Forgets everything; the first instant is the first multiple of the interval at or after `t0_us`. */
void feature_restart(struct feature *, uint64_t t0_us);
/* What the contract asks for before the rows of a batch that begins at `t0_us`: whether state must restart because of a
 * gap. */
int feature_gap(const struct feature *, uint64_t t0_us);
/* The next decision instant; UINT64_MAX before feature_restart(). */
uint64_t feature_next_us(const struct feature *);
void feature_row(struct feature *, enum oal_table_id, unsigned entity, const void *row, uint64_t t_us);
/* Does the program read this table at all? */
int feature_reads(const struct feature *, enum oal_table_id);
/* The entity had no row in a batch that ended. */
void feature_drop(struct feature *, enum oal_table_id, unsigned entity);
/* Evaluates the next instant; the result has program->n values and is valid until the next call. */
const int64_t *feature_evaluate(struct feature *);

#endif
