#include "sample/budget.h"

int budget_decide(struct budget *b, uint32_t budget_permille, const uint32_t *cpu_permille, unsigned *pace, unsigned n)
{
	uint64_t sum = 0;
	unsigned most = n, slowest = n;

	for (unsigned i = 0; i < n; i++) {
		sum += cpu_permille[i];
		if (pace[i] < BUDGET_MOST_PACE && (most == n || cpu_permille[i] > cpu_permille[most]))
			most = i;
		if (pace[i] && (slowest == n || pace[i] > pace[slowest]))
			slowest = i;
	}
	if (sum > budget_permille) {
		b->calm_s = 0;
		if (most == n)
			return 0;
		pace[most]++;
		return 1;
	}
	b->calm_s = sum * 2 <= budget_permille ? b->calm_s + 1 : 0;
	if (b->calm_s < BUDGET_CALM_S || slowest == n)
		return 0;
	b->calm_s = 0;
	pace[slowest]--;
	return -1;
}
