/* budget.h: how much of the processor sampling may take, and which sampler slows down for it. Pure. */
#ifndef OAL_BUDGET_H
#define OAL_BUDGET_H

#include <stdint.h>

enum {
	BUDGET_MOST_PACE = 6, /* 64 times slower than configured: 4 samples a second of what is due at every tick */
	BUDGET_CALM_S = 5, /* seconds within half the budget before anything is sampled more often again */
};

struct budget {
	unsigned calm_s; /* so far */
};

/* Once a second: `cpu_permille` of a core that each of `n` samplers used in it, and the paces that they had; the paces
 * of the next second are written in place. Over the budget the sampler that uses most slows down by half; after some
 * seconds within half of it, the slowest one is as quick again as before its last step. Returns 1 if one was slowed, -1
 * if one was quickened, else 0. */
int budget_decide(struct budget *, uint32_t budget_permille, const uint32_t *cpu_permille, unsigned *pace, unsigned n);

#endif
