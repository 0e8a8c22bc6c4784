#ifdef HAVE_BPF
#include "mark/mark_programs.h"

#include "base/clock.h"
#include "mark/mark.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* ECT(0) is marked since then: a renewal goes on where the marks before it were. */
static uint64_t since(const struct tc_action_programs *p, const struct mark_bpf_station *key, uint64_t now_ns)
{
	struct mark_bpf_state before;

	if (bpf_map_lookup_elem(p->table, key, &before) == 0 && before.marks & MARK_BPF_ECT0 &&
	    before.deadline_ns > now_ns)
		return before.since_ns;
	return now_ns;
}

static int set(const struct tc_action_programs *p, const struct mark_bpf_station *key, const struct helper_record *r)
{
	const uint64_t now_ns = clock_monotonic_ns();
	struct mark_bpf_state s = {
		.deadline_ns = now_ns + r->ttl_ms * UINT64_C(1000000),
		.since_ns = since(p, key, now_ns),
		.interval_ns = r->bytes * 1000,
		.marks = r->scale,
	};

	s.seal = mark_bpf_seal(key, &s);
	return bpf_map_update_elem(p->table, key, &s, BPF_ANY);
}

static int clear(const struct tc_action_programs *p)
{
	struct mark_bpf_station key;
	int ret = 0;

	while (!ret && bpf_map_get_next_key(p->table, NULL, &key) == 0)
		ret = bpf_map_delete_elem(p->table, &key);
	return ret;
}

static int read_counters(const struct tc_action_programs *p, struct helper_answer *a)
{
	const struct mark_bpf_counts *counts = p->counts;
	const uint32_t zero = 0;
	const int ret = bpf_map_lookup_elem(p->counters, &zero, p->counts);

	for (int cpu = 0; !ret && cpu < p->cpus; cpu++)
		for (unsigned i = 0; i < MARK_BPF_N_COUNTERS; i++)
			a->values[i] += counts[cpu].n[i];
	return ret;
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
		return clear(p);
	default:
		return read_counters(p, a);
	}
}
#endif
