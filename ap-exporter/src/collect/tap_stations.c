#ifdef HAVE_BPF
#include "collect/tap_stations.h"

#include "base/json.h"
#include "oal_schema.h"
#include "pipeline/pipeline.h"
#include "tap/tap_watch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 16 }; /* stations that pass by, in the status; of more the number alone */

struct watched {
	uint64_t mac; /* 0: nobody's */
	bool counted; /* by the tap */
	bool asked; /* the tap, when the station's own totals were `station` */
	uint64_t station[TAP_WATCH_DIRECTIONS];
	struct tap_watch watch;
};

struct tap_stations {
	struct pipeline *pipeline;
	const char *interface;
	const struct tap_ops *ops;
	void *tap;
	struct watched *places; /* as the table station has them */
	unsigned n_places, compared, bypassed;
};

/* What the tap counted: compared with what the station had when it was asked. */
static void compare(void *ctx, uint64_t mac, const struct tap_station *seen)
{
	const struct tap_stations *s = ctx;
	const uint64_t tap[TAP_WATCH_DIRECTIONS] = {
		[TAP_WATCH_DOWN] = seen->down_bytes, [TAP_WATCH_UP] = seen->up_bytes,
	};
	unsigned i;

	for (i = 0; i < s->n_places && !(s->places[i].mac == mac && s->places[i].asked); i++)
		;
	if (i == s->n_places)
		return;
	s->places[i].asked = false;
	tap_watch_compare(&s->places[i].watch, tap, s->places[i].station);
	pipeline_station_set_bypassed(s->pipeline, mac,
				      tap_watch_bypassed(&s->places[i].watch) < TAP_WATCH_DIRECTIONS);
}

int tap_stations_new(struct tap_stations **out, struct pipeline *p, const char *interface, const struct tap_ops *ops,
		     void *tap)
{
	const unsigned n = pipeline_places(p, OAL_STATION);
	struct tap_stations *s = calloc(1, sizeof *s);

	if (!s)
		return -ENOMEM;
	*s = (struct tap_stations){ .pipeline = p, .interface = interface, .ops = ops, .tap = tap, .n_places = n };
	s->places = calloc(n, sizeof *s->places);
	if (!s->places) {
		free(s);
		return -ENOMEM;
	}
	*out = s;
	return 0;
}

void tap_stations_free(struct tap_stations *s)
{
	if (!s)
		return;
	if (s->ops->station)
		s->ops->on_station_bytes(s->tap, NULL, NULL);
	for (unsigned i = 0; s->ops->station && i < s->n_places; i++) /* the tap may go on, for another configuration */
		if (s->places[i].counted)
			s->ops->station(s->tap, s->places[i].mac, false);
	free(s->places);
	free(s);
}

/* The station at a place, if it is of this port; NULL: none is. */
static const struct oal_station_row *station_at(const struct tap_stations *s, unsigned place)
{
	const struct oal_station_row *row = pipeline_known(s->pipeline, OAL_STATION, place);

	return row && !strcmp(pipeline_name_of(s->pipeline, row->device), s->interface) ? row : NULL;
}

static void forget(struct tap_stations *s, struct watched *w)
{
	if (w->counted)
		s->ops->station(s->tap, w->mac, false);
	pipeline_station_set_bypassed(s->pipeline, w->mac, false);
	*w = (struct watched){ 0 };
}

static void query_due(struct tap_stations *s, struct watched *w, const struct oal_station_row *row)
{
	const uint64_t station[TAP_WATCH_DIRECTIONS] = {
		[TAP_WATCH_DOWN] = row->tx_bytes, [TAP_WATCH_UP] = row->rx_bytes,
	};

	if (w->mac != row->mac) {
		w->mac = row->mac;
		tap_watch_begin(&w->watch, station);
		w->counted = s->ops->station(s->tap, w->mac, true) == 0;
		return;
	}
	if (!w->counted || !tap_watch_due(&w->watch, station))
		return;
	memcpy(w->station, station, sizeof w->station);
	w->asked = true;
	if (s->ops->station_bytes(s->tap, w->mac) < 0)
		w->asked = false;
}

