/* The law `direct`: one value for each predicted class. A policy with this law needs no code of its own. */
#include "control/control_state.h"

enum { ANY_CHANGE = INT32_MAX }; /* as a divisor: a value that changed at all is set at once */

/* A fresh prediction of a class that has a value. The value stays until hold_us after the last of these. */
static uint8_t reason(struct control *c, const struct control_input *in)
{
	if (!control_is_fresh(c, in) || in->class >= LAW_VALUES || !c->values[in->class])
		return OAL_REWRITE_REASON_NONE;
	c->value_bytes = c->values[in->class];
	return OAL_REWRITE_REASON_CLASS;
}

static bool may_begin(const struct active *a)
{
	return a->in->can_clamp;
}

static uint64_t window(struct control *c, unsigned i, uint64_t dt_us, uint32_t *cwnd_bytes)
{
	*cwnd_bytes = 0;
	return c->value_bytes;
}

const struct law_ops law_direct = {
	.name = "direct",
	.reason = reason,
	.may_begin = may_begin,
	.window = window,
	.set_divisor = ANY_CHANGE,
};
