#include "tap/tap_watch.h"

void tap_watch_begin(struct tap_watch *w, const uint64_t station_bytes[TAP_WATCH_DIRECTIONS])
{
	*w = (struct tap_watch){ 0 };
	for (unsigned i = 0; i < TAP_WATCH_DIRECTIONS; i++)
		w->direction[i].station_bytes = station_bytes[i];
}

static bool due(const struct tap_watch_direction *d, uint64_t station_bytes)
{
	return station_bytes < d->station_bytes || station_bytes - d->station_bytes >= TAP_WATCH_LEAST;
}

bool tap_watch_due(const struct tap_watch *w, const uint64_t station_bytes[TAP_WATCH_DIRECTIONS])
{
	bool any = false;

	for (unsigned i = 0; i < TAP_WATCH_DIRECTIONS; i++)
		any |= due(&w->direction[i], station_bytes[i]);
	return any;
}

static void judge(struct tap_watch_direction *d)
{
	d->judged = true;
	if (d->tap_grew * TAP_WATCH_FACTOR < d->station_grew) {
		d->missing += d->missing < TAP_WATCH_LOOKS;
		d->seen = 0;
	} else {
		d->seen += d->seen < TAP_WATCH_SEEN;
		d->missing = 0;
	}
	if (d->missing == TAP_WATCH_LOOKS)
		d->bypassed = true;
	else if (d->seen == TAP_WATCH_SEEN)
		d->bypassed = false;
}

void tap_watch_compare(struct tap_watch *w, const uint64_t tap_bytes[TAP_WATCH_DIRECTIONS],
		       const uint64_t station_bytes[TAP_WATCH_DIRECTIONS])
{
	for (unsigned i = 0; i < TAP_WATCH_DIRECTIONS; i++) {
		struct tap_watch_direction *d = &w->direction[i];
		const bool went_back = station_bytes[i] < d->station_bytes || tap_bytes[i] < d->tap_bytes;

		if (!went_back && !due(d, station_bytes[i]))
			continue;
		d->tap_grew = tap_bytes[i] - d->tap_bytes;
		d->station_grew = station_bytes[i] - d->station_bytes;
		d->tap_bytes = tap_bytes[i];
		d->station_bytes = station_bytes[i];
		if (!went_back) /* a counter that began anew compares from here on */
			judge(d);
	}
}

unsigned tap_watch_bypassed(const struct tap_watch *w)
{
	unsigned i;

	for (i = 0; i < TAP_WATCH_DIRECTIONS && !w->direction[i].bypassed; i++)
		;
	return i;
}

bool tap_watch_judged(const struct tap_watch *w)
{
	return w->direction[TAP_WATCH_DOWN].judged || w->direction[TAP_WATCH_UP].judged;
}
