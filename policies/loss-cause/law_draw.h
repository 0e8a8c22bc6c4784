/* law_draw.h: numbers for made-up histories of connections, the same in every run. */
#ifndef OAL_LOSS_CAUSE_LAW_DRAW_H
#define OAL_LOSS_CAUSE_LAW_DRAW_H

#include <stdint.h>

static uint64_t seed = 17;

static uint64_t draw(void) /* xorshift64*, Vigna */
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return seed * UINT64_C(0x2545f4914f6cdd1d);
}

static uint64_t below(uint64_t n) { return draw() % n; }

/* Sizes of all magnitudes, edges among them. */
static uint32_t sized(void)
{
	static const uint32_t edges[] = { 0, 1, UINT32_MAX, INT32_MAX, 0x80000000u, 2, 3 };

	return below(16) ? (uint32_t)(draw() >> (32 + below(32))) : edges[below(7)];
}

static int64_t around(int64_t most) { return (int64_t)below(2 * (uint64_t)most + 1) - most; }

#endif
