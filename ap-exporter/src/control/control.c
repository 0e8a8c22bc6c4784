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
	/* Of a station there may be two in a step: the one that had its place is released. */
	c->actions = calloc(max_flows + 2 * max_stations, sizeof *c->actions);
	if (!c->flows || !c->stations || !c->active || !c->fair || !c->actions) {
		control_free(c);
		return -ENOMEM;
	}
	oal_policy_defaults(&c->policy);
	c->law = &law_fair_window;
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

void control_law(struct control *c, const struct law_ops *law, const int64_t *values, unsigned n_values)
{
	unsigned i;

	c->law = law;
	for (i = 0; i < LAW_VALUES; i++)
		c->values[i] = i < n_values && values[i] > 0 ? at_most((uint64_t)values[i], UINT32_MAX) : 0;
	for (i = 0; i < c->max_flows && i < FAIR_MAX; i++)
		c->fair[i].share_kbps = 0;
}

/* --- 3. act?, 4. the guard */

/* Marks are decided for each station by itself: somebody was marked within hold_us. */
static void note_marks(struct control *c, uint64_t t_us)
{
	const bool any = control_any_marked(c);

	if (any && !c->acting)
		c->acting_since_us = t_us;
	c->acting = any;
}

/* Hysteresis: hold_us after the last reason. A clamp that binds may be why there is no reason any more: a law that
 * follows the queue goes on for that. */
static void decide(struct control *c, const struct control_input *in, unsigned n)
{
	const uint8_t reason = c->law->reason(c, in);

	if (guard_holds(&c->guard, in->t_us)) {
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
		if (c->law->holds_while_binding && control_any_binds(c, n))
			c->reason_us = in->t_us;
		else if (in->t_us - c->reason_us >= c->policy.hold_us)
			c->acting = false;
	}
}

static void guard(struct control *c, const struct control_input *in, unsigned n, uint64_t dt_us)
{
	const struct guard_input g = {
		.t_us = in->t_us,
		.dt_us = dt_us,
		.acting_since_us = c->acting_since_us,
		.rate_kbps = c->rate_kbps,
		.air_permille = c->share_permille,
		.acting = c->acting,
		.shadow = in->shadow,
		.idle = c->backlog_us < c->target_us / IDLE_DIVISOR && (c->law->marks || control_any_binds(c, n)),
		.doubtful = c->queue_us >= c->target_us / 2,
	};

	if (guard_step(&c->guard, &c->policy, &g))
		c->acting = false;
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
		if (c->stations[i].mac && c->stations[i].step != c->step) {
			control_release_station(c, &c->stations[i], OAL_REWRITE_REASON_RELEASED);
			c->stations[i].mac = 0;
		}
}

unsigned control_step(struct control *c, const struct control_input *in, const struct control_action **actions)
{
	const bool restart = in->t_us < c->t_us || in->t_us - c->t_us > MAX_STEP_US;
	const uint64_t dt_us = restart ? 0 : in->t_us - c->t_us;
	unsigned n;

	c->n_actions = 0;
	if (in->t_us < c->t_us) { /* the clock was stepped: no remembered time compares */
		control_release_stations(c, OAL_REWRITE_REASON_RELEASED);
		guard_restart(&c->guard);
		c->capacity_us = c->reason_us = c->acting_since_us = 0;
		memset(c->stations, 0, c->max_stations * sizeof *c->stations);
		c->base_down = (struct smallest){ 0 };
	}
	c->t_us = in->t_us;
	c->shadow = in->shadow;
	c->step++;
	c->stats.steps++;
	n = control_measure(c, in, dt_us);
	if (!restart) {
		if (c->law->prepare)
			c->law->prepare(c, in, n);
		if (c->law->marks)
			note_marks(c, in->t_us);
		else
			decide(c, in, n);
		guard(c, in, n, dt_us);
		if (c->law->marks)
			control_marks(c, in, n);
		else
			control_windows(c, in, n, dt_us);
	}
	forget(c);
	c->stats.capacity_kbps = c->capacity_kbps;
	c->stats.queue_us = c->queue_us;
	c->stats.target_us = c->target_us;
	c->stats.guarded_until_us = guard_holds(&c->guard, in->t_us) ? c->guard.until_us : 0;
	c->stats.guard_reverts = c->guard.reverts;
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
	control_release_stations(c, reason);
	c->acting = false;
	c->stats.clamps = 0;
	*actions = c->actions;
	return c->n_actions;
}

void control_stats(const struct control *c, struct control_stats *out)
{
	*out = c->stats;
}
