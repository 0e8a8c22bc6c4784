/* fair.h: divides a capacity among flows by alpha-fairness. Pure, integers only. */
#ifndef OAL_FAIR_H
#define OAL_FAIR_H

#include <stdbool.h>
#include <stdint.h>

enum {
	FAIR_MAX = 1024, /* flows */
	FAIR_UNIT_COST = 1024, /* the airtime of an ordinary byte */
	FAIR_UNIT_WEIGHT = 1000, /* permille: an ordinary flow */
	FAIR_MOST_KBPS = (1 << 24) - 1, /* 16.8 Gbit/s: times costs and proportions it stays within 64 bits */
};

struct fair_flow {
	uint32_t weight; /* permille of an ordinary flow's: 1…100000 */
	uint32_t cost; /* of a unit of rate, FAIR_UNIT_COST for an ordinary one: 1…65536 */
	uint32_t cap_kbps; /* it can use no more; UINT32_MAX: no limit */
	uint32_t share_kbps; /* the result */
	/* Of fair_shares() itself. */
	bool settled; /* by its cap */
	uint64_t proportion;
};

/* Shares x of n flows (at most FAIR_MAX) that maximise sum w_i·U(x_i) with sum c_i·x_i <= capacity and x_i <= cap_i.
 * U(x) = log x for alpha 1, and -1/x for alpha 2; x_i/w_i is max-min fair for alpha 0, which stands for alpha →
 * infinity (Mo and Walrand, "Fair end-to-end window-based congestion control", IEEE/ACM Transactions on Networking
 * 8(5), 2000).
 *
 * With one constraint and its multiplier p the optimum is w_i·x_i^-alpha = p·c_i wherever the cap does not bind, so x_i
 * is proportional to
 *     alpha 1:  w_i / c_i          alpha 2:  sqrt(w_i / c_i)          alpha → infinity:  w_i
 * and the constraint, met with equality, gives the factor. Caps that bind are taken out with their cost, and the rest
 * is divided again. That only raises the shares of the others, and ends after at most n rounds. With unit costs alpha 2
 * is x_i = sqrt(k_i·C), sum sqrt(k_i) = sqrt(C).
 *
 * `capacity_kbps`, at most FAIR_MOST_KBPS, is in kbit/s of cost FAIR_UNIT_COST. A share errs by less than 1 kbit/s plus
 * its 2^-14th part. */
void fair_shares(struct fair_flow *flows, unsigned n, unsigned alpha, uint32_t capacity_kbps);

#endif
