/* Part 5 of the control law: the window of each clamped flow. */
#include "control/control_math.h"
#include "control/control_state.h"

enum {
	/* A sender that leaves part of its window unused may have a longer queue: up to 5 % unused no longer, then
	 * 2.5 % of the wanted wait for each permille; 13 % unused makes it three times as long; at most five times. */
	FILL_ENOUGH_PERMILLE = 950, /* of the window: so full counts as all of it */
	FILL_GAIN = 25, /* permille of wait for each permille below that */
	FILL_MOST_PERMILLE = 4000, /* of wait on top: five times in all, however long it pauses */
	FILL_TAU_US = 2000000, /* over which the fill is smoothed: BBR drains its queue every ten round trips or so */
	STARVED_PERMILLE = 500, /* a starving station is as wrong as half the wait that is wanted */
	RENEW = 3, /* a clamp is set so often within its time to live: two sets in a row may be lost */
	MAX_WINDOW_BYTES = 1 << 30, /* the largest that TCP can announce (RFC 7323) */
	SET_DIVISOR = 16, /* a window that moved by this part is set: less would only cost sets */
	REPORT_DIVISOR = 8, /* one that moved by this part is worth a row */
};

static struct control_action *act(struct control *c, const struct flow_state *s, uint8_t reason, uint32_t window_bytes)
{
	struct control_action *a = &c->actions[c->n_actions++];

	*a = (struct control_action){
		.id = s->id,
		.mac = s->mac,
		.place = s->place,
		.reason = reason,
		.window_bytes = window_bytes,
		.capacity_kbps = c->capacity_kbps,
		.rate_kbps = s->rate_kbps,
		.queue_us = s->queue_us,
	};
	return a;
}

void control_release(struct control *c, struct flow_state *s, uint8_t reason)
{
	if (!s->window_bytes)
		return;
	act(c, s, reason, 0)->report = true;
	s->window_bytes = s->reported_bytes = 0;
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

static void clamp(struct control *c, const struct active *a, uint32_t share_kbps, uint64_t t_us, uint64_t dt_us)
{
	struct flow_state *s = a->s;
	const uint32_t floor = c->policy.floor_mss * a->in->mss_bytes;
	const uint32_t cwnd = wanted_cwnd(c, a);
	struct control_action *out;
	uint32_t window;

	if (s->window_bytes) {
		s->fill_permille = smooth(s->fill_permille, (uint64_t)a->flight_bytes * UNIT / s->window_bytes, dt_us,
					  FILL_TAU_US);
		s->exact_bytes = next_window(c, a, share_kbps, dt_us);
	} else {
		s->fill_permille = UNIT;
		s->exact_bytes = s->rate_kbps ? (uint64_t)cwnd * share_kbps / s->rate_kbps : 0;
	}
	if (s->exact_bytes < floor)
		s->exact_bytes = floor;
	s->exact_bytes = window = at_most(s->exact_bytes, MAX_WINDOW_BYTES);
	if (s->window_bytes && !moved(s->window_bytes, window, SET_DIVISOR)) {
		if (t_us - s->set_us < c->policy.ttl_us / RENEW)
			return;
		window = s->window_bytes; /* a renewal */
	}
	out = act(c, s, c->reason, window);
	out->share_kbps = share_kbps;
	out->cwnd_bytes = cwnd;
	out->report = !s->reported_bytes || moved(s->reported_bytes, window, REPORT_DIVISOR);
	if (out->report)
		s->reported_bytes = window;
	s->window_bytes = window;
	s->set_us = t_us;
}

void control_windows(struct control *c, const struct control_input *in, unsigned n, uint64_t dt_us)
{
	const uint8_t without = in->t_us < c->guarded_until_us ? OAL_REWRITE_REASON_GUARD : OAL_REWRITE_REASON_RELEASED;
	unsigned i, clamps = 0;

	for (i = 0; i < n; i++) {
		const struct active *a = &c->active[i];

		if (c->acting && clamps < c->policy.max_flows &&
		    (a->eligible || (a->s->window_bytes && a->in->can_clamp))) {
			clamp(c, a, c->fair[i].share_kbps, in->t_us, dt_us);
			clamps++;
		} else {
			control_release(c, a->s, without);
		}
	}
	c->stats.clamps = clamps;
}
