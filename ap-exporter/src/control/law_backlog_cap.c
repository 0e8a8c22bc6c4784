/* The law `backlog_cap`: windows of uploads, in the ACKs of their servers. Stations that send put more on the way than
 * the air takes: their ACKs then wait at the access point, which gets one turn where each station has one, round trips
 * grow, and ACKs are dropped. What is on its way is held at what the air needs, shared by terminals, not by flows.
 *
 * By feedback: a window begins with a flow's share of what is delivered for its round trip and the wait that is wanted,
 * and follows the wait of its ACKs. Or, with policy.cap_period_us, by the table that Shimada, Oguchi and Yamaguchi
 * published ("Performance Improvement in WLAN and LTE Based on Backlog Control Middleware"): a number of segments for
 * the ratio of round trip to the least one, and no more than the terminal's part of what is delivered takes at that
 * least one. */
#include "control/control_state.h"

enum {
	MOST_US = 5000000, /* what was delivered at most is remembered for one to two of these */
	SEGMENT_BYTES = 1500, /* of the table: with its headers */
	LEAST_PKTS = 4, /* a station's, where the table leaves less */
	HEADROOM_DIVISOR = 4, /* a flow that could not use its share may still grow by this part of its rate … */
	HEADROOM_KBPS = 64, /* … and by this, so that one that stands still may begin */
	SET_DIVISOR = 16, /* a window that moved by this part is set: less would only cost sets */
};

static uint32_t largest_add(struct largest *l, uint32_t value, uint64_t t_us)
{
	if (t_us - l->since_us >= MOST_US) {
		l->before = t_us - l->since_us < 2 * MOST_US ? l->now : 0;
		l->now = 0;
		l->since_us = t_us;
	}
	if (value > l->now)
		l->now = value;
	return l->now > l->before ? l->now : l->before;
}

static uint32_t wanted_us(const struct oal_policy *p)
{
	return p->cap_wait_us ? p->cap_wait_us : p->target_us;
}

/* --- terminals */

/* Flows of each station that are worth a cap. Returns how many stations have one. */
static unsigned count_terminals(struct control *c, const struct control_input *in, unsigned n)
{
	unsigned i, terminals = 0;

	for (i = 0; i < in->n_stations; i++)
		c->stations[in->stations[i].place].n_flows = 0;
	for (i = 0; i < n; i++) {
		struct station_state *k = station_of(c, in, c->active[i].in->station);

		if (k && c->active[i].s->rate_kbps >= c->policy.min_flow_kbps)
			terminals += !k->n_flows++;
	}
	return terminals ? terminals : 1;
}

static uint32_t flows_of(const struct station_state *k)
{
	return k && k->n_flows ? k->n_flows : 1;
}

/* Each terminal the same; what one cannot use is the others'. */
static void share_out(struct control *c, const struct control_input *in, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++) {
		const struct active *a = &c->active[i];
		struct fair_flow *f = &c->fair[i];

		f->weight = FAIR_UNIT_WEIGHT / flows_of(station_of(c, in, a->in->station));
		f->weight += !f->weight;
		f->cost = FAIR_UNIT_COST;
		f->cap_kbps = UINT32_MAX;
		/* It uses less than it may although nothing of ours binds. */
		if (!a->eligible || (a->s->window_bytes ? !a->binds : a->s->queue_us < c->target_us / IDLE_DIVISOR))
			f->cap_kbps = a->s->rate_kbps + a->s->rate_kbps / HEADROOM_DIVISOR + HEADROOM_KBPS;
	}
	fair_shares(c->fair, n, 1, at_most(c->capacity_kbps, FAIR_MOST_KBPS));
}

/* --- the table */

/* Segments at this ratio of round trips, rounded down; UINT32_MAX: any number. */
static uint32_t of_ratio(const struct oal_policy *p, uint32_t ratio)
{
	const uint32_t pkts = ratio >= 10  ? p->cap_ratio10_pkts
			      : ratio >= 5 ? p->cap_ratio5_pkts
			      : ratio == 4 ? p->cap_ratio4_pkts
			      : ratio == 3 ? p->cap_ratio3_pkts
			      : ratio == 2 ? p->cap_ratio2_pkts
					   : p->cap_ratio1_pkts;

	return pkts ? pkts : UINT32_MAX;
}

