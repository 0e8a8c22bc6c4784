/* effects.h: what several policies want of one data path, composed: of the windows that are wanted for a flow, the
 * smallest is set, and ends when the policy that wants it said. One policy alone passes through unchanged. */
#ifndef OAL_EFFECTS_H
#define OAL_EFFECTS_H

#include <stdint.h>

#include "rewrite/rwnd.h"

enum { EFFECTS_POLICIES = 4 };

struct effects {
	struct rwnd *rwnd; /* NULL: nothing can be set. Not owned */
	/* Of each flow's place, what each policy wants; touched only where one wants something. */
	struct effects_wish {
		uint64_t id, until_us; /* of the flow; monotonic */
		uint32_t bytes; /* 0: nothing */
	} (*wishes)[EFFECTS_POLICIES];
	unsigned max_flows;
};

/* A flow as the policies name it: its place, and its id, by which another one at that place is told apart. */
struct effects_flow {
	uint16_t place;
	uint64_t id;
	const struct rwnd_flow *flow;
};

/* -ENOMEM */
int effects_new(struct effects *, unsigned max_flows);
void effects_free(struct effects *);
/* The policy wants this window, or none (bytes 0), from now on, for `ttl_us` unless it says so again. As rwnd_set() and
 * rwnd_release(). */
int effects_want(struct effects *, unsigned policy, const struct effects_flow *, uint32_t bytes, uint32_t ttl_us,
                 uint64_t now_us);
/* The policy wants nothing any more, also of flows that are gone. `alone`: no other policy sets windows. */
void effects_give_up(struct effects *, unsigned policy, bool alone);

#endif
