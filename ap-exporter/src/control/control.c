#include "control/control.h"

#include "control/fair.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	MOST = 4096,
	UNIT = 1000, /* of permille */
	AIR_FRACTION = 16, /* small shares of the air are kept in 16ths of that */
	QUEUE_TAU_US = 400000, /* of what says how long the queue is: several times that in which Wi-Fi serves everybody once */
	RATE_TAU_US = 1000000, /* of rates that are shared out */
	FILL_TAU_US = 2000000,
	FILL_ENOUGH_PERMILLE = 950, FILL_GAIN = 25, FILL_MOST = 4 * 1000, /* a sender that leaves 13 % of its window empty gets three times the queue; at most five times */
	AIR_TAU_US = 500000, /* of shares of air and costs of stations */
	BASE_US = 20000000, /* a smallest round trip is remembered for one to two of these */
	MAX_RTT_US = 2000000,
	MAX_STEP_US = 1000000, /* a longer pause restarts what is smoothed */
	BINDS_PERMILLE = 800, /* a window binds if so much of it is under way */
	EXCEEDS_PERMILLE = 1300, /* and has yet to take effect if so much is */
	STARVED_DIVISOR = 8, STARVED_PERMILLE = 500, /* a queue below an eighth of a turn is as wrong as one of half the target */
	IDLE_DIVISOR = 4, /* a backlog below this part of the target is none */
	DOUBTFUL = 3, /* times as much throughput must be lost where it is doubtful that clamps are why */
	IDLE_PERMILLE = 500, /* the guard's: the queue was empty for so much of the time */
	MOST_COST = 64, /* times that of the mean byte, or a 64th of it: what fair.h takes */
	MIN_SHARE_PERMILLE = 100, /* of the air: below, the airtime figure says little */
	RENEW = 3, /* a clamp is renewed three times in its time to live */
	MAX_WINDOW = 1 << 30, /* the largest that TCP can announce (RFC 7323) */
	SET_DIVISOR = 16, TELL_DIVISOR = 8, /* a window that moved by a 16th is set, by an eighth told */
	MAX_BACKOFF_SHIFT = 6,
};

/* The smallest of the last BASE_US to 2·BASE_US. 0: none yet. */
struct smallest {
	uint32_t now, before;
	uint64_t since_us;
};

struct flow_state {
	uint64_t id; /* 0: the place is free */
	uint64_t step; /* number of the step that last saw it */
	uint64_t delivered_bytes, first_us;
	uint32_t rate_kbps, recent_kbps, unacked_bytes; /* smoothed: over RATE_TAU_US; the others over QUEUE_TAU_US */
	uint32_t queue_us;
	uint32_t fill_permille; /* of its window that is under way, smoothed over FILL_TAU_US */
	uint32_t window_bytes, told_bytes; /* set, and last told; 0: not clamped */
	uint64_t exact_bytes; /* what the law says, of which window_bytes is the last that was set */
	uint64_t set_us, mac;
	uint16_t place;
};

struct station_state {
	uint64_t mac; /* 0: free */
	uint64_t step, airtime_us;
	uint32_t airtime; /* share of the air, smoothed, in permille times AIR_FRACTION */
	uint32_t rate_kbps, recent_kbps; /* sums of its flows' */
	uint32_t backlog_bytes; /* of its own queues, smoothed over QUEUE_TAU_US */
	bool own_queues;
};

/* A flow of this step. */
struct active {
	const struct control_flow *in;
	struct flow_state *s;
	uint32_t base_us, flight_bytes; /* round trip without a wait; what is under way */
	bool eligible, binds, exceeds; /* exceeds: what is under way is more than the window; the clamp has yet to take effect */
	bool starves; /* its queue is all but empty because of the window: the station could be sent more */
};

