/* Parts 2 and 3 of the control law: the capacity, and each flow's fair share of it. */
#include "control/control_math.h"
#include "control/control_state.h"

enum {
	MOST_COST = 64, /* a byte costs at most so many times the mean byte, or that part of it: the range of fair.h */
	HEADROOM_DIVISOR = 4, /* a flow that could not use its share may still grow by this part of its rate … */
	HEADROOM_KBPS = 64, /* … and by this, so that one that stands still may begin */
};

static uint32_t weight_of(const struct oal_policy *p, uint16_t port)
{
	unsigned i;

	for (i = 0; i < p->n_weights; i++)
		if (p->weight_port[i] == port)
			return p->weight_permille[i];
	return FAIR_UNIT_WEIGHT;
}

/* Airtime of a byte of this station, next to that of the mean byte: 1/64 to 64 times. */
static uint32_t cost_of(const struct control *c, const struct station_state *k)
{
	uint64_t cost;

	if (!c->policy.airtime_cost || !k || !k->rate_kbps || !k->airtime || !c->share_permille)
		return FAIR_UNIT_COST;
	cost = (uint64_t)k->airtime * c->rate_kbps * FAIR_UNIT_COST /
	       ((uint64_t)c->share_permille * AIR_FRACTION * k->rate_kbps);
	return cost < FAIR_UNIT_COST / MOST_COST ? FAIR_UNIT_COST / MOST_COST
						 : at_most(cost, FAIR_UNIT_COST * MOST_COST);
}

void control_share(struct control *c, const struct control_input *in, unsigned n)
{
	uint64_t used = 0;
	unsigned i;

	for (i = 0; i < n; i++) {
		const struct active *a = &c->active[i];
		struct fair_flow *f = &c->fair[i];

		f->weight = weight_of(&c->policy, a->in->server_port);
		f->cost = cost_of(c, station_of(c, in, a->in->station));
		f->cap_kbps = UINT32_MAX;
		/* It uses less than it may although nothing of ours binds: it has no more to send, or is limited
		 * elsewhere. */
		if (!a->eligible || (a->s->window_bytes ? !a->binds : a->s->queue_us < c->target_us / IDLE_DIVISOR))
			f->cap_kbps = a->s->rate_kbps + a->s->rate_kbps / HEADROOM_DIVISOR + HEADROOM_KBPS;
		used += (uint64_t)a->s->rate_kbps * f->cost / FAIR_UNIT_COST;
	}
	used = at_most(used, UINT32_MAX);
	if (c->queue_us >= c->target_us / 2 || used > c->capacity_cost_kbps ||
	    in->t_us - c->capacity_us > c->policy.capacity_age_us) {
		c->capacity_cost_kbps = (uint32_t)used;
		c->capacity_kbps = c->rate_kbps;
		c->capacity_us = in->t_us;
	}
	fair_shares(c->fair, n, c->policy.alpha, at_most(c->capacity_cost_kbps, FAIR_MOST_KBPS));
}