void tap_stations_second(struct tap_stations *s)
{
	unsigned i;

	if (!s->ops->station)
		return;
	s->ops->on_station_bytes(s->tap, compare, s);
	/* Those that left first: a station may come back at another place, and is one in the tap's table. */
	for (i = 0; i < s->n_places; i++) {
		const struct oal_station_row *row = station_at(s, i);

		if (s->places[i].mac && (!row || row->mac != s->places[i].mac))
			forget(s, &s->places[i]);
	}
	s->compared = s->bypassed = 0;
	for (i = 0; i < s->n_places; i++) {
		const struct oal_station_row *row = station_at(s, i);

		if (!row)
			continue;
		query_due(s, &s->places[i], row);
		s->compared += tap_watch_judged(&s->places[i].watch);
		s->bypassed += tap_watch_bypassed(&s->places[i].watch) < TAP_WATCH_DIRECTIONS;
	}
}

/* The next place from `i` on whose station passes by; NULL: no more. */
static const struct watched *next_bypassed(const struct tap_stations *s, unsigned *i)
{
	for (; *i < s->n_places; ++*i)
		if (s->places[*i].mac && tap_watch_bypassed(&s->places[*i].watch) < TAP_WATCH_DIRECTIONS)
			return &s->places[(*i)++];
	return NULL;
}

struct mac_text {
	char text[18];
};

static struct mac_text mac_text(uint64_t m)
{
	struct mac_text t;

	snprintf(t.text, sizeof t.text, "%02x:%02x:%02x:%02x:%02x:%02x", (unsigned)(m >> 40 & 255),
		 (unsigned)(m >> 32 & 255), (unsigned)(m >> 24 & 255), (unsigned)(m >> 16 & 255),
		 (unsigned)(m >> 8 & 255), (unsigned)(m & 255));
	return t;
}

static int reason(const struct watched *w, char *buf, size_t size)
{
	static const char *const ways[] = { [TAP_WATCH_DOWN] = "to", [TAP_WATCH_UP] = "from" };
	const unsigned way = tap_watch_bypassed(&w->watch);
	const struct tap_watch_direction *d = &w->watch.direction[way];

	return snprintf(buf, size,
			"of the last %" PRIu64 " bytes %s %s the tap saw %" PRIu64
			": hardware flow offload, WED or the driver itself takes them past it",
			d->station_grew, ways[way], mac_text(w->mac).text, d->tap_grew);
}

size_t tap_stations_alarm(const struct tap_stations *s, char *buf, size_t size)
{
	char why[256];
	unsigned i = 0;
	const struct watched *first = next_bypassed(s, &i);
	int len;

	if (size)
		buf[0] = '\0';
	if (!first)
		return 0;
	reason(first, why, sizeof why);
	len = snprintf(buf, size, "control is off for %u of the stations of %s, whose packets pass the tap by: %s",
		       s->bypassed, s->interface, why);
	return len < 0 ? 0 : (size_t)len < size ? (size_t)len : size - 1;
}

void tap_stations_json(const struct tap_stations *s, struct json *j)
{
	const struct watched *w;
	char why[256];
	unsigned i = 0, n = 0;

	json_count(j, "stations_compared", s->compared);
	json_count(j, "stations_bypassed", s->bypassed);
	json_add(j, ", \"control_off\": [");
	while (n < SHOWN && (w = next_bypassed(s, &i))) {
		reason(w, why, sizeof why);
		json_add(j, "%s{\"mac\": \"%s\", \"reason\": ", n++ ? ", " : "", mac_text(w->mac).text);
		json_string(j, why);
		json_add(j, "}");
	}
	json_add(j, "]");
}
#endif
