/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* rwnd_bpf_maps.h: what the tc programs (rwnd.bpf.c) and the backend that loads them (../rwnd_bpf.c) share. */
#ifndef OAL_RWND_BPF_MAPS_H
#define OAL_RWND_BPF_MAPS_H

#include <linux/types.h>

/* In network order; IPv4 as ::ffff:a.b.c.d. A multiple of four bytes: the kernel hashes that faster. */
struct rwnd_bpf_flow {
	__be32 client[4], server[4];
	__be16 client_port, server_port;
};

struct rwnd_bpf_clamp {
	__u64 deadline_ns; /* CLOCK_MONOTONIC */
	__u32 bytes, floor_bytes;
	/* 0: look the scale up; RWND_BPF_VERIFIED | field of the header. One word: whole whoever reads it. */
	__u32 verdict;
	__u8 scale; /* of the client's windows, or RWND_BPF_LEARNED */
	__u8 unused[3];
};
#define RWND_BPF_VERIFIED 0x10000u
#define RWND_BPF_LEARNED 255

/* What SYNs said of the scale of a client's windows. */
enum rwnd_bpf_scale_state {
	RWND_BPF_OFFERED, /* the client's SYN has the option; both must have it */
	RWND_BPF_KNOWN,
	RWND_BPF_REFUSED, /* an option that says more than 14, or options that contradict themselves */
};
struct rwnd_bpf_scale {
	__u8 state, scale, unused[2];
};

/* One number a CPU each. Those up to and with OTHER_SCALE are of ACKs of flows that are clamped, and all but the first
 * why such an ACK was let through as it is; the rest is of other packets. */
#define RWND_BPF_COUNTERS(X) \
	X(CLAMPED, clamped) X(FAILED, failed) \
	X(BELOW, below) X(EXPIRED, expired) X(UNKNOWN_SCALE, unknown_scale) X(OTHER_SCALE, other_scale) \
	X(NO_CLAMP, no_clamp) X(SYN, syn) X(RST, rst) X(NO_ACK, no_ack) X(FRAGMENT, fragment) \
	X(HEADERS, headers) X(MALFORMED, malformed) X(BAD_OPTIONS, bad_options)
#define RWND_BPF_ENUM(NAME, name) RWND_BPF_##NAME,
enum rwnd_bpf_counter { RWND_BPF_COUNTERS(RWND_BPF_ENUM) RWND_BPF_N_COUNTERS };
struct rwnd_bpf_counts {
	__u64 n[RWND_BPF_N_COUNTERS];
};

#endif
