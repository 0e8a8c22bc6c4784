/* Part 6 of the control law: are the clamps to blame for lost throughput? Then they are taken back. */
#include "control/control_math.h"
#include "control/control_state.h"

enum {
	DOUBTFUL = 3, /* times as much throughput must be gone where it is doubtful that clamps are why */
	IDLE_PERMILLE = 500, /* the queue was empty for so much of the time */
	MAX_BACKOFF_SHIFT = 6, /* clamps rest at most 2^6 times guard_backoff_us */
};

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

/* Plain TCP for half of guard_window_us: unless throughput rose, the clamps did not keep it low, and may come back. */
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

/* How much throughput must be gone to blame the clamps. Round trips may say that data waits although the queue runs
 * empty, in the driver or for its turn: then it takes more than the unrest of a shared channel. */
static uint32_t blame_permille(const struct control *c)
{
	return c->queue_us < c->target_us / 2 ? c->policy.guard_permille
					      : at_most(c->policy.guard_permille * DOUBTFUL, UNIT / 2);
}

/* Clamps are to blame if throughput fell, the queue runs empty, and less of the air is used: links that became slower
 * use as much of it. */
void control_guard(struct control *c, const struct control_input *in, unsigned n, uint64_t dt_us)
{
	const uint64_t tau_us = c->policy.guard_window_us;
	const bool idle = c->backlog_us < c->target_us / IDLE_DIVISOR && control_any_binds(c, n);
	const uint32_t loss_permille = blame_permille(c);

	if (!c->acting) {
		c->reference_kbps = smooth(c->reference_kbps, c->rate_kbps, dt_us, tau_us / 3);
		c->reference_air_permille = c->clamped_air_permille = smooth(c->reference_air_permille,
									     c->share_permille, dt_us, tau_us / 3);
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
	if (c->backoff_shift &&
	    in->t_us - c->quiet_since_us > (uint64_t)c->policy.guard_backoff_us << c->backoff_shift) {
		c->backoff_shift--;
		c->quiet_since_us = in->t_us;
	}
	if (!in->shadow && in->t_us - c->acting_since_us >= tau_us && c->idle_permille >= IDLE_PERMILLE &&
	    below(c->clamped_kbps, c->reference_kbps, loss_permille) &&
	    (!c->reference_air_permille ||
	     below(c->clamped_air_permille, c->reference_air_permille, loss_permille / 2)))
		take_back(c, in->t_us);
}
