/* The law `fair_window`: windows that give each flow its fair share of the capacity, and leave just enough wait for the
 * air to be used. control.h has it step by step. */
#include "control/control_state.h"

enum {
	MOST_COST = 64, /* a byte costs at most so many times the mean byte, or that part of it: the range of fair.h */
	HEADROOM_DIVISOR = 4, /* a flow that could not use its share may still grow by this part of its rate … */
	HEADROOM_KBPS = 64, /* … and by this, so that one that stands still may begin */
	/* A sender that leaves part of its window unused may have a longer queue: up to 5 % unused no longer, then
	 * 2.5 % of the wanted wait for each permille; 13 % unused makes it three times as long; at most five times. */
	FILL_ENOUGH_PERMILLE = 950, /* of the window: so full counts as all of it */
	FILL_GAIN = 25, /* permille of wait for each permille below that */
	FILL_MOST_PERMILLE = 4000, /* of wait on top: five times in all, however long it pauses */
	FILL_TAU_US = 2000000, /* over which the fill is smoothed: BBR drains its queue every ten round trips or so */
	STARVED_PERMILLE = 500, /* a starving station is as wrong as half the wait that is wanted */
	SET_DIVISOR = 16, /* a window that moved by this part is set: less would only cost sets */
};

/* --- capacity and shares */

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

static void share_out(struct control *c, const struct control_input *in, unsigned n)
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

/* --- act? */

static uint8_t reason(struct control *c, const struct control_input *in)
{
	const bool fresh = control_is_fresh(c, in);

	if (fresh && in->class != CONTROL_NO_CLASS && in->class >= c->policy.act_class)
		return OAL_REWRITE_REASON_CLASS;
	if (fresh && in->congested_permille >= c->policy.act_permille)
		return OAL_REWRITE_REASON_PROBABILITY;
	if (c->policy.act_queue_us && c->queue_us >= c->policy.act_queue_us)
		return OAL_REWRITE_REASON_QUEUE;
	return OAL_REWRITE_REASON_NONE;
}

static bool may_begin(const struct active *a)
{
	return a->eligible;
}

/* --- windows */

/* What the sender needs for its rate and the queue that is wanted. */
static uint32_t wanted_cwnd(const struct control *c, const struct active *a)
{
	const uint32_t excess_us = a->s->queue_us > c->target_us ? a->s->queue_us - c->target_us : 0;
	const uint32_t excess = bytes_of(a->s->rate_kbps, excess_us);

	if (c->policy.window_model && a->in->model_cwnd_bytes)
		return a->in->model_cwnd_bytes > excess ? a->in->model_cwnd_bytes - excess : 0;
	return bytes_of(a->s->rate_kbps, (uint64_t)a->base_us + c->target_us);
}

/* (to - from) / unit in permille, at most the whole either way. */
static int64_t error_permille(int64_t from, int64_t to, int64_t unit)
{
	const int64_t e = unit ? (to - from) * UNIT / unit : 0;

	return e > UNIT ? UNIT : e < -UNIT ? -UNIT : e;
}

/* The queue that is wanted for this flow. Senders that pace themselves and drain the queue of their own accord, as BBR
 * does in turns, leave part of a window unused, and with it some of the air; they are no reason for a queue, so their
 * window may be larger. */
static uint32_t target_of(const struct control *c, const struct active *a)
{
	const uint32_t fill = a->s->fill_permille;
	const uint32_t more = fill < FILL_ENOUGH_PERMILLE ? (FILL_ENOUGH_PERMILLE - fill) * FILL_GAIN : 0;

	return (uint32_t)((uint64_t)c->target_us * (UNIT + at_most(more, FILL_MOST_PERMILLE)) / UNIT);
}

/* A window in force follows the queue, and drifts towards the flow's share. */
static uint64_t next_window(const struct control *c, const struct active *a, uint32_t share_kbps, uint64_t dt_us)
{
	const int64_t rtt_us = (int64_t)a->base_us + a->s->queue_us;
	const int64_t dt = (int64_t)dt_us < rtt_us ? (int64_t)dt_us : rtt_us;
	const uint32_t target_us = target_of(c, a);
	int64_t error = error_permille(a->s->queue_us, target_us, target_us);

	/* It is not the window that keeps the queue short; or the window has yet to shorten it. */
	if ((error > 0 && !a->binds) || (error < 0 && a->exceeds))
		error = 0;
	/* Wi-Fi's own unrest moves little, a queue that is off by all of it much; and an empty one is not unrest. */
	if (error < 0 || c->backlog_us > c->target_us / IDLE_DIVISOR)
		error = error * (error < 0 ? -error : error) / UNIT;
	if (a->starves && error < STARVED_PERMILLE)
		error = STARVED_PERMILLE;
	error += error_permille(a->s->rate_kbps, share_kbps, a->s->rate_kbps);
	return (uint64_t)((int64_t)a->s->exact_bytes +
			  (int64_t)a->s->exact_bytes * c->policy.probe_permille / UNIT * error / UNIT * dt / rtt_us);
}

/* It begins with what the sender needs for its share. In shadow it begins anew at each step: nobody obeys, so the queue
 * says nothing about a window, and correcting one by it would never end. */
static uint64_t window(struct control *c, unsigned i, uint64_t dt_us, uint32_t *cwnd_bytes)
{
	const struct active *a = &c->active[i];
	const uint32_t share_kbps = c->fair[i].share_kbps;
	struct flow_state *s = a->s;

	*cwnd_bytes = wanted_cwnd(c, a);
	if (!s->window_bytes || c->shadow) {
		s->fill_permille = UNIT;
		return s->rate_kbps ? (uint64_t)*cwnd_bytes * share_kbps / s->rate_kbps : 0;
	}
	s->fill_permille = smooth(s->fill_permille, (uint64_t)a->flight_bytes * UNIT / s->window_bytes, dt_us,
				  FILL_TAU_US);
	return next_window(c, a, share_kbps, dt_us);
}

const struct law_ops law_fair_window = {
	.name = "fair_window",
	.prepare = share_out,
	.reason = reason,
	.may_begin = may_begin,
	.window = window,
	.holds_while_binding = true,
	.follows_links = true,
	.set_divisor = SET_DIVISOR,
};
