/* rest.h: how long the tick thread may rest while a ring fills. */
#ifndef OAL_REST_H
#define OAL_REST_H

#include <stdint.h>

enum {
	REST_MOST = 25, /* ticks: from a decision to the next */
	REST_FLOOD = 5, /* where what comes may grow tenfold from one tick to the next: packets, new stations */
	REST_PARTS = 4, /* a ring is let fill to one of so many parts of it, if it goes on filling as it did */
};

/* Ticks until a ring of `size` (at most 2^24) is so full, if as much comes as did in the last `passed` ticks: `taken`.
 */
uint32_t rest_for(uint32_t taken, uint32_t size, uint32_t passed);

#endif
