#ifdef HAVE_BPF
#include "helper/tc_maps.h"

#include <bpf/bpf.h>

int tc_maps_clear(const struct tc_action_programs *p)
{
	uint64_t key[8]; /* as large as a subject's key, and more */
	int ret = 0;

	while (!ret && bpf_map_get_next_key(p->table, NULL, key) == 0)
		ret = bpf_map_delete_elem(p->table, key);
	return ret;
}

int tc_maps_count(const struct tc_action_programs *p, uint32_t keys, uint32_t n, struct helper_answer *a)
{
	const uint64_t *counts = p->counts; /* n of one processor, then those of the next */
	int ret = 0;

	for (uint32_t key = 0; !ret && key < keys; key++) {
		ret = bpf_map_lookup_elem(p->counters, &key, p->counts);
		for (uint32_t i = 0; !ret && i < n * (uint32_t)p->cpus; i++)
			a->values[key * n + i % n] += counts[i];
	}
	return ret;
}
#endif
