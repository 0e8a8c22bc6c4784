/* feature_slot.h: the place of one feature program in a data path: which one runs there, and which one takes over where
 * the next batch begins. All of it belongs to the tick thread; only feature_slot_state() may be called by any. */
#ifndef OAL_FEATURE_SLOT_H
#define OAL_FEATURE_SLOT_H

#include <stdbool.h>
#include <stdint.h>

#include "feature/feature.h"

struct feature_slot {
	struct feature *running; /* NULL: none */
	struct feature *next; /* waits for a batch to begin; NULL: none */
	struct feature *retired; /* out of use, until feature_slot_retired() gives it away */
	bool stop; /* where the next batch begins, nothing runs any more */
	uint64_t program_id; /* of `running`, as headers name it; 0: none */
};

/* State to run a program in a data path of these sizes. The program and its words must live as long as the state.
 * 0, -EINVAL for a program that cannot run here, -ENOMEM. */
int feature_slot_state(struct feature **, const struct oal_feature_program *,
                       const struct feature_space spaces[OAL_N_TABLES]);
void feature_slot_free(struct feature_slot *);

/* `next` takes over where the next batch begins, empty as at a start. Until then a later call replaces it: the result
 * is the earlier one, which was never used; else NULL. */
struct feature *feature_slot_offer(struct feature_slot *, struct feature *next);
/* Nothing runs from the next batch on. As feature_slot_offer(). */
struct feature *feature_slot_stop(struct feature_slot *);
/* A batch begins: the next program runs from now on. False: nothing
 * is to change, or an earlier one was not given away yet. */
bool feature_slot_advance(struct feature_slot *);
/* What is out of use, once; then NULL. The caller frees it. */
struct feature *feature_slot_retired(struct feature_slot *);

#endif