struct control {
	struct oal_policy policy;
	unsigned max_flows, max_stations;
	uint64_t t_us, step;
	struct smallest base_down; /* of all flows: one that begins in a queue never saw the smallest round trip on the air */
	/* Capacity: of the last step that had a queue. In cost units, and plain. */
	uint64_t capacity_us;
	uint32_t capacity_cost_kbps, capacity_kbps, rate_kbps, queue_us, turn_us, target_us, share_permille;
	/* Acting. */
	bool acting;
	uint64_t acting_since_us, reason_us;
	uint8_t reason;
	/* Guard. */
	uint32_t reference_kbps, clamped_kbps, reference_air_permille, clamped_air_permille; /* before, and since; with the air that was used */
	uint32_t idle_permille, backlog_us;
	uint64_t guarded_until_us, quiet_since_us, trial_until_us; /* trial: is it better without clamps? 0: none runs */
	unsigned backoff_shift;
	struct control_stats stats;
	struct flow_state *flows;
	struct station_state *stations;
	struct active *active;
	struct fair_flow *fair;
	struct control_action *actions;
	unsigned n_actions;
};

/* --- set-up */

int control_new(struct control **out, unsigned max_flows, unsigned max_stations)
{
	const unsigned max_active = max_flows < FAIR_MAX ? max_flows : FAIR_MAX;
	struct control *c;

	if (!max_flows || max_flows > MOST || !max_stations || max_stations > MOST)
		return -EINVAL;
	c = calloc(1, sizeof *c);
	if (!c)
		return -ENOMEM;
	c->max_flows = max_flows;
	c->max_stations = max_stations;
	c->flows = calloc(max_flows, sizeof *c->flows);
	c->stations = calloc(max_stations, sizeof *c->stations);
	c->active = calloc(max_active, sizeof *c->active);
	c->fair = calloc(max_active, sizeof *c->fair);
	c->actions = calloc(max_flows, sizeof *c->actions);
	if (!c->flows || !c->stations || !c->active || !c->fair || !c->actions) {
		control_free(c);
		return -ENOMEM;
	}
	oal_policy_defaults(&c->policy);
	*out = c;
	return 0;
}

void control_free(struct control *c)
{
	if (!c)
		return;
	free(c->flows);
	free(c->stations);
	free(c->active);
	free(c->fair);
	free(c->actions);
	free(c);
}

void control_policy(struct control *c, const struct oal_policy *p)
{
	c->policy = *p;
}

/* --- arithmetic */

static uint32_t at_most(uint64_t value, uint32_t most)
{
	return value > most ? most : (uint32_t)value;
}

/* Bytes that `kbps` moves in `us`. */
static uint32_t bytes_of(uint64_t kbps, uint64_t us)
{
	return at_most(kbps * us / 8000, UINT32_MAX);
}

/* Time that `bytes` take at `kbps`; 0 where nothing moves. */
static uint32_t time_of(uint64_t bytes, uint32_t kbps)
{
	return at_most(kbps ? bytes * 8000 / kbps : 0, MAX_RTT_US);
}

/* Exponentially weighted mean with time constant tau, for a value that held for dt. */
static uint32_t smooth(uint32_t mean, uint64_t value, uint64_t dt_us, uint64_t tau_us)
{
	const uint64_t weight = dt_us >= tau_us ? UNIT : dt_us * UNIT / tau_us;

	return at_most(((uint64_t)mean * (UNIT - weight) + value * weight + UNIT / 2) / UNIT, UINT32_MAX);
}

static uint32_t smallest_of(const struct smallest *s)
{
	return !s->before || (s->now && s->now < s->before) ? s->now : s->before;
}

static void smallest_add(struct smallest *s, uint32_t value, uint64_t t_us)
{
	if (!value)
		return;
	if (t_us - s->since_us >= BASE_US) {
		s->before = s->now;
		s->now = 0;
		s->since_us = t_us;
	}
	if (!s->now || value < s->now)
		s->now = value;
}

/* --- 1. what is known */

