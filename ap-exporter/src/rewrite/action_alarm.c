#include "rewrite/action_alarm.h"

#include <stdio.h>

bool action_alarm_second(struct action_alarm *a, uint32_t clamps, uint64_t acks_seen)
{
	if (acks_seen != a->acks_seen) {
		a->acks_seen = acks_seen;
		a->seconds = 0;
	} else if (clamps) {
		a->seconds++;
		a->clamps = clamps;
	}
	return action_alarm_on(a);
}

void action_alarm_reset(struct action_alarm *a)
{
	*a = (struct action_alarm){ 0 };
}

size_t action_alarm_text(const struct action_alarm *a, char *buf, size_t size)
{
	int len = 0;

	if (size)
		buf[0] = '\0';
	if (action_alarm_on(a))
		len = snprintf(buf, size,
			       "control acts on nothing: %u clamps in force and for %u s not one ACK that met one. "
			       "Behind NAT read headers at the Wi-Fi port (a section 'tap' in place of 'packet'); else "
			       "packets pass that port by",
			       a->clamps, a->seconds);
	return len < 0 ? 0 : (size_t)len;
}
