/* tap_stations.h: the stations of a tap's port: what the tap saw of each, against the station's own counters as nl80211
 * has them. One whose packets pass the tap by is said to the data path, which then does not control it. */
#ifndef OAL_TAP_STATIONS_H
#define OAL_TAP_STATIONS_H

#include "tap/tap.h"

#include <stddef.h>

struct json;
struct pipeline;
struct tap_stations;

#ifdef HAVE_BPF
/* Of the port `interface`; `ops` and `tap` must outlive it. -ENOMEM. */
int tap_stations_new(struct tap_stations **, struct pipeline *, const char *interface, const struct tap_ops *ops,
		     void *tap);
void tap_stations_free(struct tap_stations *);
/* Once a second. Neither allocates nor logs. */
void tap_stations_second(struct tap_stations *);
/* Stations that pass by, in words; empty: none. Returns the length. */
size_t tap_stations_alarm(const struct tap_stations *, char *buf, size_t size);
/* Adds `"stations_compared": N, "stations_bypassed": N, "control_off": [{"mac", "reason"}]` to a JSON object that has
 * members. */
void tap_stations_json(const struct tap_stations *, struct json *);
#else /* a packet socket counts no bytes of stations */
static inline int tap_stations_new(struct tap_stations **out, struct pipeline *p, const char *interface,
				   const struct tap_ops *ops, void *tap)
{
	return 0;
}
static inline void tap_stations_free(struct tap_stations *s) {}
static inline void tap_stations_second(struct tap_stations *s) {}
static inline size_t tap_stations_alarm(const struct tap_stations *s, char *buf, size_t size) { return 0; }
static inline void tap_stations_json(const struct tap_stations *s, struct json *j) {}
#endif

#endif
