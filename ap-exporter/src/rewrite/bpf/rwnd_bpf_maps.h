/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* rwnd_bpf_maps.h: what the tc programs (rwnd.bpf.c) and the backend that loads them (../rwnd_bpf.c) share. */
#ifndef OAL_RWND_BPF_MAPS_H
#define OAL_RWND_BPF_MAPS_H

#include <linux/types.h>

/* In network order; IPv4 as ::ffff:a.b.c.d. A multiple of four bytes: the kernel hashes that faster. */
struct rwnd_bpf_flow {
	__be32 client[4], server[4];
	__be16 client_port, server_port;
	__u32 direction; /* enum rwnd_direction: which way the ACKs go */
};

/* The kernel may use an entry's memory again for another flow while a packet reads it. So nothing in an entry is
 * believed that does not name its flow: `seal` is of all that was set, `verdict` of the flow and the deadline. */
struct rwnd_bpf_clamp {
	__u64 deadline_ns; /* CLOCK_MONOTONIC */
	/* 0: make it; else rwnd_bpf_stamp() of the entry and, in the low 16 bits, the field of the header. */
	__u64 verdict;
	__u32 bytes, floor_bytes;
	__u32 scale; /* of the windows in these ACKs, or RWND_BPF_LEARNED */
	__u32 seal; /* rwnd_bpf_seal() of all but the verdict */
};
#define RWND_BPF_LEARNED 255
#define RWND_BPF_STAMP (~0xffffull) /* the bits of a verdict that are its stamp */

/* What SYNs said of the scale of the windows in the ACKs that go one way. */
enum rwnd_bpf_scale_state {
	RWND_BPF_OFFERED, /* the SYN that way has the option; both must have it */
	RWND_BPF_KNOWN,
	RWND_BPF_NO_OPTION, /* the SYN that way has none: known, neither side scales */
	RWND_BPF_REFUSED, /* an option that says more than 14, or options that contradict themselves */
};
/* One word, read and written whole. */
union rwnd_bpf_scale {
	struct {
		__u8 state, scale;
		__u16 tag; /* the low half of rwnd_bpf_tag() */
	};
	__u32 word;
};

/* A number for a flow: sums of its words by odd factors, which a processor multiplies side by side. */
static inline __attribute__((always_inline)) __u32 rwnd_bpf_tag(const struct rwnd_bpf_flow *f)
{
	const __u32 ports = (__u32)f->client_port << 16 | f->server_port;
	const __u32 sum = f->client[0] * 0x9e3779b1u + f->client[1] * 0x85ebca77u + f->client[2] * 0xc2b2ae3du +
			  f->client[3] * 0x27d4eb2fu + f->server[0] * 0x165667b1u + f->server[1] * 0xd3a2646du +
			  f->server[2] * 0xfd7046c5u + f->server[3] * 0xb55a4f09u + ports * 0x2c1b3c6du +
			  f->direction * 0x85157af5u;

	return sum ^ sum >> 15;
}

/* Which flow a verdict is of, and which setting of that flow; the low 16 bits are 0. */
static inline __attribute__((always_inline)) __u64 rwnd_bpf_stamp(__u32 tag, __u64 deadline_ns)
{
	const __u32 set = (__u32)deadline_ns;

	return (__u64)(tag ^ set * 0x9e3779b1u) << 32 | ((tag * 0x85ebca77u + set) & 0xffff0000u);
}

static inline __attribute__((always_inline)) __u32 rwnd_bpf_seal(__u32 tag, __u64 deadline_ns, __u32 bytes,
								 __u32 floor_bytes, __u32 scale)
{
	const __u32 sum = tag + (__u32)deadline_ns * 0x9e3779b1u + (__u32)(deadline_ns >> 32) * 0x85ebca77u +
			  bytes * 0xc2b2ae3du + floor_bytes * 0x27d4eb2fu + scale * 0x165667b1u;

	return sum ^ sum >> 15;
}

/* One number a CPU and direction each: the map's key is the direction. Those up to and with REPLACED are of ACKs of
 * flows that are clamped, and all but the first why such an ACK was let through as it is; the rest is of other
 * packets. */
#define RWND_BPF_COUNTERS(X) \
	X(CLAMPED, clamped) X(FAILED, failed) \
	X(BELOW, below) X(EXPIRED, expired) X(UNKNOWN_SCALE, unknown_scale) X(OTHER_SCALE, other_scale) \
	X(REPLACED, replaced) X(NO_CLAMP, no_clamp) X(SYN, syn) X(RST, rst) X(NO_ACK, no_ack) X(FRAGMENT, fragment) \
	X(HEADERS, headers) X(MALFORMED, malformed) X(BAD_OPTIONS, bad_options)
#define RWND_BPF_ENUM(NAME, name) RWND_BPF_##NAME,
enum rwnd_bpf_counter { RWND_BPF_COUNTERS(RWND_BPF_ENUM) RWND_BPF_N_COUNTERS };
#define RWND_BPF_DIRECTIONS 2
struct rwnd_bpf_counts {
	__u64 n[RWND_BPF_N_COUNTERS];
};

#endif
