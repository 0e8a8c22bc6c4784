/* kmod_station.h: the module's records of a station as rows of the contract, the same as nl80211's answers give
 * (nl80211_station.h). Pure. */
#ifndef OAL_KMOD_STATION_H
#define OAL_KMOD_STATION_H

#include "kmod/oal_sampler.h"
#include "oal_schema.h"

#include <stdint.h>

/* `mac`, `device` and `ac` of all rows are the caller's. */
struct kmod_station {
	struct oal_station_row row;
	struct oal_station_ac_row acs[OAL_SAMPLER_ACS];
	uint8_t used; /* bit a: the category ever had something to report */
	uint8_t changed; /* bit a: it differs from before */
};

/* An address of a record as a number, as rows have it. */
uint64_t kmod_mac(const uint8_t *octets);
/* Brings the station up to date. The record's length is right (kmod_ring.h). */
void kmod_station_counters(struct kmod_station *, const struct oal_sampler_station *);
void kmod_station_depth(struct kmod_station *, const struct oal_sampler_depth *);

#endif
