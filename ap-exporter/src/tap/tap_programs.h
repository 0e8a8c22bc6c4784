/* tap_programs.h: what is done with the maps of the tap's programs for the daemon. Part of what keeps privileges
 * (helper/serve.h). */
#ifndef OAL_TAP_PROGRAMS_H
#define OAL_TAP_PROGRAMS_H

#include "helper/record.h"
#include "tap/bpf/tap_maps.h"

struct tap_programs {
	int stations; /* map */
	int cpus;
	struct tap_bytes *bytes; /* one a processor: room for an answer of the kernel */
};

/* SET: counts the bytes of a station, -E2BIG: no room. RELEASE. READ: -ENOENT: it is not counted. */
int tap_programs_command(void *tap_programs, const struct helper_record *, struct helper_answer *);

#endif
