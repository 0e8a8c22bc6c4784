/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* ca_check.h: made-up histories of a connection, and what the law decides in them: the same in each form of it. */
#ifndef OAL_LC_CA_CHECK_H
#define OAL_LC_CA_CHECK_H

#include "ca.h"

#define OAL_LC_EVENTS 48

enum oal_lc_event_kind { OAL_LC_PAIR, OAL_LC_MARKED, OAL_LC_LOST, OAL_LC_TIMEOUT, OAL_LC_N_EVENTS };
/* PAIR: segments, µs. MARKED: sequence number of what is sent next. LOST: up to which all is acknowledged, packets
 * taken for lost; `at_ns` is when. TIMEOUT: nothing. */
struct oal_lc_event {
	__u32 kind, a, b, unused;
	__u64 at_ns;
};
struct oal_lc_history {
	struct oal_lc_model model;
	struct oal_lc_event events[OAL_LC_EVENTS];
};

/* What a form of the law that runs elsewhere reads and writes. */
struct oal_lc_work {
	struct oal_lc_history history;
	__u8 decided[OAL_LC_EVENTS];
};

/* One event; 255 where nothing is decided. */
OAL_LC_INLINE __u8 oal_lc_event_decides(struct oal_lc_state *s, const struct oal_lc_model *m,
					const struct oal_lc_event *e)
{
	switch (e->kind) {
	case OAL_LC_PAIR:
		oal_lc_pair(s, e->a, e->b);
		return 255;
	case OAL_LC_MARKED:
		oal_lc_marked(s, e->a);
		return 255;
	case OAL_LC_LOST:
		return oal_lc_decide(s, m, e->at_ns, e->a, e->b);
	case OAL_LC_TIMEOUT:
		return 128 + oal_lc_timeout(s);
	default:
		return 255;
	}
}

OAL_LC_INLINE void oal_lc_play(const struct oal_lc_history *h, __u8 decided[OAL_LC_EVENTS])
{
	struct oal_lc_state s;
	int i;

	__builtin_memset(&s, 0, sizeof s);
	for (i = 0; i < OAL_LC_EVENTS; i++)
		decided[i] = oal_lc_event_decides(&s, &h->model, &h->events[i]);
}

#endif