static void see_stations(struct control *c, const struct control_input *in, uint64_t dt_us)
{
	uint32_t share = 0;
	unsigned i;

	for (i = 0; i < in->n_stations; i++) {
		const struct control_station *s = &in->stations[i];
		struct station_state *k = &c->stations[s->place];

		if (k->mac != s->mac) {
			*k = (struct station_state){ .mac = s->mac, .airtime_us = s->airtime_us };
		} else if (dt_us) {
			/* A counter that went back is that of a station that came back. */
			if (s->airtime_us >= k->airtime_us)
				k->airtime = smooth(k->airtime, (s->airtime_us - k->airtime_us) * UNIT * AIR_FRACTION / dt_us, dt_us, AIR_TAU_US);
			k->airtime_us = s->airtime_us;
		}
		k->step = c->step;
		k->backlog_bytes = smooth(k->backlog_bytes, s->backlog_bytes, dt_us, QUEUE_TAU_US);
		k->own_queues = s->own_queues;
		k->rate_kbps = k->recent_kbps = 0;
		share += k->airtime;
	}
	c->share_permille = share / AIR_FRACTION;
}

static struct flow_state *see_flow(struct control *c, const struct control_flow *f, uint64_t mac, uint64_t t_us, uint64_t dt_us)
{
	struct flow_state *s = &c->flows[f->place];

	if (s->id != f->id || f->delivered_bytes < s->delivered_bytes) {
		*s = (struct flow_state){ .id = f->id, .place = f->place, .first_us = t_us };
	} else if (dt_us) {
		const uint64_t age_us = t_us - s->first_us, kbps = (f->delivered_bytes - s->delivered_bytes) * 8000 / dt_us;
		const uint32_t queue_tau_us = at_most(age_us, QUEUE_TAU_US);

		s->rate_kbps = smooth(s->rate_kbps, kbps, dt_us, at_most(age_us, RATE_TAU_US));
		s->recent_kbps = smooth(s->recent_kbps, kbps, dt_us, queue_tau_us);
		s->unacked_bytes = smooth(s->unacked_bytes, f->unacked_bytes, dt_us, queue_tau_us);
	}
	s->delivered_bytes = f->delivered_bytes;
	s->step = c->step;
	s->mac = mac;
	return s;
}

static struct station_state *station_of(struct control *c, const struct control_input *in, uint16_t index)
{
	return index < in->n_stations ? &c->stations[in->stations[index].place] : NULL;
}

static unsigned see_flows(struct control *c, const struct control_input *in, uint64_t dt_us)
{
	unsigned n = 0, i;

	c->rate_kbps = 0;
	for (i = 0; i < in->n_flows && n < FAIR_MAX; i++) {
		struct station_state *k = station_of(c, in, in->flows[i].station);
		struct active *a = &c->active[n];

		a->in = &in->flows[i];
		a->s = see_flow(c, a->in, k ? k->mac : 0, in->t_us, dt_us);
		if (k) {
			k->rate_kbps += a->s->rate_kbps;
			k->recent_kbps += a->s->recent_kbps;
		}
		smallest_add(&c->base_down, a->in->rtt_down_us, in->t_us);
		c->rate_kbps += a->s->rate_kbps;
		if (a->s->rate_kbps || a->s->window_bytes)
			n++;
	}
	return n;
}

/* Time that what stands in a station's own queues takes. */
static uint32_t own_queue_us(const struct station_state *k)
{
	return k ? time_of(k->backlog_bytes, k->recent_kbps) : 0;
}

/* Time that a flow's data waits at the AP and on the air beyond the least that it ever took. A backlog that the kernel shows is the least of it: a
 * driver may hide more, and round trips tell. */
static uint32_t queue_of(const struct control *c, const struct control_input *in, const struct flow_state *s, const struct station_state *k)
{
	const uint32_t rtt_us = time_of(s->unacked_bytes, s->recent_kbps), base_us = smallest_of(&c->base_down);
	const uint32_t own_us = own_queue_us(k), shared_us = time_of(in->backlog_bytes, c->rate_kbps), seen_us = own_us > shared_us ? own_us : shared_us;
	const uint32_t by_rtt_us = rtt_us > base_us ? rtt_us - base_us : 0;

	return seen_us > by_rtt_us ? seen_us : by_rtt_us;
}

