/* programs.h: the feature programs of one data path: PIPELINE_SLOTS places, in each of which one may run. */
#ifndef OAL_PROGRAMS_H
#define OAL_PROGRAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "oal_schema.h"

struct feature_slot;
struct feature_space;
struct pipeline;

/* Where a program runs, and the next one waits. Batch headers name the program of slot 0. */
struct feature_slot *pipeline_slot(struct pipeline *, unsigned slot);
/* The sizes that a program's state must be made for, OAL_N_TABLES of them; fixed by pipeline_new(). */
void pipeline_feature_spaces(const struct pipeline *, struct feature_space *spaces);

/* --- for this room; in a build without an agent, whose models would read the features, no program runs */
/* The program of the configuration starts in slot 0. 0, or a negative errno. */
int programs_start(struct pipeline *);
/* Does any running program read this table? */
bool programs_read(const struct pipeline *, enum oal_table_id);
/* Gives the programs every row before `end_us` that they have not seen. */
void programs_feed(struct pipeline *, uint64_t end_us);
/* The entity had no row in a batch that ended: they forget it. */
void programs_drop(struct pipeline *, enum oal_table_id, unsigned entity);
/* A batch begins at `t0_us`: programs whose turn has come take over. */
void programs_begin_batch(struct pipeline *, uint64_t t0_us);
/* A decision instant: feeds the programs and hands the consumer what each says. */
void programs_evaluate(struct pipeline *, uint64_t instant_us);

#endif
