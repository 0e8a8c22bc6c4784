#include "agent/peers.h"

#include "pipeline/pipeline.h"

enum {
	FRESH = 4, /* in `between`, beside an index below 3 */
	EVERY_TICKS = 250, /* rows are written anew, with their ages, and channels looked up */
};

void peers_init(struct peers *n)
{
	n->filling = 0;
	n->reading = 1;
	atomic_init(&n->between, 2);
	n->ticks = EVERY_TICKS; /* the first tick looks the channels up */
}

/* --- tick thread */

static bool holds(const struct peer_list *list, uint64_t neighbour, uint16_t frequency_mhz)
{
	unsigned i;

	for (i = 0; i < list->n; i++)
		if (list->rows[i].neighbour == neighbour && list->rows[i].frequency_mhz == frequency_mhz)
			return true;
	return false;
}

/* Who has a row is remembered here: the list that they stood in may be filled anew as soon as it is given back. */
static void read_snapshot(struct peers *n, struct pipeline *p)
{
	const struct peer_list *now;
	unsigned i;

	n->reading = atomic_exchange_explicit(&n->between, n->reading, memory_order_acq_rel) & ~(unsigned)FRESH;
	now = &n->snapshots[n->reading].list;
	for (i = 0; i < n->n_present; i++) {
		const struct oal_neighbour_ap_row gone = {.neighbour = n->present[i].neighbour,
							  .frequency_mhz = n->present[i].frequency_mhz};

		if (!holds(now, gone.neighbour, gone.frequency_mhz))
			pipeline_gone(p, OAL_NEIGHBOUR_AP, &gone);
	}
	for (i = 0; i < now->n; i++)
		n->present[i] = (struct peer_key){now->rows[i].neighbour, now->rows[i].frequency_mhz};
	n->n_present = now->n;
}

static void write_rows(const struct peers_snapshot *s, struct pipeline *p, uint64_t now_us)
{
	unsigned i;

	for (i = 0; i < s->list.n; i++) {
		struct oal_neighbour_ap_row row = s->list.rows[i];
		const uint64_t age_ms = row.age_ms + (now_us > s->at_us[i] ? (now_us - s->at_us[i]) / 1000 : 0);

		row.age_ms = age_ms < UINT32_MAX ? (uint32_t)age_ms : UINT32_MAX;
		pipeline_row(p, OAL_NEIGHBOUR_AP, &row);
	}
}

static bool update_channels(struct peers *n, const struct pipeline *p)
{
	uint16_t now[PEER_RADIOS] = {0};
	bool changed = false;
	unsigned i;

	pipeline_frequencies(p, now, PEER_RADIOS);
	for (i = 0; i < PEER_RADIOS; i++) {
		changed |= atomic_load_explicit(&n->frequencies[i], memory_order_relaxed) != now[i];
		atomic_store_explicit(&n->frequencies[i], now[i], memory_order_relaxed);
	}
	return changed;
}

bool peers_tick(struct peers *n, struct pipeline *p, uint64_t (*now_ns)(void))
{
	const bool fresh = atomic_load_explicit(&n->between, memory_order_relaxed) & FRESH;
	const bool due = ++n->ticks >= EVERY_TICKS;

	if (!fresh && !due)
		return false;
	if (fresh)
		read_snapshot(n, p);
	n->ticks = 0;
	write_rows(&n->snapshots[n->reading], p, now_ns ? now_ns() / 1000 : 0);
	return update_channels(n, p);
}

/* --- agent's thread */

unsigned peers_frequencies(const struct peers *n, uint16_t frequencies[PEER_RADIOS])
{
	unsigned i, found = 0;

	for (i = 0; i < PEER_RADIOS; i++) {
		const unsigned mhz = atomic_load_explicit(&n->frequencies[i], memory_order_relaxed);

		if (mhz)
			frequencies[found++] = (uint16_t)mhz;
	}
	return found;
}

struct peers_snapshot *peers_draft(struct peers *n)
{
	return &n->snapshots[n->filling];
}

void peers_publish(struct peers *n)
{
	n->filling = atomic_exchange_explicit(&n->between, n->filling | FRESH, memory_order_acq_rel) & ~(unsigned)FRESH;
}