/* Is so much of its window under way? */
static bool fills(const struct active *a, uint32_t permille)
{
	return a->s->window_bytes && (uint64_t)a->flight_bytes * UNIT >= (uint64_t)a->s->window_bytes * permille;
}

static void see_queues(struct control *c, const struct control_input *in, unsigned n, uint64_t dt_us)
{
	uint64_t weighted = 0, weight = 0, backlog = in->backlog_bytes;
	unsigned i;

	for (i = 0; i < n; i++) {
		struct active *a = &c->active[i];
		const struct station_state *k = station_of(c, in, a->in->station);

		a->base_us = smallest_of(&c->base_down) + a->in->rtt_up_us;
		a->eligible = a->in->can_clamp && a->base_us && a->s->rate_kbps >= c->policy.min_flow_kbps &&
			      a->in->delivered_bytes >= c->policy.min_flow_bytes;
		a->flight_bytes = a->s->unacked_bytes + bytes_of(a->s->recent_kbps, a->in->rtt_up_us);
		a->binds = fills(a, BINDS_PERMILLE);
		a->exceeds = fills(a, EXCEEDS_PERMILLE);
		a->starves = a->binds && a->s->rate_kbps && k && k->own_queues && own_queue_us(k) < c->turn_us / STARVED_DIVISOR;
		a->s->queue_us = a->s->rate_kbps ? queue_of(c, in, a->s, k) : 0;
		weighted += (uint64_t)a->s->queue_us * a->s->rate_kbps;
		weight += a->s->rate_kbps;
	}
	c->queue_us = weight ? (uint32_t)(weighted / weight) : 0;
	for (i = 0; i < in->n_stations; i++)
		backlog += in->stations[i].backlog_bytes;
	c->backlog_us = smooth(c->backlog_us, time_of(backlog, c->rate_kbps), dt_us, QUEUE_TAU_US);
}

/* The wait that windows leave: enough for each station to have data when its turn comes. A turn is the time in which every active station is served
 * once, in the share of the air that the AP gets; where the driver does not say how much that is, all of it. */
static void set_target(struct control *c, const struct control_input *in)
{
	const uint32_t share = !c->share_permille ? UNIT : c->share_permille < MIN_SHARE_PERMILLE ? MIN_SHARE_PERMILLE : at_most(c->share_permille, UNIT);
	uint64_t stations = 0, us;
	unsigned i;

	for (i = 0; i < in->n_stations; i++)
		stations += c->stations[in->stations[i].place].rate_kbps >= c->policy.min_flow_kbps;
	c->turn_us = at_most(stations * c->policy.txop_us * UNIT / share, MAX_RTT_US);
	us = (uint64_t)c->turn_us * c->policy.target_txop_permille / UNIT;
	c->target_us = us > c->policy.target_us ? at_most(us, MAX_RTT_US) : c->policy.target_us;
}

/* --- 2., 3. capacity and shares */

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
	cost = (uint64_t)k->airtime * c->rate_kbps * FAIR_UNIT_COST / ((uint64_t)c->share_permille * AIR_FRACTION * k->rate_kbps);
	return cost < FAIR_UNIT_COST / MOST_COST ? FAIR_UNIT_COST / MOST_COST : at_most(cost, FAIR_UNIT_COST * MOST_COST);
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
		/* It uses less than it may although nothing of ours binds: it has no more to send, or is limited elsewhere. */
		if (!a->eligible || (a->s->window_bytes ? !a->binds : a->s->queue_us < c->target_us / IDLE_DIVISOR))
			f->cap_kbps = a->s->rate_kbps + a->s->rate_kbps / 4 + 64;
		used += (uint64_t)a->s->rate_kbps * f->cost / FAIR_UNIT_COST;
	}
	used = at_most(used, UINT32_MAX);
	if (c->queue_us >= c->target_us / 2 || used > c->capacity_cost_kbps || in->t_us - c->capacity_us > c->policy.capacity_age_us) {
		c->capacity_cost_kbps = (uint32_t)used;
		c->capacity_kbps = c->rate_kbps;
		c->capacity_us = in->t_us;
	}
	fair_shares(c->fair, n, c->policy.alpha, at_most(c->capacity_cost_kbps, FAIR_MOST_KBPS));
}

