/* decision.h: what one AP predicts, made into rows: connects a slot of its data path with the inference that evaluates
 * it. Tick thread. */
#ifndef OAL_DECISION_CALLS_H
#define OAL_DECISION_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "oal_schema.h"

struct feature_vector;
struct inference;
struct pipeline;
struct verdict;

/* A tick has begun: reports what the agent's thread left to report, and takes over a bundle whose turn has come. */
void decision_begin_tick(struct pipeline *, struct inference *);
/* A decision instant: has it evaluated, and writes the row `decision` if there is a verdict. */
void decision_make(struct pipeline *, struct inference *, const struct feature_vector *);
/* A row of an event table by itself, at `t_us` realtime: what the bundle in force at this slot says of it, and the row
 * `decision`. False: there is none, or it is not about rows of this table. */
bool decision_of_row(struct pipeline *, unsigned slot, struct inference *, enum oal_table_id, const void *row,
		     uint64_t t_us, struct verdict *);

#endif
