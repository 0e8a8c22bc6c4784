#include "control/guard.h"

#include "control/control_math.h"

enum {
	DOUBTFUL = 3, /* times as much throughput must be gone where it is doubtful that clamps are why */
	IDLE_PERMILLE = 500, /* the queue was empty for so much of the time */
	MAX_BACKOFF_SHIFT = 6, /* clamps rest at most 2^6 times guard_backoff_us */
};

static void revert(struct guard *g, const struct oal_policy *p, uint64_t t_us)
{
	g->until_us = t_us + ((uint64_t)p->guard_backoff_us << g->backoff_shift);
	g->quiet_since_us = g->until_us;
	g->trial_until_us = t_us + p->guard_window_us / 2;
	if (g->backoff_shift < MAX_BACKOFF_SHIFT)
		g->backoff_shift++;
	g->reverts++;
}

/* Plain TCP for half of guard_window_us: unless throughput rose, the clamps did not keep it low, and may come back. */
static void judge_trial(struct guard *g, const struct oal_policy *p)
{
	g->trial_until_us = 0;
	if ((uint64_t)g->reference_kbps * UNIT >= (uint64_t)g->clamped_kbps * (UNIT + p->guard_permille))
		return;
	g->until_us = 0;
	g->backoff_shift--;
}

static bool below(uint64_t value, uint64_t reference, uint32_t permille)
{
	return value * UNIT < reference * (UNIT - permille);
}

/* How much throughput must be gone to blame the clamps. Round trips may say that data waits although the queue runs
 * empty, in the driver or for its turn: then it takes more than the unrest of a shared channel. */
static uint32_t blame_permille(const struct oal_policy *p, bool doubtful)
{
	return doubtful ? at_most(p->guard_permille * DOUBTFUL, UNIT / 2) : p->guard_permille;
}

/* Without clamps: what throughput is like, and whether a trial is over. */
static void observe(struct guard *g, const struct oal_policy *p, const struct guard_input *in)
{
	const uint64_t tau_us = p->guard_window_us / 3;

	g->reference_kbps = smooth(g->reference_kbps, in->rate_kbps, in->dt_us, tau_us);
	g->reference_air_permille = smooth(g->reference_air_permille, in->air_permille, in->dt_us, tau_us);
	g->clamped_air_permille = g->reference_air_permille;
	g->idle_permille = 0;
	if (g->trial_until_us && in->t_us >= g->trial_until_us)
		judge_trial(g, p);
	if (!g->trial_until_us)
		g->clamped_kbps = g->reference_kbps;
}

/* Clamps are to blame if throughput fell, the queue runs empty, and less of the air is used: links that became slower
 * use as much of it. */
bool guard_step(struct guard *g, const struct oal_policy *p, const struct guard_input *in)
{
	const uint64_t window_us = p->guard_window_us, tau_us = window_us / 3;
	const uint32_t loss_permille = blame_permille(p, in->doubtful);

	if (!in->acting) {
		observe(g, p, in);
		return false;
	}
	g->clamped_kbps = smooth(g->clamped_kbps, in->rate_kbps, in->dt_us, tau_us);
	g->idle_permille = smooth(g->idle_permille, in->idle ? UNIT : 0, in->dt_us, window_us);
	g->clamped_air_permille = smooth(g->clamped_air_permille, in->air_permille, in->dt_us, tau_us);
	if (g->clamped_kbps > g->reference_kbps)
		g->reference_kbps = g->clamped_kbps;
	if (g->clamped_air_permille > g->reference_air_permille)
		g->reference_air_permille = g->clamped_air_permille;
	if (g->backoff_shift && in->t_us - g->quiet_since_us > (uint64_t)p->guard_backoff_us << g->backoff_shift) {
		g->backoff_shift--;
		g->quiet_since_us = in->t_us;
	}
	if (in->shadow || in->t_us - in->acting_since_us < window_us || g->idle_permille < IDLE_PERMILLE ||
	    !below(g->clamped_kbps, g->reference_kbps, loss_permille))
		return false;
	if (g->reference_air_permille && !below(g->clamped_air_permille, g->reference_air_permille, loss_permille / 2))
		return false;
	revert(g, p, in->t_us);
	return true;
}

void guard_restart(struct guard *g)
{
	g->until_us = g->trial_until_us = 0;
}