/* --- 4. act? */

static uint8_t reason_to_act(const struct control *c, const struct control_input *in)
{
	const bool fresh = in->predicted_us && in->t_us - in->predicted_us <= c->policy.prediction_age_us;

	if (fresh && in->class != CONTROL_NO_CLASS && in->class >= c->policy.act_class)
		return OAL_REWRITE_REASON_CLASS;
	if (fresh && in->congested_permille >= c->policy.act_permille)
		return OAL_REWRITE_REASON_PROBABILITY;
	if (c->policy.act_queue_us && c->queue_us >= c->policy.act_queue_us)
		return OAL_REWRITE_REASON_QUEUE;
	return OAL_REWRITE_REASON_NONE;
}

static bool any_binds(const struct control *c, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++)
		if (c->active[i].binds)
			return true;
	return false;
}

/* Hysteresis: a clamp that binds is why there is no queue, so it is no longer asked for a reason. */
static void decide(struct control *c, const struct control_input *in, unsigned n)
{
	const uint8_t reason = reason_to_act(c, in);

	if (in->t_us < c->guarded_until_us) {
		c->acting = false;
		return;
	}
	if (reason) {
		c->reason_us = in->t_us;
		if (!c->acting)
			c->acting_since_us = in->t_us;
		c->acting = true;
		c->reason = reason;
	} else if (c->acting) {
		c->reason = OAL_REWRITE_REASON_HOLD;
		if (any_binds(c, n))
			c->reason_us = in->t_us;
		else if (in->t_us - c->reason_us >= c->policy.hold_us)
			c->acting = false;
	}
}

/* --- 5. windows */

static struct control_action *act(struct control *c, const struct flow_state *s, uint8_t reason, uint32_t window_bytes)
{
	struct control_action *a = &c->actions[c->n_actions++];

	*a = (struct control_action){ .id = s->id, .mac = s->mac, .place = s->place, .reason = reason, .window_bytes = window_bytes,
				      .capacity_kbps = c->capacity_kbps, .rate_kbps = s->rate_kbps, .queue_us = s->queue_us };
	return a;
}

static void release(struct control *c, struct flow_state *s, uint8_t reason)
{
	if (!s->window_bytes)
		return;
	act(c, s, reason, 0)->tell = true;
	s->window_bytes = s->told_bytes = 0;
}

static bool moved(uint32_t from, uint32_t to, uint32_t divisor)
{
	return (from > to ? from - to : to - from) > from / divisor;
}

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

/* The queue that is wanted for this flow. Senders that pace themselves and drain the queue of their own accord, as BBR does in turns, leave part
 * of a window unused, and with it some of the air; they are no reason for a queue, so their window may be larger. */
static uint32_t target_of(const struct control *c, const struct active *a)
{
	const uint32_t fill = a->s->fill_permille, more = fill < FILL_ENOUGH_PERMILLE ? (FILL_ENOUGH_PERMILLE - fill) * FILL_GAIN : 0;

	return (uint32_t)((uint64_t)c->target_us * (UNIT + at_most(more, FILL_MOST)) / UNIT);
}

/* A window in force follows the queue, and drifts towards the flow's share. */
static uint64_t next_window(const struct control *c, const struct active *a, uint32_t share_kbps, uint64_t dt_us)
{
	const int64_t rtt_us = (int64_t)a->base_us + a->s->queue_us, dt = (int64_t)dt_us < rtt_us ? (int64_t)dt_us : rtt_us;
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
	return (uint64_t)((int64_t)a->s->exact_bytes + (int64_t)a->s->exact_bytes * c->policy.probe_permille / UNIT * error / UNIT * dt / rtt_us);
}

