/* collect_stations.h: the stations of an nl80211 interface. Those with traffic are sampled at every tick; the others,
 * and those that are new or have left, are looked up every idle_interval_ticks with a dump of all. */
#ifndef OAL_COLLECT_STATIONS_H
#define OAL_COLLECT_STATIONS_H

#include "collect/collect_source.h"

#include <stdbool.h>
#include <stdint.h>

struct collect_stations;

/* Of at most `max`; `device` is the interface's name in rows. Both pointers must outlive it. NULL: no memory. */
struct collect_stations *collect_stations_new(struct collect_source *, const struct config_nl80211 *, uint16_t device,
					      uint32_t max);
void collect_stations_free(struct collect_stations *);
/* Builds its requests for the interface's present index. `family`: nl80211's id. */
void collect_stations_prepare(struct collect_stations *, uint16_t family);
/* Rows of all stations are gone. */
void collect_stations_forget(struct collect_stations *);
/* Another has sampled them meanwhile: all are to be looked at. */
void collect_stations_again(struct collect_stations *);
/* Samples those that are due. */
void collect_stations_tick(struct collect_stations *, const struct collector_tick *);
/* The next tick at which some are due. */
uint64_t collect_stations_due(const struct collect_stations *);
/* Once a second: how often their counters are renewed. */
void collect_stations_second(struct collect_stations *);
/* Stations that found no place, since the start. */
uint32_t collect_stations_refused(const struct collect_stations *);
uint32_t collect_stations_max(const struct collect_stations *);
/* Writes a request for one object, or all, of the interface `ifindex`. */
void collect_nl80211_request(struct netlink_request *, uint16_t family, uint8_t cmd, uint16_t flags, uint32_t ifindex);

#endif
