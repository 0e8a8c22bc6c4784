#ifdef HAVE_BPF
#include "tap/tap_programs.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

static int read_station(struct tap_programs *p, uint64_t key, struct helper_answer *a)
{
	const int ret = bpf_map_lookup_elem(p->stations, &key, p->bytes);

	for (int cpu = 0; !ret && cpu < p->cpus; cpu++) {
		a->values[0] += p->bytes[cpu].down;
		a->values[1] += p->bytes[cpu].up;
	}
	return ret;
}

int tap_programs_command(void *self, const struct helper_record *r, struct helper_answer *a)
{
	struct tap_programs *p = self;
	uint64_t key = 0;
	int ret;

	memcpy(&key, r->mac, sizeof r->mac); /* as it lies in a frame */
	memcpy(a->mac, r->mac, sizeof a->mac);
	if (!key)
		return -EBADMSG;
	switch (r->command) {
	case HELPER_SET:
		memset(p->bytes, 0, (size_t)p->cpus * sizeof *p->bytes);
		return bpf_map_update_elem(p->stations, &key, p->bytes, BPF_NOEXIST);
	case HELPER_RELEASE:
		ret = bpf_map_delete_elem(p->stations, &key);
		return ret == -ENOENT ? 0 : ret;
	default:
		return read_station(p, key, a);
	}
}
#endif
