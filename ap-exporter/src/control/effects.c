#ifdef HAVE_AGENT
#include "control/effects.h"

#include "rewrite/rwnd_clamps.h"

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

/* The smallest window that anybody but `policy` wants for this flow; NULL: nobody wants one. */
static const struct effects_wish *others(const struct effects *e, unsigned policy, const struct effects_flow *f,
                                         uint64_t now_us)
{
	const struct effects_wish *least = NULL;
	unsigned i;

	for (i = 0; i < EFFECTS_POLICIES; i++) {
		const struct effects_wish *w = &e->wishes[f->place][i];

		if (i != policy && w->bytes && w->id == f->id && w->until_us > now_us &&
		    (!least || w->bytes < least->bytes))
			least = w;
	}
	return least;
}

int effects_want(struct effects *e, unsigned policy, const struct effects_flow *f, uint32_t bytes, uint32_t ttl_us,
                 uint64_t now_us)
{
	const struct effects_wish *other = others(e, policy, f, now_us);
	uint64_t until_us = now_us + ttl_us;

	e->wishes[f->place][policy] = (struct effects_wish){.id = f->id, .until_us = until_us, .bytes = bytes};
	if (!bytes && !other)
		return rwnd_release(e->rwnd, f->flow);
	if (!bytes)
		until_us = other->until_us;
	if (other)
		bytes = (uint32_t)rwnd_meet(bytes, other->bytes);
	/* The smaller wish may end earlier: until the next set, at most this one's time, it outlives itself. */
	return rwnd_set(e->rwnd, f->flow, bytes, (uint32_t)((until_us - now_us + 999) / 1000));
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
