/* law.h: what decides about a policy's subjects. A law says why to act and which value each subject should have; all
 * that protects users is the frame's (control.c) and the same for every law: measuring, mode, floor, hold_us, the
 * guard, the time to live of each effect, which flows may be clamped and which stations marked at all. */
#ifndef OAL_LAW_H
#define OAL_LAW_H

#include <stdbool.h>
#include <stdint.h>

#include "oal_policy.h"

enum { LAW_VALUES = 4 }; /* of `direct`: one a class, Good to Bad */

struct active;
struct control;
struct control_input;
struct station_state;

/* A law is about flows, or about stations: then it has `marks`, and of what follows `prepare` at the most. Flows are
 * those with data on its way down; of an `uplink` law those with data on its way up, and it lowers the windows of
 * servers. */
struct law_ops {
	const char *name; /* as in a bundle */
	/* Which packets to this station get CE from now on: MARK_… of mark/mark.h; 0: none. `*reason`: why. */
	uint8_t (*marks)(const struct control *, const struct control_input *, const struct station_state *,
			 uint8_t *reason);
	/* Once a step, before anything is decided. May be NULL. */
	void (*prepare)(struct control *, const struct control_input *, unsigned n_active);
	/* Why to act now: enum oal_rewrite_reason; OAL_REWRITE_REASON_NONE: nothing asks for it. */
	uint8_t (*reason)(struct control *, const struct control_input *);
	/* May a clamp of this flow begin? */
	bool (*may_begin)(const struct active *);
	/* Window of the i-th active flow, before floor and limits. `*cwnd_bytes`: what its sender needs, for the row;
	 * 0: unknown. */
	uint64_t (*window)(struct control *, unsigned i, uint64_t dt_us, uint32_t *cwnd_bytes);
	bool holds_while_binding; /* a clamp that binds is itself a reason to go on */
	bool follows_links; /* windows are scaled with the PHY rate, by policy.link_follow_permille */
	bool uplink;
	uint32_t set_divisor; /* a window that moved by more than this part is set at once, others with the next renewal
			       */
};

extern const struct law_ops law_fair_window, law_direct, law_mark, law_backlog_cap;

/* NULL: there is no such law. */
const struct law_ops *law_find(const char *name);

#endif
