/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* ca.h: the law of the congestion control oal_ecn, in pure functions: DCTCP's, by a mark that no router set but that
 * the round trips and the distances of acknowledgements say.
 *
 * Compiled three times: into struct_ops (ca.bpf.c, for hosts), into the lab's kernel (ca_kernel.c), and into what
 * compares them. Integers only, no loop without a bound.
 *
 * After Ahmad et al., "Learning Congestion State for mmWave Channels": an acknowledgement's round trip and the time
 * since the one before are nearer to one of two centres. DCTCP's law (Alizadeh et al.) as Linux has it: a gain of 1/16,
 * a share of 1 at first, one cut a round trip. What is not known is no mark: then losses alone lower the window, as
 * Reno has it. */
#ifndef OAL_ECN_CA_H
#define OAL_ECN_CA_H

#include <linux/types.h>

#include "../loss-cause/law.h"

#define OAL_ECN_INLINE static inline __attribute__((always_inline))

enum { OAL_ECN_LATEST = 2, OAL_ECN_GAIN_SHIFT = 4, OAL_ECN_ONE_SHIFT = 10,
       OAL_ECN_ONE = 1 << OAL_ECN_ONE_SHIFT, OAL_ECN_LEAST_WINDOW = 2, OAL_ECN_MOST_STEP = 1 << 15 };

/* All zero is no model. The centroids' inputs are round trip and time since the acknowledgement before, µs each: of the
 * latest acknowledgement, then of the one before; one input is the round trip alone. */
struct oal_ecn_model {
	__u64 deadline_ns; /* CLOCK_MONOTONIC; 0: never. Who sets models renews it, so that with him the law ends */
	struct law_centroids centroids;
	__u32 steep; /* 0: a segment more a round trip, as DCTCP; n: twice as many each unmarked one, to window >> n */
	__u32 unused;
};

/* Of a connection; oal_ecn_begin() makes one that has just begun. */
struct oal_ecn_state {
	__u64 at_us; /* of the latest acknowledgement that told a round trip */
	__u32 rtt_us[OAL_ECN_LATEST], apart_us[OAL_ECN_LATEST]; /* latest first */
	__u32 round_end, cut_until; /* sequence numbers */
	__u32 acked, marked; /* packets of this round trip */
	__u32 share; /* DCTCP's alpha, of OAL_ECN_ONE */
	__u32 step; /* segments more a round trip, where the model is steep */
	__u32 times; /* what oal_ecn_times() said of the latest */
	__u8 known; /* acknowledgements so far, no more than are needed */
	__u8 action; /* what the latest one asks for */
	__u8 in_round : 1, cut : 1; /* round_end counts; cut_until does */
};

/* Why a packet counts as marked or not; numbers of counters. */
#define OAL_ECN_REASONS(X) \
	X(MARKED, marked) X(FREE, free) X(NO_MODEL, no_model) X(EXPIRED, expired) X(UNKNOWN, unknown)
#define OAL_ECN_ENUM(NAME, name) OAL_ECN_BY_##NAME,
enum oal_ecn_reason { OAL_ECN_REASONS(OAL_ECN_ENUM) OAL_ECN_N_REASONS };

enum oal_ecn_action { OAL_ECN_GROW, OAL_ECN_HOLD, OAL_ECN_CUT };

OAL_ECN_INLINE void oal_ecn_begin(struct oal_ecn_state *s)
{
	static const struct oal_ecn_state begin = { .share = OAL_ECN_ONE, .step = 1 };

	*s = begin;
}

/* An acknowledgement told a round trip, at a time. */
OAL_ECN_INLINE void oal_ecn_told(struct oal_ecn_state *s, __u64 at_us, __u32 rtt_us)
{
	const __u64 apart = at_us - s->at_us;

	s->rtt_us[1] = s->rtt_us[0];
	s->apart_us[1] = s->apart_us[0];
	s->rtt_us[0] = rtt_us;
	s->apart_us[0] = apart > 0xffffffff ? 0xffffffff : (__u32)apart;
	s->at_us = at_us;
	if (s->known <= OAL_ECN_LATEST) /* the first has none before it */
		s->known++;
}

