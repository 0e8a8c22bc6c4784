/* action_alarm.h: does control act on anything? Clamps that no ACK meets lower nothing: their flows have other
 * addresses at the port (NAT), or their packets pass it by. Pure. */
#ifndef OAL_ACTION_ALARM_H
#define OAL_ACTION_ALARM_H

#include "rewrite/action.h"

struct action_alarm_way {
	uint64_t acks_seen; /* as of the last second */
	unsigned seconds; /* with clamps in force since an ACK met one; those without clamps in between do not count */
	uint32_t clamps; /* in force in the last of them */
};
/* Each way by itself: ACKs that meet clamps on their way up say nothing of those on their way down. */
struct action_alarm {
	struct action_alarm_way up, down;
};

enum {
	/* Open vSwitch's counters are up to a second and a half old, and a round trip may take one. */
	ACTION_ALARM_SECONDS = 5,
};

/* Once a second: of these, clamps in force now, and ACKs that met one since the start. True: there is alarm. A way's
 * ends with its first ACK. */
bool action_alarm_second(struct action_alarm *, const struct action_stats *);
/* Control is off, or has another data path: nothing is known. */
void action_alarm_reset(struct action_alarm *);
static inline bool action_alarm_way_on(const struct action_alarm_way *a)
{
	return a->seconds >= ACTION_ALARM_SECONDS;
}
static inline bool action_alarm_on(const struct action_alarm *a)
{
	return action_alarm_way_on(&a->up) || action_alarm_way_on(&a->down);
}
/* What is the matter, in words; empty without alarm. Returns its length. */
size_t action_alarm_text(const struct action_alarm *, char *buf, size_t size);

#endif
