#ifdef HAVE_BPF
#include "rewrite/rwnd_programs.h"

#include "base/clock.h"
#include "helper/tc_maps.h"
#include "rewrite/rwnd.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

static int set(const struct tc_action_programs *p, const struct rwnd_bpf_flow *key, const struct helper_record *r)
{
	struct rwnd_bpf_clamp clamp = {
		.deadline_ns = clock_monotonic_ns() + r->ttl_ms * UINT64_C(1000000),
		.bytes = r->bytes,
		.floor_bytes = (uint32_t)RWND_FLOOR_MSS * r->mss_bytes,
		.scale = r->scale,
	};

	clamp.seal = rwnd_bpf_seal(rwnd_bpf_tag(key), clamp.deadline_ns, clamp.bytes, clamp.floor_bytes, clamp.scale);
	return bpf_map_update_elem(p->table, key, &clamp, BPF_ANY);
}

/* Is this a clamp that may be? The rest of a flow may be any number: one that there is not has no packets. */
static bool in_bounds(const struct helper_record *r)
{
	return (r->scale <= RWND_MAX_SCALE || r->scale == RWND_SCALE_LEARNED) && r->mss_bytes >= RWND_MIN_MSS &&
	       r->bytes >= (uint32_t)RWND_FLOOR_MSS * r->mss_bytes && r->ttl_ms && r->ttl_ms <= RWND_MAX_TTL_MS;
}

int rwnd_programs_command(void *self, const struct helper_record *r, struct helper_answer *a)
{
	const struct tc_action_programs *p = self;
	struct rwnd_bpf_flow key = { .client_port = htons(r->flow.client_port),
				     .server_port = htons(r->flow.server_port), .direction = r->direction };
	const bool of_flow = r->command == HELPER_SET || r->command == HELPER_RELEASE;
	int ret;

	if ((of_flow && (!key.client_port || !key.server_port || key.direction >= RWND_DIRECTIONS)) ||
	    (r->command == HELPER_SET && !in_bounds(r)))
		return -EBADMSG;
	memcpy(key.client, r->flow.client, sizeof key.client);
	memcpy(key.server, r->flow.server, sizeof key.server);
	switch (r->command) {
	case HELPER_SET:
		return set(p, &key, r);
	case HELPER_RELEASE:
		ret = bpf_map_delete_elem(p->table, &key);
		return ret == -ENOENT ? 0 : ret; /* a SYN ended it before */
	case HELPER_CLEAR:
		return tc_maps_clear(p);
	default:
		return tc_maps_count(p, RWND_BPF_DIRECTIONS, RWND_BPF_N_COUNTERS, a);
	}
}
#endif
