#include "agent/peers.h"

enum {
	FRESH = 4, /* in `between`, beside an index below 3 */
	EVERY_TICKS = 250, /* rows are written anew, with their ages, and channels looked at */
};

void neighbours_init(struct neighbours *n)
{
	n->filling = 0;
	n->reading = 1;
	atomic_init(&n->between, 2);
	n->ticks = EVERY_TICKS; /* the first tick looks at the channels */
}

/* --- tick thread */

static bool holds(const struct neighbour_list *list, uint64_t neighbour, uint16_t frequency_mhz)
{
	unsigned i;

	for (i = 0; i < list->n; i++)
		if (list->rows[i].neighbour == neighbour && list->rows[i].frequency_mhz == frequency_mhz)
			return true;
	return false;
}

/* Who was shown is remembered here: the list that they stood in may be filled anew as soon as it is given back. */
static void take(struct neighbours *n, struct pipeline *p)
{
	const struct neighbour_list *now;
	unsigned i;

	n->reading = atomic_exchange_explicit(&n->between, n->reading, memory_order_acq_rel) & ~(unsigned)FRESH;
	now = &n->told[n->reading].list;
	for (i = 0; i < n->n_shown; i++) {
		const struct oal_neighbour_ap_row gone = {.neighbour = n->shown[i].neighbour, .frequency_mhz = n->shown[i].frequency_mhz};

		if (!holds(now, gone.neighbour, gone.frequency_mhz))
			pipeline_gone(p, OAL_NEIGHBOUR_AP, &gone);
	}
	for (i = 0; i < now->n; i++)
		n->shown[i] = (struct neighbour_key){now->rows[i].neighbour, now->rows[i].frequency_mhz};
	n->n_shown = now->n;
}

static void write_rows(const struct neighbours_told *told, struct pipeline *p, uint64_t now_us)
{
	unsigned i;

	for (i = 0; i < told->list.n; i++) {
		struct oal_neighbour_ap_row row = told->list.rows[i];
		const uint64_t age_ms = row.age_ms + (now_us > told->at_us[i] ? (now_us - told->at_us[i]) / 1000 : 0);

		row.age_ms = age_ms < UINT32_MAX ? (uint32_t)age_ms : UINT32_MAX;
		pipeline_row(p, OAL_NEIGHBOUR_AP, &row);
	}
}

static bool look_at_channels(struct neighbours *n, const struct pipeline *p)
{
	uint16_t now[NEIGHBOURS_RADIOS] = {0};
	bool changed = false;
	unsigned i;

	pipeline_frequencies(p, now, NEIGHBOURS_RADIOS);
	for (i = 0; i < NEIGHBOURS_RADIOS; i++) {
		changed |= atomic_load_explicit(&n->frequencies[i], memory_order_relaxed) != now[i];
		atomic_store_explicit(&n->frequencies[i], now[i], memory_order_relaxed);
	}
	return changed;
}

bool neighbours_tick(struct neighbours *n, struct pipeline *p, uint64_t (*now_ns)(void))
{
	const bool fresh = atomic_load_explicit(&n->between, memory_order_relaxed) & FRESH;
	const bool due = ++n->ticks >= EVERY_TICKS;

	if (!fresh && !due)
		return false;
	if (fresh)
		take(n, p);
	n->ticks = 0;
	write_rows(&n->told[n->reading], p, now_ns ? now_ns() / 1000 : 0);
	return look_at_channels(n, p);
}

/* --- agent's thread */

unsigned neighbours_frequencies(const struct neighbours *n, uint16_t frequencies[NEIGHBOURS_RADIOS])
{
	unsigned i, found = 0;

	for (i = 0; i < NEIGHBOURS_RADIOS; i++) {
		const unsigned mhz = atomic_load_explicit(&n->frequencies[i], memory_order_relaxed);

		if (mhz)
			frequencies[found++] = (uint16_t)mhz;
	}
	return found;
}

struct neighbours_told *neighbours_draft(struct neighbours *n)
{
	return &n->told[n->filling];
}

void neighbours_tell(struct neighbours *n)
{
	n->filling = atomic_exchange_explicit(&n->between, n->filling | FRESH, memory_order_acq_rel) & ~(unsigned)FRESH;
}