/* What a flow's round trips leave to its station. */
static uint32_t table_pkts(const struct control *c, const struct active *a, unsigned terminals)
{
	const uint32_t rtt_us = a->in->rtt_down_us + a->in->rtt_up_us, base_us = a->base_us ? a->base_us : 1;
	const uint32_t by_ratio = of_ratio(&c->policy, rtt_us / base_us);
	const uint32_t by_share = bytes_of(c->capacity_kbps, base_us) / SEGMENT_BYTES / terminals;
	const uint32_t least = by_ratio < by_share ? by_ratio : by_share;

	return least > LEAST_PKTS ? least : LEAST_PKTS;
}

/* Each station has the least that one of its flows says, for a period; one that came in between has its own at once. */
static void look_up(struct control *c, const struct control_input *in, unsigned n, unsigned terminals)
{
	const bool due = in->t_us - c->capped_us >= c->policy.cap_period_us;
	unsigned i;

	if (due) {
		c->capped_us = in->t_us;
		for (i = 0; i < in->n_stations; i++)
			c->stations[in->stations[i].place].cap_pkts = 0;
	}
	for (i = 0; i < n; i++) {
		struct station_state *k = station_of(c, in, c->active[i].in->station);
		uint32_t pkts;

		if (!k || (k->cap_pkts && !due) || !c->active[i].eligible)
			continue;
		pkts = table_pkts(c, &c->active[i], terminals);
		if (!k->cap_pkts || pkts < k->cap_pkts)
			k->cap_pkts = pkts;
	}
}

/* --- a step */

static void prepare(struct control *c, const struct control_input *in, unsigned n)
{
	const unsigned terminals = count_terminals(c, in, n);
	unsigned i;

	c->target_us = wanted_us(&c->policy);
	c->capacity_kbps = largest_add(&c->delivered, c->rate_kbps, in->t_us);
	share_out(c, in, n);
	if (!c->policy.cap_period_us)
		return;
	look_up(c, in, n, terminals);
	for (i = 0; i < n; i++) {
		const struct station_state *k = station_of(c, in, c->active[i].in->station);

		c->active[i].table_pkts = k ? k->cap_pkts / flows_of(k) : 0;
	}
}

static uint8_t reason(struct control *c, const struct control_input *in)
{
	return c->policy.act_queue_us && c->queue_us >= c->policy.act_queue_us ? OAL_REWRITE_REASON_QUEUE
									       : OAL_REWRITE_REASON_NONE;
}

static bool may_begin(const struct active *a)
{
	return a->eligible;
}

/* (to - from) / unit in permille, at most the whole either way. */
static int64_t error_permille(int64_t from, int64_t to, int64_t unit)
{
	const int64_t e = unit ? (to - from) * UNIT / unit : 0;

	return e > UNIT ? UNIT : e < -UNIT ? -UNIT : e;
}

/* A window in force grows while its ACKs wait less than is wanted and it is used, shrinks while they wait longer, by at
 * most probe_permille a round trip, and drifts towards its share. */
static uint64_t follow(const struct control *c, const struct active *a, uint32_t share_kbps, uint64_t dt_us)
{
	const int64_t rtt_us = (int64_t)a->base_us + a->s->queue_us + 1;
	const int64_t dt = (int64_t)dt_us < rtt_us ? (int64_t)dt_us : rtt_us;
	int64_t error = error_permille(a->s->queue_us, c->target_us, c->target_us);

	if ((error > 0 && !a->binds) || (error < 0 && a->exceeds))
		error = 0; /* it is not the window that keeps the wait short; or it has yet to shorten it */
	error += error_permille(a->s->rate_kbps, share_kbps, a->s->rate_kbps);
	return (uint64_t)((int64_t)a->s->exact_bytes +
			  (int64_t)a->s->exact_bytes * c->policy.probe_permille / UNIT * error / UNIT * dt / rtt_us);
}

static uint64_t window(struct control *c, unsigned i, uint64_t dt_us, uint32_t *cwnd_bytes)
{
	const struct active *a = &c->active[i];
	const uint32_t share_kbps = c->fair[i].share_kbps;

	*cwnd_bytes = bytes_of(a->s->rate_kbps, (uint64_t)a->base_us + c->target_us);
	if (c->policy.cap_period_us)
		return a->table_pkts ? (uint64_t)a->table_pkts * a->in->mss_bytes : UINT32_MAX;
	if (!a->s->window_bytes || c->shadow)
		return bytes_of(share_kbps, (uint64_t)a->base_us + c->target_us);
	return follow(c, a, share_kbps, dt_us);
}

const struct law_ops law_backlog_cap = {
	.name = "backlog_cap",
	.prepare = prepare,
	.reason = reason,
	.may_begin = may_begin,
	.window = window,
	.holds_while_binding = true,
	.uplink = true,
	.set_divisor = SET_DIVISOR,
};
