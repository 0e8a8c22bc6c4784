/* mark_stations.h: the pure part of the action's front: which marks are allowed, and which stations have some until
 * when. */
#ifndef OAL_MARK_STATIONS_H
#define OAL_MARK_STATIONS_H

#include "mark/mark.h"

/* May this be set? A group has no marks, nor has the address 0. */
bool mark_allowed(const struct mark_station *, uint8_t marks, uint32_t ttl_ms);
/* What holds for a station when two policies enforce: what either wants. */
uint64_t mark_meet(uint64_t a, uint64_t b);
/* The station of an address as rows have it. */
struct mark_station mark_station_of(uint64_t mac, uint32_t interval_us);

/* Marked stations, in memory of fixed size. An access point has few: they are looked for one by one. */
struct mark_stations;
struct mark_stations *mark_stations_new(uint32_t max);
void mark_stations_free(struct mark_stations *);
/* Notes that a station is marked until `until_us`. 1: it is a new one; 0: it was there; -ENOSPC: the table is full. */
int mark_stations_set(struct mark_stations *, const struct mark_station *, uint64_t until_us);
/* A number of the time since when the station is there: another one each time that it comes. 0: it is not there. */
uint32_t mark_stations_since(const struct mark_stations *, const struct mark_station *);
/* True if the station was there. */
bool mark_stations_remove(struct mark_stations *, const struct mark_station *);
/* Removes one whose time is over at `now_us`; false if there is none. */
bool mark_stations_expire(struct mark_stations *, uint64_t now_us, struct mark_station *);
void mark_stations_clear(struct mark_stations *);
uint32_t mark_stations_count(const struct mark_stations *);

#endif