OAL_ECN_INLINE enum oal_ecn_reason oal_ecn_mark(const struct oal_ecn_state *s, const struct oal_ecn_model *m,
						__u64 now_ns)
{
	const long long x[LAW_MAX_INPUTS] = { s->rtt_us[0], s->apart_us[0], s->rtt_us[1], s->apart_us[1] };

	if (!m->centroids.usable)
		return OAL_ECN_BY_NO_MODEL;
	if (m->deadline_ns && now_ns >= m->deadline_ns)
		return OAL_ECN_BY_EXPIRED;
	if (m->centroids.inputs > LAW_MAX_INPUTS || s->known < 1 + m->centroids.inputs / 2)
		return OAL_ECN_BY_UNKNOWN;
	return law_nearest(&m->centroids, x) == LAW_QUEUE ? OAL_ECN_BY_MARKED : OAL_ECN_BY_FREE;
}

/* Is everything up to a sequence number acknowledged? */
OAL_ECN_INLINE int oal_ecn_passed(__u32 acknowledged, __u32 until)
{
	return (__s32)(acknowledged - until) >= 0;
}

/* So many packets were acknowledged, by an acknowledgement that counts as a mark or not. `acknowledged`: up to which
 * sequence number all is; `next`: that of what is sent next. What the window is to do is kept in `action`. */
OAL_ECN_INLINE void oal_ecn_acked(struct oal_ecn_state *s, int marked, __u32 packets, __u32 acknowledged, __u32 next)
{
	if (s->in_round && oal_ecn_passed(acknowledged, s->round_end)) {
		const __u32 less = s->share >> OAL_ECN_GAIN_SHIFT ? s->share >> OAL_ECN_GAIN_SHIFT : s->share;
		const __u64 part = ((__u64)s->marked << (OAL_ECN_ONE_SHIFT - OAL_ECN_GAIN_SHIFT)) /
				   (s->acked ? s->acked : 1);
		const __u64 share = s->share - less + part;

		s->share = share < OAL_ECN_ONE ? (__u32)share : OAL_ECN_ONE;
		s->step = s->marked ? 1 : s->step < OAL_ECN_MOST_STEP ? s->step * 2 : OAL_ECN_MOST_STEP;
		s->in_round = 0;
	}
	if (!s->in_round) {
		s->acked = 0;
		s->marked = 0;
		s->round_end = next;
		s->in_round = 1;
	}
	s->acked += packets;
	if (marked) {
		s->marked += packets;
		s->step = 1;
	}
	if (s->cut && oal_ecn_passed(acknowledged, s->cut_until))
		s->cut = 0;
	if (marked && !s->cut) {
		s->cut = 1;
		s->cut_until = next;
		s->action = OAL_ECN_CUT;
	} else {
		s->action = marked || s->cut ? OAL_ECN_HOLD : OAL_ECN_GROW;
	}
}

/* The window after a cut, in segments. */
OAL_ECN_INLINE __u32 oal_ecn_window(const struct oal_ecn_state *s, __u32 segments)
{
	const __u32 left = segments - (__u32)((__u64)segments * s->share >> (OAL_ECN_ONE_SHIFT + 1));

	return left < OAL_ECN_LEAST_WINDOW ? OAL_ECN_LEAST_WINDOW : left;
}

/* How many times a packet that was acknowledged counts for a window in its linear growth. */
OAL_ECN_INLINE __u32 oal_ecn_times(const struct oal_ecn_state *s, __u32 steep, __u32 segments)
{
	const __u32 most = steep && steep < 32 ? segments >> steep : 1;
	const __u32 times = s->step < most ? s->step : most;

	return times ? times : 1;
}

#endif
