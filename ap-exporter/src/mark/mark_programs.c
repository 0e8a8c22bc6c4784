#ifdef HAVE_BPF
#include "mark/mark_programs.h"

#include "base/clock.h"
#include "helper/tc_maps.h"
#include "mark/mark.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* A slot that no state has. The one to begin with is the station's own, so that it mostly gets the same again. */
static uint32_t free_slot(const struct tc_action_programs *p, const struct mark_bpf_station *station)
{
	const struct mark_bpf_station *last = NULL;
	bool used[MARK_BPF_SLOTS] = { false };
	struct mark_bpf_station key;
	struct mark_bpf_state s;
	uint32_t slot = mark_bpf_seal(station, &(struct mark_bpf_state){ 0 });

	for (; bpf_map_get_next_key(p->table, last, &key) == 0; last = &key)
		if (bpf_map_lookup_elem(p->table, &key, &s) == 0)
			used[s.slot % MARK_BPF_SLOTS] = true;
	while (used[slot % MARK_BPF_SLOTS]) /* there are fewer states than slots */
		slot++;
	return slot % MARK_BPF_SLOTS;
}

static int set(const struct tc_action_programs *p, const struct mark_bpf_station *key, const struct helper_record *r)
{
	const uint64_t now_ns = clock_monotonic_ns();
	struct mark_bpf_state before, s = {
		.deadline_ns = now_ns + r->ttl_ms * UINT64_C(1000000),
		.since_ns = now_ns,
		.interval_ns = r->bytes * 1000,
		.marks = r->scale,
	};

	if (bpf_map_lookup_elem(p->table, key, &before) < 0) {
		s.slot = free_slot(p, key);
	} else {
		s.slot = before.slot;
		if (before.marks & MARK_BPF_ECT0 && before.deadline_ns > now_ns)
			s.since_ns = before.since_ns; /* a renewal goes on where the marks before it were */
	}
	s.seal = mark_bpf_seal(key, &s);
	return bpf_map_update_elem(p->table, key, &s, BPF_ANY);
}

/* Are these marks that may be? */
static bool in_bounds(const struct helper_record *r)
{
	const bool spaced = r->scale & MARK_ECT0;

	return r->scale && !(r->scale & ~MARK_ALL) && !r->mss_bytes && r->ttl_ms && r->ttl_ms <= MARK_MAX_TTL_MS &&
	       (spaced ? r->bytes >= MARK_MIN_INTERVAL_US && r->bytes <= MARK_MAX_INTERVAL_US : !r->bytes);
}

int mark_programs_command(void *self, const struct helper_record *r, struct helper_answer *a)
{
	static const struct mark_bpf_station nobody;
	const struct tc_action_programs *p = self;
	struct mark_bpf_station key = nobody;
	const bool of_station = r->command == HELPER_SET || r->command == HELPER_RELEASE;
	int ret;

	memcpy(key.mac, r->mac, sizeof key.mac);
	if ((of_station && (key.mac[0] & 1 || !memcmp(&key, &nobody, sizeof key))) ||
	    (r->command == HELPER_SET && !in_bounds(r)))
		return -EBADMSG;
	switch (r->command) {
	case HELPER_SET:
		return set(p, &key, r);
	case HELPER_RELEASE:
		ret = bpf_map_delete_elem(p->table, &key);
		return ret == -ENOENT ? 0 : ret;
	case HELPER_CLEAR:
		return tc_maps_clear(p);
	default:
		return tc_maps_count(p, 1, MARK_BPF_N_COUNTERS, a);
	}
}
#endif
