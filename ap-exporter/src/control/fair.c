#include "control/fair.h"

#include <stdbool.h>

enum { PROPORTION_BITS = 30 }; /* of the largest proportion, so that no product is over 64 bits */

static uint32_t square_root(uint64_t v)
{
	uint64_t root = 0, bit = UINT64_C(1) << 62;

	while (bit > v)
		bit >>= 2;
	for (; bit; bit >>= 2) {
		if (v >= root + bit) {
			v -= root + bit;
			root = (root >> 1) + bit;
		} else {
			root >>= 1;
		}
	}
	return (uint32_t)root;
}

/* What a share is proportional to: 1 to 2^46. */
static uint64_t proportion_of(const struct fair_flow *f, unsigned alpha)
{
	const uint64_t w = (uint64_t)f->weight << 29;
	uint64_t p = w;

	if (alpha == 1)
		p = w / f->cost;
	else if (alpha == 2)
		p = square_root((w << 17) / f->cost);
	return p ? p : 1;
}

/* Proportions of those who are not settled, the largest with PROPORTION_BITS, so that no product below is over 64 bits;
 * what they would cost in all. */
static uint64_t normalise(struct fair_flow *flows, unsigned n)
{
	uint64_t largest = 0, cost = 0;
	unsigned shift = 0, i;

	for (i = 0; i < n; i++)
		if (!flows[i].settled && flows[i].proportion > largest)
			largest = flows[i].proportion;
	while (largest >> shift >> PROPORTION_BITS)
		shift++;
	for (i = 0; i < n; i++) {
		const uint64_t p = flows[i].proportion >> shift;

		if (flows[i].settled)
			continue;
		flows[i].share_kbps = p ? (uint32_t)p : 1; /* until it is settled */
		cost += (uint64_t)flows[i].share_kbps * flows[i].cost;
	}
	return cost;
}

void fair_shares(struct fair_flow *flows, unsigned n, unsigned alpha, uint32_t capacity_kbps)
{
	uint64_t left = (uint64_t)capacity_kbps * FAIR_UNIT_COST;
	bool again = true;
	unsigned i;

	for (i = 0; i < n; i++) {
		flows[i].settled = false;
		flows[i].proportion = proportion_of(&flows[i], alpha);
	}
	while (again) {
		const uint64_t cost = normalise(flows, n), capacity = left;

		again = false;
		for (i = 0; i < n; i++) {
			struct fair_flow *f = &flows[i];

			if (f->settled || capacity * f->share_kbps / cost < f->cap_kbps)
				continue;
			left -= (uint64_t)f->cap_kbps * f->cost;
			f->share_kbps = f->cap_kbps;
			f->settled = again = true;
		}
		for (i = 0; i < n && !again; i++)
			if (!flows[i].settled)
				flows[i].share_kbps = (uint32_t)(capacity * flows[i].share_kbps / cost);
	}
}
