/* tap_watch.h: do a station's packets pass the tap by? Hardware flow offload and Wi-Fi drivers with a path of their own
 * (WED) take them past tc; the station's counters go on. Bytes that the tap saw against the station's own, each
 * direction for itself. Pure.
 *
 * Both totals are compared from one look at which enough was there to the next: counters that a driver refreshes every
 * few seconds compare over as long. */
#ifndef OAL_TAP_WATCH_H
#define OAL_TAP_WATCH_H

#include <stdbool.h>
#include <stdint.h>

enum {
	TAP_WATCH_LEAST = 65536, /* bytes of the station in a direction, below which nothing is judged */
	TAP_WATCH_FACTOR = 2, /* the tap saw less than this part: headers of 802.11 and a queue explain less */
	TAP_WATCH_LOOKS = 3, /* in a row, each of a second at least: a queue that runs empty is over by then */
	TAP_WATCH_SEEN = 2, /* looks in a row at which the tap sees it again */
};
enum { TAP_WATCH_DOWN, TAP_WATCH_UP, TAP_WATCH_DIRECTIONS };

struct tap_watch {
	struct tap_watch_direction {
		uint64_t tap_bytes, station_bytes; /* totals at the last look */
		uint64_t tap_grew, station_grew; /* between the last two */
		uint8_t missing, seen; /* looks in a row */
		bool judged, bypassed;
	} direction[TAP_WATCH_DIRECTIONS];
};

/* A station that has just come: its counters now. The tap's begin at 0. */
void tap_watch_begin(struct tap_watch *, const uint64_t station_bytes[TAP_WATCH_DIRECTIONS]);
/* Is there enough to judge, or a counter that went back, so that the tap's totals are wanted? */
bool tap_watch_due(const struct tap_watch *, const uint64_t station_bytes[TAP_WATCH_DIRECTIONS]);
/* At most once a second: totals now. */
void tap_watch_compare(struct tap_watch *, const uint64_t tap_bytes[TAP_WATCH_DIRECTIONS],
		       const uint64_t station_bytes[TAP_WATCH_DIRECTIONS]);
/* The direction that passes the tap by; TAP_WATCH_DIRECTIONS: none that is known. */
unsigned tap_watch_bypassed(const struct tap_watch *);
/* Was it ever compared? */
bool tap_watch_judged(const struct tap_watch *);

#endif