static void clamp(struct control *c, const struct active *a, uint32_t share_kbps, uint64_t t_us, uint64_t dt_us)
{
	struct flow_state *s = a->s;
	const uint32_t floor = c->policy.floor_mss * a->in->mss_bytes;
	const uint32_t cwnd = wanted_cwnd(c, a);
	struct control_action *out;
	uint32_t window;

	if (s->window_bytes) {
		s->fill_permille = smooth(s->fill_permille, (uint64_t)a->flight_bytes * UNIT / s->window_bytes, dt_us, FILL_TAU_US);
		s->exact_bytes = next_window(c, a, share_kbps, dt_us);
	} else {
		s->fill_permille = UNIT;
		s->exact_bytes = s->rate_kbps ? (uint64_t)cwnd * share_kbps / s->rate_kbps : 0;
	}
	if (s->exact_bytes < floor)
		s->exact_bytes = floor;
	s->exact_bytes = window = at_most(s->exact_bytes, MAX_WINDOW);
	if (s->window_bytes && !moved(s->window_bytes, window, SET_DIVISOR)) {
		if (t_us - s->set_us < c->policy.ttl_us / RENEW)
			return;
		window = s->window_bytes; /* a renewal */
	}
	out = act(c, s, c->reason, window);
	out->share_kbps = share_kbps;
	out->cwnd_bytes = cwnd;
	out->tell = !s->told_bytes || moved(s->told_bytes, window, TELL_DIVISOR);
	if (out->tell)
		s->told_bytes = window;
	s->window_bytes = window;
	s->set_us = t_us;
}

static void set_windows(struct control *c, const struct control_input *in, unsigned n, uint64_t dt_us)
{
	unsigned i, clamps = 0;

	for (i = 0; i < n; i++) {
		const struct active *a = &c->active[i];

		if (c->acting && clamps < c->policy.max_flows && (a->eligible || (a->s->window_bytes && a->in->can_clamp))) {
			clamp(c, a, c->fair[i].share_kbps, in->t_us, dt_us);
			clamps++;
		} else {
			release(c, a->s, in->t_us < c->guarded_until_us ? OAL_REWRITE_REASON_GUARD : OAL_REWRITE_REASON_RELEASED);
		}
	}
	c->stats.clamps = clamps;
}

/* Flows that are gone leave nothing behind. */
static void forget(struct control *c)
{
	unsigned i;

	for (i = 0; i < c->max_flows; i++)
		if (c->flows[i].id && c->flows[i].step != c->step) {
			release(c, &c->flows[i], OAL_REWRITE_REASON_RELEASED);
			c->flows[i].id = 0;
		}
	for (i = 0; i < c->max_stations; i++)
		if (c->stations[i].mac && c->stations[i].step != c->step)
			c->stations[i].mac = 0;
}

/* --- 6. guard */

static void take_back(struct control *c, uint64_t t_us)
{
	c->guarded_until_us = t_us + ((uint64_t)c->policy.guard_backoff_us << c->backoff_shift);
	c->quiet_since_us = c->guarded_until_us;
	c->trial_until_us = t_us + c->policy.guard_window_us / 2;
	if (c->backoff_shift < MAX_BACKOFF_SHIFT)
		c->backoff_shift++;
	c->acting = false;
	c->stats.guard_reverts++;
}

/* Plain TCP for half a guard window: unless throughput rose, the clamps were not what kept it low, and may come back. */
static void judge_trial(struct control *c)
{
	c->trial_until_us = 0;
	if ((uint64_t)c->reference_kbps * UNIT >= (uint64_t)c->clamped_kbps * (UNIT + c->policy.guard_permille))
		return;
	c->guarded_until_us = 0;
	c->backoff_shift--;
}

static bool below(uint64_t value, uint64_t reference, uint32_t permille)
{
	return value * UNIT < reference * (UNIT - permille);
}

/* How much throughput must be gone to blame the clamps. Round trips may say that data waits although the queue runs empty, in the driver or for its turn:
 * then it takes more than the unrest of a shared channel. */
static uint32_t blame_permille(const struct control *c)
{
	return c->queue_us < c->target_us / 2 ? c->policy.guard_permille : at_most(c->policy.guard_permille * DOUBTFUL, UNIT / 2);
}

