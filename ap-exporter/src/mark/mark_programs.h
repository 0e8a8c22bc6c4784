/* mark_programs.h: what is done with the maps of the marks' programs for the daemon. Part of what keeps privileges
 * (helper/serve.h): whatever the daemon asks for, no station has marks for longer than a second, or ECT(0) marked more
 * often than the least interval allows. */
#ifndef OAL_MARK_PROGRAMS_H
#define OAL_MARK_PROGRAMS_H

#include "helper/tc_action.h"
#include "mark/bpf/mark_bpf_maps.h"

_Static_assert((int)MARK_BPF_N_COUNTERS <= (int)HELPER_VALUES, "an answer holds the counters");

/* SET: marks of a station (record.scale: which; record.bytes: interval, µs), -E2BIG: no room. RELEASE, CLEAR. READ: the
 * counters, all processors together. */
int mark_programs_command(void *tc_action_programs, const struct helper_record *, struct helper_answer *);

#endif
