/* Shares against a numeric solver of the same problem: the multiplier found by bisection, in floating point. */
#include "check.h"
#include "control/fair.h"

#include <math.h>
#include <stdlib.h>

enum {
#ifdef __mips__ /* floating point is emulated there: the same cases as elsewhere, but fewer */
	ROUNDS = 300,
#else
	ROUNDS = 3000,
#endif
};

static double demand(const struct fair_flow *f, unsigned alpha, double price)
{
	const double c = f->cost / (double)FAIR_UNIT_COST, w = f->weight / (double)FAIR_UNIT_WEIGHT;
	/* max-min as the limit: x_i / w_i equal, whatever the cost */
	const double x = alpha == 1 ? w / (c * price) : alpha == 2 ? sqrt(w / (c * price)) : w / price;

	return x < f->cap_kbps ? x : f->cap_kbps;
}

static void solve(const struct fair_flow *flows, unsigned n, unsigned alpha, double capacity, double *x)
{
	double lo = 1e-18, hi = 1e18;
	unsigned i, k;

	for (k = 0; k < 400; k++) {
		const double price = sqrt(lo * hi);
		double used = 0;

		for (i = 0; i < n; i++)
			used += demand(&flows[i], alpha, price) * flows[i].cost / FAIR_UNIT_COST;
		if (used > capacity)
			lo = price;
		else
			hi = price;
	}
	for (i = 0; i < n; i++)
		x[i] = demand(&flows[i], alpha, hi);
}

static uint32_t draw(uint32_t lo, uint32_t hi) /* log-uniform */
{
	return (uint32_t)(lo * pow((double)hi / lo, rand() / (double)RAND_MAX));
}

static void against_solver(unsigned alpha)
{
	static struct fair_flow flows[64];
	unsigned round, i, wrong = 0;
	double x[64], worst = 0;

	srand(7 + alpha);
	for (round = 0; round < ROUNDS; round++) {
		const unsigned n = 1 + (unsigned)rand() % 64;
		const uint32_t capacity = draw(100, 10000000);
		double used = 0;

		for (i = 0; i < n; i++)
			flows[i] = (struct fair_flow){
				.weight = draw(10, 100000), .cost = rand() % 2 ? FAIR_UNIT_COST : draw(16, 65536),
				.cap_kbps = rand() % 3 ? UINT32_MAX : draw(1, capacity),
			};
		fair_shares(flows, n, alpha, capacity);
		solve(flows, n, alpha, capacity, x);
		for (i = 0; i < n; i++) {
			const double allowed = 1.1 + x[i] * 6e-5, error = fabs(flows[i].share_kbps - x[i]);

			wrong += error > allowed || flows[i].share_kbps > flows[i].cap_kbps;
			worst = fmax(worst, error / allowed);
			used += flows[i].share_kbps * (double)flows[i].cost / FAIR_UNIT_COST;
		}
		wrong += used > capacity * (1 + 1e-9);
	}
	printf("# alpha %u: 3000 problems, worst error %.2f of what is allowed\n", alpha, worst);
	CHECK_EQ(wrong, 0);
}

/* x_i = sqrt(k_i·C) with sum sqrt(k_i) = sqrt(C): what the OAL paper writes for alpha 2. */
static void the_papers_form(void)
{
	const double k[3] = { 100, 400, 900 }, capacity = (10 + 20 + 30) * (10 + 20 + 30);
	struct fair_flow flows[3];
	unsigned i;

	for (i = 0; i < 3; i++)
		flows[i] = (struct fair_flow){
			.weight = (uint32_t)k[i] * 10, .cost = FAIR_UNIT_COST, .cap_kbps = UINT32_MAX,
		};
	fair_shares(flows, 3, 2, (uint32_t)capacity);
	for (i = 0; i < 3; i++)
		CHECK(fabs(flows[i].share_kbps - sqrt(k[i] * capacity)) <= 1.5);
}

static void edges(void)
{
	struct fair_flow one = { .weight = 1000, .cost = FAIR_UNIT_COST, .cap_kbps = 5 };
	struct fair_flow two[2] = { { .weight = 1000, .cost = FAIR_UNIT_COST },
	                            { .weight = 1000, .cost = FAIR_UNIT_COST, .cap_kbps = UINT32_MAX } };
	struct fair_flow wide[2] = { { .weight = 1, .cost = 65536, .cap_kbps = UINT32_MAX },
	                             { .weight = 100000, .cost = 1, .cap_kbps = UINT32_MAX } };

	fair_shares(NULL, 0, 1, 1000);
	fair_shares(&one, 1, 1, 1000);
	CHECK_EQ(one.share_kbps, 5);
	fair_shares(&one, 1, 0, 0);
	CHECK_EQ(one.share_kbps, 0);
	fair_shares(two, 2, 2, 1000);
	CHECK_EQ(two[0].share_kbps, 0);
	CHECK_EQ(two[1].share_kbps, 1000);
	fair_shares(wide, 2, 1, 1);
	CHECK(wide[1].share_kbps >= 900);
}

int main(void)
{
	test("alpha 1, proportional fairness: shares are those of a numeric solver");
	against_solver(1);
	test("alpha 2, minimal potential delay: shares are those of a numeric solver");
	against_solver(2);
	test("alpha to infinity, max-min: shares are those of a numeric solver");
	against_solver(0);
	test("alpha 2 with unit costs is the paper's x_i = sqrt(k_i C), sum sqrt(k_i) = sqrt(C)");
	the_papers_form();
	test("no flow, no capacity, caps that leave nothing, weights and costs at their bounds");
	edges();
	return done();
}
