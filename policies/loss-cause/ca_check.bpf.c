// SPDX-License-Identifier: GPL-2.0-only
/* ca_check.bpf.c: plays histories through the law as the kernel's verifier and JIT have it; for ca_check.c. */
#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "ca_check.h"

struct oal_lc_work work; /* alone in its section, which ca_check.c maps */

struct so_far {
	struct oal_lc_state state;
};

static long play_one(__u32 i, struct so_far *f)
{
	if (i >= OAL_LC_EVENTS)
		return 1;
	work.decided[i] = oal_lc_event_decides(&f->state, &work.history.model, &work.history.events[i]);
	return 0;
}

SEC("syscall")
int play(void *ctx)
{
	struct so_far f = { 0 };

	return bpf_loop(OAL_LC_EVENTS, play_one, &f, 0) == OAL_LC_EVENTS ? 0 : 1;
}

char _license[] SEC("license") = "GPL";
