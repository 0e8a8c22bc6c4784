/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* ca_check.h: made-up histories of a connection, and what the law decides in them: the same in each form of it. */
#ifndef OAL_ECN_CA_CHECK_H
#define OAL_ECN_CA_CHECK_H

#include "ca.h"

#define OAL_ECN_EVENTS 48

/* An acknowledgement: `ns` is the clock of deadlines. */
struct oal_ecn_event {
	__u64 ns, at_us;
	__u32 rtt_us, packets, acknowledged, next;
};
struct oal_ecn_history {
	struct oal_ecn_model model;
	struct oal_ecn_event events[OAL_ECN_EVENTS];
};
/* What is decided of each: why, what the window is to do, what would be left of 1,000 segments, and their growth. */
struct oal_ecn_decision {
	__u16 why, action, left, times;
};

/* What a form of the law that runs elsewhere reads and writes. */
struct oal_ecn_work {
	struct oal_ecn_history history;
	struct oal_ecn_decision decided[OAL_ECN_EVENTS];
	struct oal_ecn_state state;
};

OAL_ECN_INLINE struct oal_ecn_decision oal_ecn_event_decides(struct oal_ecn_state *s, const struct oal_ecn_model *m,
							     const struct oal_ecn_event *e)
{
	struct oal_ecn_decision d = { 0 };

	oal_ecn_told(s, e->at_us, e->rtt_us);
	d.why = oal_ecn_mark(s, m, e->ns);
	oal_ecn_acked(s, d.why == OAL_ECN_BY_MARKED, e->packets, e->acknowledged, e->next);
	d.action = s->action;
	d.left = oal_ecn_window(s, 1000);
	d.times = oal_ecn_times(s, m->steep, 1000);
	return d;
}

OAL_ECN_INLINE void oal_ecn_play(const struct oal_ecn_history *h, struct oal_ecn_decision decided[OAL_ECN_EVENTS])
{
	struct oal_ecn_state s;
	int i;

	oal_ecn_begin(&s);
	for (i = 0; i < OAL_ECN_EVENTS; i++)
		decided[i] = oal_ecn_event_decides(&s, &h->model, &h->events[i]);
}

#endif
