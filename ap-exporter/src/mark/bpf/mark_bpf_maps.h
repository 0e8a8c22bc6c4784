/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* mark_bpf_maps.h: what the tc programs (mark.bpf.c) and the backend that loads them (../mark_bpf.c) share; and when a
 * packet with ECT(0) is due, which is computed in the kernel and tried out of it. */
#ifndef OAL_MARK_BPF_MAPS_H
#define OAL_MARK_BPF_MAPS_H

#include <linux/types.h>

/* Bits of a state, as MARK_… of ../mark.h. */
#define MARK_BPF_ECT1 1
#define MARK_BPF_ECT0 2

/* As it lies in a frame, then two zeros. */
struct mark_bpf_station {
	__u8 mac[6], zero[2];
};

/* What holds for packets to a station. The kernel may use an entry's memory again for another station while a packet
 * reads it. So nothing in an entry is believed whose seal is not of this station and all that was set. */
struct mark_bpf_state {
	__u64 deadline_ns; /* CLOCK_MONOTONIC */
	__u64 since_ns; /* since when packets with ECT(0) are to be marked */
	__u32 interval_ns;
	__u32 marks;
	__u32 slot; /* where the spacing of its marks is, below MARK_BPF_SLOTS; no other state in force has the same */
	__u32 seal;
};
#define MARK_BPF_SLOTS 1024 /* a power of two, and twice as many as there can be states */

/* Where the spacing of a station's marks has come to. Written by packets alone; two processors that send to one station
 * in the same instant may mark once too often. A station whose state ended finds it again if its slot was not needed.
 */
struct mark_bpf_spacing {
	struct mark_bpf_station station;
	__u64 since_ns; /* of the state that it belongs to */
	__u64 next_ns;
	__u32 count; /* marks of this state, and of one that ended shortly before */
	__u32 inverse; /* 2^16 / √count */
};

static inline __attribute__((always_inline)) __u32 mark_bpf_seal(const struct mark_bpf_station *station,
								 const struct mark_bpf_state *s)
{
	const __u32 high = (__u32)station->mac[0] << 24 | (__u32)station->mac[1] << 16 | (__u32)station->mac[2] << 8 |
			   station->mac[3],
		    low = (__u32)station->mac[4] << 8 | station->mac[5];
	const __u32 sum = high * 0x9e3779b1u + low * 0x85ebca77u + (__u32)s->deadline_ns * 0xc2b2ae3du +
			  (__u32)(s->deadline_ns >> 32) * 0x27d4eb2fu + (__u32)s->since_ns * 0x165667b1u +
			  (__u32)(s->since_ns >> 32) * 0xd3a2646du + s->interval_ns * 0xfd7046c5u +
			  s->marks * 0xb55a4f09u + s->slot * 0x2c1b3c6du;

	return sum ^ sum >> 15;
}

enum {
	MARK_BPF_ONE = 65535, /* 1/√1 as an `inverse` */
	MARK_BPF_REMEMBERED = 16, /* intervals after which it begins anew; as Linux's CoDel */
	MARK_BPF_MOST_COUNT = 1 << 20, /* far beyond any: a thousandth of the interval */
};

/* 2^16/√count, from that of count - 1: a step of Newton's, as in Linux's codel_impl.h. */
static inline __attribute__((always_inline)) __u32 mark_bpf_inverse(__u32 inverse, __u32 count)
{
	const __u64 x = (__u64)inverse << 16, square = x * x >> 32;
	__u64 next = (3ull << 32) - (__u64)count * square;

	next = (next >> 2) * x >> 31;
	return next >> 16 > MARK_BPF_ONE ? MARK_BPF_ONE : (__u32)(next >> 16);
}

static inline __attribute__((always_inline)) __u64 mark_bpf_gap_ns(__u32 interval_ns, __u32 inverse)
{
	return (__u64)interval_ns * inverse >> 16;
}

/* Is this packet with ECT(0) to be marked? If so, `p` has moved on. The first at once, for what began the state is a
 * wait that stood already; the n-th after it interval/√n later, whether or not the state ended meanwhile: one that
 * comes and goes marks no more often than one that stays. A station that had marks until less than MARK_BPF_REMEMBERED
 * intervals ago goes on nearly where it was. */
static inline __attribute__((always_inline)) int mark_bpf_due(struct mark_bpf_spacing *p, __u64 since_ns,
							      __u32 interval_ns, __u64 now_ns)
{
	if (now_ns < since_ns || now_ns < p->next_ns)
		return 0;
	if (p->since_ns != since_ns) {
		const __u64 ago_ns = now_ns - p->next_ns;

		p->since_ns = since_ns;
		p->next_ns = now_ns;
		if (p->count > 2 && ago_ns < (__u64)MARK_BPF_REMEMBERED * interval_ns) {
			p->count -= 2; /* the inverse is that of two more; the step below brings it near enough */
		} else {
			p->count = 0;
			p->inverse = MARK_BPF_ONE;
		}
	}
	if (p->count < MARK_BPF_MOST_COUNT)
		p->count++;
	p->inverse = mark_bpf_inverse(p->inverse, p->count);
	p->next_ns += mark_bpf_gap_ns(interval_ns, p->inverse);
	if (p->next_ns < now_ns) /* it sent nothing for a while: what was missed is not made up for */
		p->next_ns = now_ns;
	return 1;
}

/* One number a CPU each, of packets to stations that have a state. The first two are those that got CE; the others why
 * a packet was left as it was. */
#define MARK_BPF_COUNTERS(X) \
	X(MARKED_ECT1, marked_ect1) X(MARKED_ECT0, marked_ect0) \
	X(NOT_ECT, not_ect) X(CE, ce) X(SPARED, spared) X(EXPIRED, expired) X(REPLACED, replaced) X(OTHER, other) \
	X(FAILED, failed)
#define MARK_BPF_ENUM(NAME, name) MARK_BPF_N_##NAME,
enum mark_bpf_counter { MARK_BPF_COUNTERS(MARK_BPF_ENUM) MARK_BPF_N_COUNTERS };
struct mark_bpf_counts {
	__u64 n[MARK_BPF_N_COUNTERS];
};

#endif
