/* rwnd_programs.h: what is done with the maps of the rewrite's programs for the daemon. Part of what keeps privileges
 * (helper/serve.h): whatever the daemon asks for, no window is lowered below the floor, or for longer than a second. */
#ifndef OAL_RWND_PROGRAMS_H
#define OAL_RWND_PROGRAMS_H

#include "helper/record.h"
#include "rewrite/bpf/rwnd_bpf_maps.h"

struct rwnd_programs {
	int clamps, counters; /* maps */
	int cpus;
	struct rwnd_bpf_counts *counts; /* one a processor: room for an answer of the kernel */
};
_Static_assert((int)RWND_BPF_DIRECTIONS * RWND_BPF_N_COUNTERS <= (int)HELPER_VALUES, "an answer holds the counters");

/* SET: a clamp, -E2BIG: no room. RELEASE, CLEAR. READ: the counters, all processors
 * together: those of the way up in their order, then those of the way down. */
int rwnd_programs_command(void *rwnd_programs, const struct helper_record *, struct helper_answer *);

#endif
