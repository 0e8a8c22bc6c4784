/* The law `backlog_cap`: windows of uploads, in the ACKs of their servers. Stations that send put more on the way than
 * the air takes: their ACKs then wait at the access point, which gets one turn where each station has one, round trips
 * grow, and ACKs are dropped. What is on its way is held at what the air needs, shared by terminals, not by flows.
 *
 * By feedback: a window begins with a flow's share of what is carried for its round trip and the wait that is wanted,
 * and follows the wait of its ACKs. These may wait for downloads, too, which no window of an upload shortens: so none
 * is made smaller than what a terminal's part of all that is carried, up and down, takes.
 *
 * Or, with policy.cap_period_us, by the table that Shimada, Oguchi and Yamaguchi published ("Performance Improvement in
 * WLAN and LTE Based on Backlog Control Middleware"): a number of segments for the ratio of round trip to the least
 * one, and no more than the terminal's part of what is delivered takes at that least one. */
#include "control/control_state.h"

enum {
	MOST_US = 5000000, /* what was delivered at most is remembered for one to two of these */
	SEGMENT_BYTES = 1500, /* of the table: with its headers */
	DATA_DIVISOR = 8, /* a station gets data if more than this part of what it sends: ACKs are 2 to 7 % of it */
	LEAST_PKTS = 4, /* a station's, where the table leaves less */
	HEADROOM_DIVISOR = 4, /* a flow that could not use its share may still grow by this part of its rate … */
	HEADROOM_KBPS = 64, /* … and by this, so that one that stands still may begin */
	SET_DIVISOR = 16, /* a window that moved by this part is set: less would only cost sets */
};

/* `keep`: nothing is forgotten now. */
static uint32_t largest_add(struct largest *l, uint64_t sum, uint64_t t_us, bool keep)
{
	const uint32_t value = at_most(sum, UINT32_MAX);

	if (t_us - l->since_us >= MOST_US && !keep) {
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

/* Stations that upload, and all that have data either way. */
struct terminals {
	unsigned up, all;
};

/* Flows of each station that are worth a cap, too. */
static struct terminals count_terminals(struct control *c, const struct control_input *in, unsigned n)
{
	struct terminals t = { 0 };
	unsigned i;

	for (i = 0; i < in->n_stations; i++)
		c->stations[in->stations[i].place].n_flows = 0;
	for (i = 0; i < n; i++) {
		struct station_state *k = station_of(c, in, c->active[i].in->station);

		if (k && c->active[i].s->rate_kbps >= c->policy.min_flow_kbps)
			t.up += !k->n_flows++;
	}
	t.up += !t.up;
	t.all = t.up;
	for (i = 0; i < in->n_stations; i++) {
		const struct station_state *k = &c->stations[in->stations[i].place];

		t.all += !k->n_flows && k->tx_kbps >= c->policy.min_flow_kbps &&
			 k->tx_kbps > k->sent_kbps / DATA_DIVISOR;
	}
	return t;
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
static uint32_t table_pkts(const struct control *c, const struct active *a, uint32_t terminal_kbps)
{
	const uint32_t rtt_us = a->in->rtt_down_us + a->in->rtt_up_us, base_us = a->base_us ? a->base_us : 1;
	const uint32_t by_ratio = of_ratio(&c->policy, rtt_us / base_us);
	/* Where nothing waits nobody knows how much more the air would carry. */
	const uint32_t more_kbps = a->s->queue_us < c->target_us ? terminal_kbps / HEADROOM_DIVISOR : 0;
	const uint32_t by_share = bytes_of((uint64_t)terminal_kbps + more_kbps, base_us) / SEGMENT_BYTES;
	const uint32_t least = by_ratio < by_share ? by_ratio : by_share;

	return least > LEAST_PKTS ? least : LEAST_PKTS;
}

/* Each station has the least that one of its flows says, for a period; one that came in between has its own at once. */
static void look_up(struct control *c, const struct control_input *in, unsigned n, uint32_t terminal_kbps)
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
		pkts = table_pkts(c, &c->active[i], terminal_kbps);
		if (!k->cap_pkts || pkts < k->cap_pkts)
			k->cap_pkts = pkts;
	}
}

/* --- a step */

static void prepare(struct control *c, const struct control_input *in, unsigned n)
{
	const struct terminals terminals = count_terminals(c, in, n);
	const uint32_t carried_kbps = largest_add(&c->carried, (uint64_t)c->rate_kbps + c->tx_kbps, in->t_us, false);
	/* What caps of the table let through says nothing of what the air would carry: they would go down and down. */
	const uint32_t delivered_kbps = largest_add(&c->delivered, c->rate_kbps, in->t_us, c->acting);
	unsigned i;

	c->target_us = wanted_us(&c->policy);
	c->capacity_kbps = (uint32_t)((uint64_t)carried_kbps * terminals.up / terminals.all);
	share_out(c, in, n);
	if (c->policy.cap_period_us)
		look_up(c, in, n, delivered_kbps / terminals.up);
	for (i = 0; i < n; i++) {
		const struct station_state *k = station_of(c, in, c->active[i].in->station);

		c->active[i].table_pkts = k ? (k->cap_pkts + flows_of(k) - 1) / flows_of(k) : 0;
		c->active[i].least_bytes = bytes_of(
			carried_kbps / terminals.all / flows_of(k),
			(uint64_t)c->active[i].base_us + (terminals.all > terminals.up ? c->active[i].s->queue_us : 0));
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
	uint64_t bytes;

	*cwnd_bytes = bytes_of(a->s->rate_kbps, (uint64_t)a->base_us + c->target_us);
	if (c->policy.cap_period_us)
		return a->table_pkts ? (uint64_t)a->table_pkts * a->in->mss_bytes : UINT32_MAX;
	if (!a->s->window_bytes || c->shadow)
		return bytes_of(share_kbps, (uint64_t)a->base_us + c->target_us);
	bytes = follow(c, a, share_kbps, dt_us);
	return bytes < a->least_bytes ? a->least_bytes : bytes;
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
