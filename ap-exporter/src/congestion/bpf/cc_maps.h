/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* cc_maps.h: what the program that sets congestion controls (cc.bpf.c) and its loader (../congestion_bpf.c) share. */
#ifndef OAL_CC_MAPS_H
#define OAL_CC_MAPS_H

#include <linux/types.h>

#define CC_MOST_PREFIXES 4096
#define CC_NAME_BYTES 16 /* TCP_CA_NAME_MAX */

/* Which connections are meant: those to addresses with these leading bits, IPv4 as ::ffff:a.b.c.d. */
struct cc_prefix {
	__u32 bits;
	__be32 address[4];
};

struct cc_choice {
	__u64 deadline_ns; /* CLOCK_MONOTONIC */
	char name[CC_NAME_BYTES];
};

/* Of connections that began, to a prefix with a choice. FAILED: the kernel has no such congestion control any more. */
#define CC_COUNTERS(X) X(SET, set) X(EXPIRED, expired) X(FAILED, failed)
#define CC_ENUM(NAME, name) CC_N_##NAME,
enum cc_counter { CC_COUNTERS(CC_ENUM) CC_N_COUNTERS };
struct cc_counts {
	__u64 n[CC_N_COUNTERS];
};

#endif
