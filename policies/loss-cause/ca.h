/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* ca.h: the law of the congestion control oal_lc, in pure functions: is the loss that a sender has just noticed one of
 * the air, after which it may keep its window?
 *
 * Compiled three times: into struct_ops (ca.bpf.c, for hosts), into the lab's kernel (ca_kernel.c), and into what
 * compares them (check.c). Integers only, no loop without a bound.
 *
 * After Moriyama et al., "TCP Congestion Control over IEEE 802.11 Wireless LANs based on K-Means Clustering Focusing on
 * Congestion Window Size and Round-trip Time": the mean of the last three pairs (window, round trip) is nearer to one
 * of two centres. What the paper leaves open is closed here: logarithms and z-scores belong to the model; one decision
 * a recovery; a retransmission timeout, CE, a model that is missing, over, or whose centres do not say which of them is
 * congestion: as without us; no more windows kept one after the other than the model allows. */
#ifndef OAL_LC_CA_H
#define OAL_LC_CA_H

#include <linux/types.h>

#include "law.h"

#define OAL_LC_INLINE static inline __attribute__((always_inline))

enum { OAL_LC_PAIRS = 3, OAL_LC_NO_LIMIT = 255 };

/* All zero is no model. The centroids' inputs are the window in segments and the round trip in µs. */
struct oal_lc_model {
	__u64 deadline_ns; /* CLOCK_MONOTONIC; 0: never. Who sets models renews it, so that with him the law ends */
	struct law_centroids centroids;
	__u32 in_a_row; /* windows kept one after the other, at most; from OAL_LC_NO_LIMIT on there is no limit */
	__u32 unused;
};

/* Which connections a model is for: those to addresses with these leading bits, IPv4 as ::ffff:a.b.c.d; of hosts. */
struct oal_lc_prefix {
	__u32 bits;
	__be32 address[4];
};
#define OAL_LC_MOST_PREFIXES 4096

/* Of a connection. All zero is one that has just begun. */
struct oal_lc_state {
	__u32 segments[OAL_LC_PAIRS], rtt_us[OAL_LC_PAIRS];
	__u32 ce_until; /* sequence number: while it is not acknowledged, what is lost was marked as well */
	__u8 pairs, next; /* pairs known, where the next one goes */
	__u8 in_a_row; /* windows kept since one was not */
	__u8 kept : 1, ce : 1; /* the last decision was to keep; ce_until counts */
};

/* Why a window was kept or not; numbers of counters. */
#define OAL_LC_REASONS(X) \
	X(KEPT, kept) X(NO_MODEL, no_model) X(EXPIRED, expired) X(NO_PAIRS, no_pairs) X(MARKED, marked) \
	X(IN_A_ROW, in_a_row) X(NOTHING_LOST, nothing_lost) X(CONGESTION, congestion)
#define OAL_LC_ENUM(NAME, name) OAL_LC_BY_##NAME,
enum oal_lc_reason { OAL_LC_REASONS(OAL_LC_ENUM) OAL_LC_N_REASONS };

/* An acknowledgement told a round trip. */
OAL_LC_INLINE void oal_lc_pair(struct oal_lc_state *s, __u32 segments, __u32 rtt_us)
{
	const __u32 at = s->next % OAL_LC_PAIRS;

	if (at == 0) {
		s->segments[0] = segments;
		s->rtt_us[0] = rtt_us;
	} else if (at == 1) {
		s->segments[1] = segments;
		s->rtt_us[1] = rtt_us;
	} else {
		s->segments[2] = segments;
		s->rtt_us[2] = rtt_us;
	}
	s->next = at == OAL_LC_PAIRS - 1 ? 0 : at + 1;
	if (s->pairs < OAL_LC_PAIRS)
		s->pairs++;
}

/* An acknowledgement said that packets were marked; `next` is the sequence number of what is sent next. */
OAL_LC_INLINE void oal_lc_marked(struct oal_lc_state *s, __u32 next)
{
	s->ce_until = next;
	s->ce = 1;
}

/* Is the mean of the last pairs nearer to the centre of the air? At equal distance it is congestion. */
OAL_LC_INLINE int oal_lc_is_air(const struct oal_lc_state *s, const struct oal_lc_model *m)
{
	const __u64 segments = (__u64)s->segments[0] + s->segments[1] + s->segments[2];
	const __u64 rtt_us = (__u64)s->rtt_us[0] + s->rtt_us[1] + s->rtt_us[2];
	const long long x[LAW_MAX_INPUTS] = { (long long)(segments / OAL_LC_PAIRS), (long long)(rtt_us / OAL_LC_PAIRS),
					      -1, -1 };

	return law_nearest(&m->centroids, x) == LAW_AIR;
}

/* A loss is about to lower the window: may it stay? `acknowledged`: up to which sequence number all is; `lost`: packets
 * that are taken for lost or came out of order, 0 where something else lowers it (a full queue of this host). */
OAL_LC_INLINE enum oal_lc_reason oal_lc_decide(struct oal_lc_state *s, const struct oal_lc_model *m, __u64 now_ns,
					       __u32 acknowledged, __u32 lost)
{
	enum oal_lc_reason why = OAL_LC_BY_KEPT;

	if (s->ce && (__s32)(acknowledged - s->ce_until) >= 0)
		s->ce = 0;
	if (!m->centroids.usable)
		why = OAL_LC_BY_NO_MODEL;
	else if (m->deadline_ns && now_ns >= m->deadline_ns)
		why = OAL_LC_BY_EXPIRED;
	else if (!lost)
		why = OAL_LC_BY_NOTHING_LOST;
	else if (s->ce)
		why = OAL_LC_BY_MARKED;
	else if (s->pairs < OAL_LC_PAIRS)
		why = OAL_LC_BY_NO_PAIRS;
	else if (s->in_a_row >= m->in_a_row && m->in_a_row < OAL_LC_NO_LIMIT)
		why = OAL_LC_BY_IN_A_ROW;
	else if (!oal_lc_is_air(s, m))
		why = OAL_LC_BY_CONGESTION;
	s->kept = why == OAL_LC_BY_KEPT;
	s->in_a_row = s->kept ? (s->in_a_row < OAL_LC_NO_LIMIT ? s->in_a_row + 1 : OAL_LC_NO_LIMIT) : 0;
	return why;
}

/* A retransmission timeout follows the decision: was the window kept? Then it is to be lowered now after all. */
OAL_LC_INLINE int oal_lc_timeout(struct oal_lc_state *s)
{
	const int kept = s->kept;

	s->kept = 0;
	s->in_a_row = 0;
	return kept;
}

#endif
