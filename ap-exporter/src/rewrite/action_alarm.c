#include "rewrite/action_alarm.h"

#include <stdio.h>

static void way_second(struct action_alarm_way *a, const struct action_way *now)
{
	if (now->packets_seen != a->acks_seen) {
		a->acks_seen = now->packets_seen;
		a->seconds = 0;
	} else if (now->in_force) {
		a->seconds++;
		a->clamps = now->in_force;
	}
}

bool action_alarm_second(struct action_alarm *a, const struct action_stats *s)
{
	const struct action_way up = action_way_up(s);

	way_second(&a->up, &up);
	way_second(&a->down, &s->down);
	return action_alarm_on(a);
}

void action_alarm_reset(struct action_alarm *a)
{
	*a = (struct action_alarm){ 0 };
}

size_t action_alarm_text(const struct action_alarm *a, char *buf, size_t size)
{
	const bool up = action_alarm_way_on(&a->up);
	const struct action_alarm_way *w = up ? &a->up : &a->down;
	int len = 0;

	if (size)
		buf[0] = '\0';
	if (action_alarm_on(a))
		len = snprintf(buf, size,
			       "control acts on nothing: %u clamps%s in force and for %u s not one ACK that met one. "
			       "Behind NAT read headers at the Wi-Fi port (a section 'tap' in place of 'packet'); else "
			       "packets pass that port by",
			       w->clamps, up ? "" : " of the way down", w->seconds);
	return len < 0 ? 0 : (size_t)len;
}
