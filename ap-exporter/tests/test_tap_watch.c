/* Does a station's traffic pass the tap by? The judgement alone, over made-up counters. */
#include "tap/tap_watch.h"
#include "check.h"

enum { DOWN = TAP_WATCH_DOWN, UP = TAP_WATCH_UP, NONE = TAP_WATCH_DIRECTIONS };
enum { SECOND = 1000000 }; /* bytes that a busy station moves in one */

static struct tap_watch w;
static uint64_t tap[2], station[2];

static void fresh(const char *name)
{
	test(name);
	tap[DOWN] = tap[UP] = 0;
	station[DOWN] = 7000000;
	station[UP] = 3000000;
	tap_watch_begin(&w, station);
	CHECK(!tap_watch_judged(&w));
}

/* A second in which so many bytes went by. */
static void second(uint64_t tap_down, uint64_t station_down, uint64_t tap_up, uint64_t station_up)
{
	tap[DOWN] += tap_down;
	tap[UP] += tap_up;
	station[DOWN] += station_down;
	station[UP] += station_up;
	if (tap_watch_due(&w, station))
		tap_watch_compare(&w, tap, station);
}

int main(void)
{
	unsigned i;

	fresh("a station that the tap sees is not bypassed: also with the headers of 802.11 on its small packets");
	for (i = 0; i < 20; i++)
		second(SECOND, SECOND + SECOND / 30, 66000, 102000);
	CHECK_EQ(tap_watch_bypassed(&w), NONE);
	CHECK(tap_watch_judged(&w));

	fresh("what goes past the tap shows in three looks, and which way it went");
	second(SECOND / 3, SECOND, 0, 0);
	second(0, SECOND, 0, 0);
	CHECK_EQ(tap_watch_bypassed(&w), NONE);
	second(0, SECOND, 0, 0);
	CHECK_EQ(tap_watch_bypassed(&w), DOWN);
	CHECK_EQ(w.direction[DOWN].station_grew, SECOND);
	CHECK_EQ(w.direction[DOWN].tap_grew, 0);
	fresh("each way for itself: an upload that passes by shows beside a download that does not");
	for (i = 0; i < 3; i++)
		second(SECOND, SECOND, 1000, SECOND / 2);
	CHECK_EQ(tap_watch_bypassed(&w), UP);

	fresh("two looks in a row at which the tap sees it end that, one does not, and an idle time changes nothing");
	for (i = 0; i < 3; i++)
		second(0, SECOND, 0, 0);
	second(SECOND, SECOND, 0, 0);
	CHECK_EQ(tap_watch_bypassed(&w), DOWN);
	second(0, SECOND, 0, 0);
	second(SECOND, SECOND, 0, 0);
	for (i = 0; i < 1000; i++)
		second(10, 10, 10, 10);
	CHECK_EQ(tap_watch_bypassed(&w), DOWN);
	second(SECOND, SECOND, 0, 0);
	CHECK_EQ(tap_watch_bypassed(&w), NONE);

	fresh("a queue that runs empty, and a look that comes at the wrong moment, are no bypass");
	for (i = 0; i < 50; i++) {
		second(2 * SECOND, SECOND, 0, 0);
		second(0, SECOND, 0, 0);
		second(0, SECOND, 0, 0);
	}
	CHECK_EQ(tap_watch_bypassed(&w), NONE);

	fresh("counters that the driver refreshes every three seconds compare over three seconds");
	for (i = 0; i < 30; i++)
		second(SECOND, i % 3 == 2 ? 3 * SECOND : 0, 30000, i % 3 == 2 ? 100000 : 0);
	CHECK_EQ(tap_watch_bypassed(&w), NONE);
	CHECK_EQ(w.direction[DOWN].tap_grew, 3 * SECOND);

	fresh("a station that does little is not judged, however little the tap saw");
	for (i = 0; i < 3; i++)
		second(0, TAP_WATCH_LEAST / 4, 0, 0);
	CHECK(!tap_watch_judged(&w) && !tap_watch_due(&w, station));
	second(0, TAP_WATCH_LEAST / 4, 0, 0);
	CHECK(tap_watch_judged(&w)); /* but what it does adds up */

	fresh("a counter that went back is no news: it compares from there on");
	for (i = 0; i < 30; i++) {
		second(SECOND, SECOND, 0, 0);
		station[DOWN] = 5;
		second(0, 0, 0, 0);
	}
	CHECK_EQ(tap_watch_bypassed(&w), NONE);
	for (i = 0; i < 3; i++)
		second(0, SECOND, 0, 0);
	CHECK_EQ(tap_watch_bypassed(&w), DOWN);
	return done();
}
