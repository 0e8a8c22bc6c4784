#ifdef HAVE_AGENT
#include "control/effects.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int effects_new(struct effects *e, unsigned max_flows)
{
	e->max_flows = max_flows;
	e->wishes = calloc(max_flows, sizeof *e->wishes);
	return e->wishes ? 0 : -ENOMEM;
}

void effects_free(struct effects *e)
{
	free(e->wishes);
}

/* The smallest window that any policy wants for this flow, of equal ones the one that lasts longest; NULL: nobody wants
 * one. */
static const struct effects_wish *smallest(const struct effects *e, const struct effects_flow *f, uint64_t now_us)
{
	const struct effects_wish *least = NULL;
	unsigned i;

	for (i = 0; i < EFFECTS_POLICIES; i++) {
		const struct effects_wish *w = &e->wishes[f->place][i];

		if (!w->bytes || w->id != f->id || w->until_us <= now_us)
			continue;
		if (!least || w->bytes < least->bytes || (w->bytes == least->bytes && w->until_us > least->until_us))
			least = w;
	}
	return least;
}

int effects_want(struct effects *e, unsigned policy, const struct effects_flow *f, uint32_t bytes, uint32_t ttl_us,
                 uint64_t now_us)
{
	const struct effects_wish *set;

	e->wishes[f->place][policy] = (struct effects_wish){.id = f->id, .until_us = now_us + ttl_us, .bytes = bytes};
	set = smallest(e, f, now_us);
	if (!set)
		return rwnd_release(e->rwnd, f->flow);
	/* No longer than who wants it said: a larger wish that lasts longer is set when its policy renews it. */
	return rwnd_set(e->rwnd, f->flow, set->bytes, (uint32_t)((set->until_us - now_us + 999) / 1000));
}

void effects_give_up(struct effects *e, unsigned policy, bool alone)
{
	unsigned i;

	for (i = 0; i < e->max_flows; i++)
		if (e->wishes[i][policy].bytes)
			e->wishes[i][policy].bytes = 0;
	if (alone && e->rwnd)
		rwnd_release_all(e->rwnd);
}
#endif
