/* The alarm that control acts on nothing, each way by itself. */
#include "check.h"
#include "rewrite/action_alarm.h"

#include <string.h>

/* Seconds with so many clamps in force and ACKs seen, up and down. */
static bool seconds(struct action_alarm *a, unsigned n, struct action_way up, struct action_way down)
{
	const struct action_stats s = {
		.in_force = up.in_force + down.in_force,
		.packets_seen = up.packets_seen + down.packets_seen,
		.down = down,
	};
	bool on = false;

	while (n--)
		on = action_alarm_second(a, &s);
	CHECK_EQ(on, action_alarm_on(a));
	return on;
}

int main(void)
{
	struct action_alarm a = { 0 };
	struct action_way up = { .in_force = 3 }, down = { .in_force = 2 };
	char text[512];

	test("clamps of the way down that not one ACK meets are an alarm, though those of the way up are met");
	for (unsigned i = 1; i < ACTION_ALARM_SECONDS; i++) {
		up.packets_seen += 10;
		CHECK(!seconds(&a, 1, up, down));
	}
	CHECK_EQ(action_alarm_text(&a, text, sizeof text), 0);
	up.packets_seen += 10;
	CHECK(seconds(&a, 1, up, down));
	CHECK_EQ(action_alarm_text(&a, text, sizeof text), strlen(text));
	CHECK(strstr(text, "control acts on nothing: 2 clamps of the way down in force and for 5 s") != NULL);
	test("it ends with the first ACK of that way, not of the other");
	up.packets_seen++;
	CHECK(seconds(&a, 1, up, down));
	down.packets_seen++;
	CHECK(!seconds(&a, 1, up, down));

	test("the other way round: ACKs on their way down say nothing of clamps of the way up");
	for (unsigned i = 1; i < ACTION_ALARM_SECONDS; i++) {
		down.packets_seen++;
		seconds(&a, 1, up, down);
	}
	CHECK(action_alarm_on(&a));
	action_alarm_text(&a, text, sizeof text);
	CHECK(strstr(text, "3 clamps in force") != NULL);

	test("without clamps of a way its seconds do not count");
	action_alarm_reset(&a);
	up.in_force = 0;
	down.in_force = 0;
	CHECK(!seconds(&a, 100, up, down));
	return done();
}
