#ifdef HAVE_AGENT
#include "effect/effects.h"

#include <errno.h>
#include <stdlib.h>

int effects_new(struct effects *e, const struct effects_ops *ops, unsigned max_subjects)
{
	e->ops = ops;
	e->max_subjects = max_subjects;
	e->wishes = calloc(max_subjects, sizeof *e->wishes);
	return e->wishes ? 0 : -ENOMEM;
}

void effects_free(struct effects *e)
{
	free(e->wishes);
}

/* What is to be set for a subject, and until when. A value of 0: nobody wants anything. */
static struct effects_wish meet(const struct effects *e, const struct effects_subject *s, uint64_t now_us)
{
	const struct effects_wish *const wishes = e->wishes[s->place];
	struct effects_wish met = {.id = s->id, .until_us = UINT64_MAX};
	uint64_t longest_us = 0;
	unsigned i;

	for (i = 0; i < EFFECTS_POLICIES; i++)
		if (wishes[i].value && wishes[i].id == s->id && wishes[i].until_us > now_us) {
			met.value = e->ops->meet(met.value, wishes[i].value);
			met.until_us = wishes[i].until_us < met.until_us ? wishes[i].until_us : met.until_us;
		}
	/* Of those that want just this, the one that lasts longest; where none does, no longer than any of them. */
	for (i = 0; i < EFFECTS_POLICIES; i++)
		if (wishes[i].value == met.value && wishes[i].id == s->id && wishes[i].until_us > longest_us)
			longest_us = wishes[i].until_us;
	if (longest_us > now_us)
		met.until_us = longest_us;
	return met;
}

int effects_want(struct effects *e, unsigned policy, const struct effects_subject *s, uint64_t value, uint32_t ttl_us,
                 uint64_t now_us)
{
	struct effects_wish set;

	e->wishes[s->place][policy] =
		(struct effects_wish){.id = s->id, .until_us = now_us + ttl_us, .value = value};
	set = meet(e, s, now_us);
	if (!set.value)
		return e->ops->release(e->self, s->key);
	/* No longer than who wants it said: another wish that lasts longer is set when its policy renews it. */
	return e->ops->set(e->self, s->key, set.value, (uint32_t)((set.until_us - now_us + 999) / 1000));
}

void effects_give_up(struct effects *e, unsigned policy, bool alone)
{
	unsigned i;

	for (i = 0; i < e->max_subjects; i++)
		if (e->wishes[i][policy].value)
			e->wishes[i][policy].value = 0;
	if (alone && e->self)
		e->ops->release_all(e->self);
}
#endif
