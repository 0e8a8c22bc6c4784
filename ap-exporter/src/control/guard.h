/* guard.h: are clamps to blame for lost throughput? Then they are taken back: for a while, twice as long each time.
 * Part of the frame: it rests on what is measured, whatever law decides. Pure; integers. */
#ifndef OAL_GUARD_H
#define OAL_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "oal_policy.h"

struct guard {
	uint32_t reference_kbps, clamped_kbps; /* throughput before clamps, and since */
	uint32_t reference_air_permille, clamped_air_permille; /* the air that was used for it */
	uint32_t idle_permille; /* of the time in which the queue was empty although clamps bind */
	uint64_t until_us; /* nothing is clamped before */
	uint64_t quiet_since_us; /* since when it has had nothing to take back */
	uint64_t trial_until_us; /* is it better without clamps? 0: no trial runs */
	unsigned backoff_shift;
	uint64_t reverts; /* since the start */
};

/* What was measured in a step. */
struct guard_input {
	uint64_t t_us, dt_us;
	uint64_t acting_since_us;
	uint32_t rate_kbps, air_permille;
	bool acting;
	bool shadow; /* nothing is set: throughput says nothing about clamps */
	bool idle; /* the queue is empty although clamps bind */
	bool doubtful; /* round trips say that data waits all the same */
};

/* True: the clamps must go, now. */
bool guard_step(struct guard *, const struct oal_policy *, const struct guard_input *);
/* The clock was stepped: no remembered time compares. */
void guard_restart(struct guard *);
static inline bool guard_holds(const struct guard *g, uint64_t t_us)
{
	return t_us < g->until_us;
}

#endif
