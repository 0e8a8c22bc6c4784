/* rest.h: how long the tick thread may rest while a ring fills. */
#ifndef OAL_REST_H
#define OAL_REST_H

#include <stdint.h>

enum {
	REST_MOST = 25, /* ticks: from a decision to the next */
	REST_FLOOD = 5, /* where what comes may grow tenfold from one tick to the next: packets, new stations */
	REST_PARTS = 4, /* a ring is let fill to one of so many parts of it, if it goes on filling as it did */
};

/* Ticks until a ring of `size` is so full, if as much comes as did in the last `passed` ticks: `taken`. */
static inline uint32_t rest_for(uint64_t taken, uint64_t size, uint32_t passed)
{
	uint64_t ticks = taken ? size / REST_PARTS * passed / taken : REST_MOST;

	return ticks > REST_MOST ? REST_MOST : ticks ? (uint32_t)ticks : 1;
}

#endif
