/* Part 5 of a step: windows become actions: not below the floor, renewed in time, and told in a row when they are worth
 * it. */
#include "control/control_state.h"
#include "rewrite/rwnd_clamps.h"

enum {
	MAX_WINDOW_BYTES = 1 << 30, /* the largest that TCP can announce (RFC 7323) */
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

/* In shadow: `*window` becomes what the flow's next ACK would say, in the units of its scale. False: it would say what
 * it says now, or nobody knows. */
static bool lowers(const struct control_flow *f, uint32_t *window)
{
	*window = (uint32_t)rwnd_raw(*window, (uint32_t)RWND_FLOOR_MSS * f->mss_bytes, f->scale) << f->scale;
	return *window < f->announced_bytes;
}

/* True: the flow has a clamp. */
static bool clamp(struct control *c, unsigned i, uint64_t t_us, uint64_t dt_us)
{
	const struct active *a = &c->active[i];
	struct flow_state *s = a->s;
	const uint32_t floor = c->policy.floor_mss * a->in->mss_bytes;
	struct control_action *out;
	uint32_t cwnd, window;

	s->exact_bytes = c->law->window(c, i, dt_us, &cwnd);
	if (s->exact_bytes < floor)
		s->exact_bytes = floor;
	s->exact_bytes = window = at_most(s->exact_bytes, MAX_WINDOW_BYTES);
	if (c->shadow && !lowers(a->in, &window)) {
		control_release(c, s, OAL_REWRITE_REASON_RELEASED);
		return false;
	}
	if (s->window_bytes && !moved(s->window_bytes, window, c->law->set_divisor)) {
		if (t_us - s->set_us < c->policy.ttl_us / RENEW)
			return true;
		window = s->window_bytes; /* a renewal */
	}
	out = act(c, s, c->reason, window);
	out->share_kbps = c->fair[i].share_kbps;
	out->cwnd_bytes = cwnd;
	out->report = !s->reported_bytes || moved(s->reported_bytes, window, REPORT_DIVISOR);
	if (out->report)
		s->reported_bytes = window;
	s->window_bytes = window;
	s->set_us = t_us;
	return true;
}

void control_windows(struct control *c, const struct control_input *in, unsigned n, uint64_t dt_us)
{
	const uint8_t without =
		guard_holds(&c->guard, in->t_us) ? OAL_REWRITE_REASON_GUARD : OAL_REWRITE_REASON_RELEASED;
	unsigned i, clamps = 0;

	for (i = 0; i < n; i++) {
		const struct active *a = &c->active[i];

		if (c->acting && clamps < c->policy.max_flows &&
		    (c->law->may_begin(a) || (a->s->window_bytes && a->in->can_clamp)))
			clamps += clamp(c, i, in->t_us, dt_us);
		else
			control_release(c, a->s, without);
	}
	c->stats.clamps = clamps;
}