/* Clamps are to blame if throughput fell, the queue runs empty, and less of the air is used: links that became slower use as much of it. */
static void guard(struct control *c, const struct control_input *in, unsigned n, uint64_t dt_us)
{
	const uint64_t tau_us = c->policy.guard_window_us;
	const bool idle = c->backlog_us < c->target_us / IDLE_DIVISOR && any_binds(c, n);
	const uint32_t loss_permille = blame_permille(c);

	if (!c->acting) {
		c->reference_kbps = smooth(c->reference_kbps, c->rate_kbps, dt_us, tau_us / 3);
		c->reference_air_permille = c->clamped_air_permille = smooth(c->reference_air_permille, c->share_permille, dt_us, tau_us / 3);
		c->idle_permille = 0;
		if (c->trial_until_us && in->t_us >= c->trial_until_us)
			judge_trial(c);
		if (!c->trial_until_us)
			c->clamped_kbps = c->reference_kbps;
		return;
	}
	c->clamped_kbps = smooth(c->clamped_kbps, c->rate_kbps, dt_us, tau_us / 3);
	c->idle_permille = smooth(c->idle_permille, idle ? UNIT : 0, dt_us, tau_us);
	c->clamped_air_permille = smooth(c->clamped_air_permille, c->share_permille, dt_us, tau_us / 3);
	if (c->clamped_kbps > c->reference_kbps)
		c->reference_kbps = c->clamped_kbps;
	if (c->clamped_air_permille > c->reference_air_permille)
		c->reference_air_permille = c->clamped_air_permille;
	if (c->backoff_shift && in->t_us - c->quiet_since_us > (uint64_t)c->policy.guard_backoff_us << c->backoff_shift) {
		c->backoff_shift--;
		c->quiet_since_us = in->t_us;
	}
	if (!in->shadow && in->t_us - c->acting_since_us >= tau_us && c->idle_permille >= IDLE_PERMILLE &&
	    below(c->clamped_kbps, c->reference_kbps, loss_permille) &&
	    (!c->reference_air_permille || below(c->clamped_air_permille, c->reference_air_permille, loss_permille / 2)))
		take_back(c, in->t_us);
}

/* --- a step */

unsigned control_step(struct control *c, const struct control_input *in, const struct control_action **actions)
{
	const bool restart = in->t_us < c->t_us || in->t_us - c->t_us > MAX_STEP_US;
	const uint64_t dt_us = restart ? 0 : in->t_us - c->t_us;
	unsigned n;

	if (in->t_us < c->t_us) { /* the clock was stepped: no remembered time compares */
		c->guarded_until_us = c->trial_until_us = c->capacity_us = c->reason_us = c->acting_since_us = 0;
		memset(c->stations, 0, c->max_stations * sizeof *c->stations);
		c->base_down = (struct smallest){ 0 };
	}
	c->t_us = in->t_us;
	c->step++;
	c->stats.steps++;
	c->n_actions = 0;
	see_stations(c, in, dt_us);
	n = see_flows(c, in, dt_us);
	set_target(c, in);
	see_queues(c, in, n, dt_us);
	if (!restart) {
		share_out(c, in, n);
		decide(c, in, n);
		guard(c, in, n, dt_us);
		set_windows(c, in, n, dt_us);
	}
	forget(c);
	c->stats.capacity_kbps = c->capacity_kbps;
	c->stats.queue_us = c->queue_us;
	c->stats.target_us = c->target_us;
	c->stats.guarded_until_us = in->t_us < c->guarded_until_us ? c->guarded_until_us : 0;
	*actions = c->actions;
	return c->n_actions;
}

unsigned control_release_all(struct control *c, enum oal_rewrite_reason reason, const struct control_action **actions)
{
	unsigned i;

	c->n_actions = 0;
	for (i = 0; i < c->max_flows; i++)
		if (c->flows[i].id)
			release(c, &c->flows[i], reason);
	c->acting = false;
	c->stats.clamps = 0;
	*actions = c->actions;
	return c->n_actions;
}

void control_stats(const struct control *c, struct control_stats *out)
{
	*out = c->stats;
}
