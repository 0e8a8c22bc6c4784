// SPDX-License-Identifier: GPL-2.0-only
/* ca_check.bpf.c: plays histories through the law as the kernel's verifier and JIT have it; for ca_check.c. */
#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "ca_check.h"

struct oal_ecn_work work; /* alone in its section, which ca_check.c maps */

static long play_one(__u32 i, void *unused)
{
	if (i >= OAL_ECN_EVENTS)
		return 1;
	work.decided[i] = oal_ecn_event_decides(&work.state, &work.history.model, &work.history.events[i]);
	return 0;
}

SEC("syscall")
int play(void *ctx)
{
	oal_ecn_begin(&work.state); /* not on the stack: a verifier follows what it knows there through each round */
	return bpf_loop(OAL_ECN_EVENTS, play_one, NULL, 0) == OAL_ECN_EVENTS ? 0 : 1;
}

char _license[] SEC("license") = "GPL";
