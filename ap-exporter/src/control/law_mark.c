/* The law `mark`: packets to a station get CE while it waits longer than is wanted. What is wanted is what windows
 * leave (set_target() in control_measure.c): enough for each station to have data when its turn comes; a mark at a
 * fixed number of milliseconds would empty aggregates where turns are long.
 *
 * Both by the wait of the last turn or two: a mark is heard only after the packet's own wait and half a round trip, and
 * what else is waited for is added to that. ECT(1): L4S senders take off a little for each mark, and expect them early:
 * above a share of what is wanted. ECT(0): a classic sender takes off much for one mark a round trip, so they begin at
 * all of what is wanted, and the data path spaces them. */
#include "control/control_state.h"
#include "mark/mark.h"

static bool predicted(const struct control *c, const struct control_input *in)
{
	return c->policy.mark_ahead && control_is_fresh(c, in) && in->class != CONTROL_NO_CLASS &&
	       in->class >= c->policy.act_class;
}

static uint8_t marks(const struct control *c, const struct control_input *in, const struct station_state *k,
		     uint8_t *reason)
{
	const struct oal_policy *p = &c->policy;
	const uint8_t step = p->mark_step_permille ? MARK_ECT1 : 0, spaced = p->mark_interval_us ? MARK_ECT0 : 0;
	uint8_t out = 0;

	*reason = OAL_REWRITE_REASON_QUEUE;
	if ((uint64_t)k->fast_us * UNIT > (uint64_t)c->target_us * p->mark_step_permille)
		out |= step;
	if (k->fast_us > c->target_us)
		out |= spaced;
	if (out || !predicted(c, in))
		return out;
	*reason = OAL_REWRITE_REASON_CLASS;
	return step | spaced;
}

const struct law_ops law_mark = {
	.name = "mark",
	.marks = marks,
};
