/* rwnd_clamps.h: the pure part of the rewrite's front: which clamps are allowed, how low, and which are in force until
 * when. */
#ifndef OAL_RWND_CLAMPS_H
#define OAL_RWND_CLAMPS_H

#include "rewrite/rwnd.h"

/* Is this clamp allowed? 0, and `*bytes` is raised to the floor; or -EINVAL. */
int rwnd_check_clamp(const struct rwnd_flow *, uint32_t *bytes, uint32_t ttl_ms);
/* The field of the TCP header for a window of `bytes`: rounded down to the scale, but not below the floor, and at
 * least 1. */
uint16_t rwnd_raw(uint32_t bytes, uint32_t floor_bytes, uint8_t scale);
static inline uint32_t rwnd_floor_bytes(const struct rwnd_flow *f)
{
	return (uint32_t)RWND_FLOOR_MSS * f->mss_bytes;
}

/* What holds for a flow when two policies enforce: the smaller window; 0 is none. */
uint64_t rwnd_meet(uint64_t a, uint64_t b);

/* Clamps by flow, in memory of fixed size. */
struct rwnd_clamps;
struct rwnd_clamps *rwnd_clamps_new(uint32_t max);
void rwnd_clamps_free(struct rwnd_clamps *);
/* Notes that a flow is clamped until `until_us`. 1: it is a new one; 0: it was there; -ENOSPC: the table is full. */
int rwnd_clamps_set(struct rwnd_clamps *, const struct rwnd_flow *, uint64_t until_us);
/* True if the flow was there. */
bool rwnd_clamps_remove(struct rwnd_clamps *, const struct rwnd_flow *);
/* Removes one clamp whose time is over at `now_us`; false if there is none. */
bool rwnd_clamps_expire(struct rwnd_clamps *, uint64_t now_us, struct rwnd_flow *);
void rwnd_clamps_clear(struct rwnd_clamps *);
uint32_t rwnd_clamps_count(const struct rwnd_clamps *);
/* Those of one direction. */
uint32_t rwnd_clamps_count_of(const struct rwnd_clamps *, enum rwnd_direction);

#endif
