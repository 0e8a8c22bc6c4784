#include "control/control.h"

#include "control/control_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	MOST = 4096, /* flows, or stations: more would not fit a step into its time */
	MAX_STEP_US = 1000000, /* a longer pause restarts what is smoothed */
};

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
		if (control_any_binds(c, n))
			c->reason_us = in->t_us;
		else if (in->t_us - c->reason_us >= c->policy.hold_us)
			c->acting = false;
	}
}

/* --- a step */

/* Flows that are gone leave nothing behind. */
static void forget(struct control *c)
{
	const struct flow_state *end = c->flows + c->max_flows;
	struct flow_state *s;
	unsigned i;

	for (s = c->flows; s < end; s++)
		if (s->id && s->step != c->step) {
			control_release(c, s, OAL_REWRITE_REASON_RELEASED);
			s->id = 0;
		}
	for (i = 0; i < c->max_stations; i++)
		if (c->stations[i].mac && c->stations[i].step != c->step)
			c->stations[i].mac = 0;
}

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
	n = control_measure(c, in, dt_us);
	if (!restart) {
		control_share(c, in, n);
		decide(c, in, n);
		control_guard(c, in, n, dt_us);
		control_windows(c, in, n, dt_us);
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
			control_release(c, &c->flows[i], reason);
	c->acting = false;
	c->stats.clamps = 0;
	*actions = c->actions;
	return c->n_actions;
}

void control_stats(const struct control *c, struct control_stats *out)
{
	*out = c->stats;
}
