/* control_math.h: the arithmetic of the control law: integers that stop at their largest value instead of wrapping. */
#ifndef OAL_CONTROL_MATH_H
#define OAL_CONTROL_MATH_H

#include <stdint.h>

enum { UNIT = 1000 }; /* of what is counted in permille */
enum { MAX_RTT_US = 2000000 }; /* two seconds: no wait of a flow that still moves is longer */

static inline uint32_t at_most(uint64_t value, uint32_t most)
{
	return value > most ? most : (uint32_t)value;
}

/* Bytes that `kbps` moves in `us`. */
static inline uint32_t bytes_of(uint64_t kbps, uint64_t us)
{
	return at_most(kbps * us / 8000, UINT32_MAX);
}

/* Time that `bytes` take at `kbps`; 0 where nothing moves. */
static inline uint32_t time_of(uint64_t bytes, uint32_t kbps)
{
	return at_most(kbps ? bytes * 8000 / kbps : 0, MAX_RTT_US);
}

/* Exponentially weighted mean with time constant tau, for a value that held for dt. */
static inline uint32_t smooth(uint32_t mean, uint64_t value, uint64_t dt_us, uint64_t tau_us)
{
	const uint64_t weight = dt_us >= tau_us ? UNIT : dt_us * UNIT / tau_us;

	return at_most(((uint64_t)mean * (UNIT - weight) + value * weight + UNIT / 2) / UNIT, UINT32_MAX);
}

#endif
