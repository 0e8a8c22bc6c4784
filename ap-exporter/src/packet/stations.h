/* stations.h: which station an address belongs to, and when it last had a packet. Fixed size. */
#ifndef OAL_STATIONS_H
#define OAL_STATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct station {
	uint64_t mac;
	uint64_t packet_us; /* last packet of one of its flows */
	uint16_t references; /* interfaces on which it is associated; 0: the place is free */
	uint16_t chain; /* next in the bucket, place + 1 */
	bool bypassed; /* its packets pass the tap by */
};
struct station_address {
	uint8_t addr[16];
	uint8_t len; /* 0: the place is free */
	uint64_t mac;
	uint16_t chain;
};
struct stations {
	struct station *stations;
	struct station_address *addresses;
	uint16_t *station_buckets, *address_buckets;
	unsigned max_stations, max_addresses, mask; /* buckets of both: mask + 1 */
	unsigned replace; /* the next address to make room when all places are taken */
	size_t memory;
};

/* -ENOMEM */
int stations_new(struct stations *, unsigned max_stations, unsigned max_addresses);
void stations_free(struct stations *);

void stations_add(struct stations *, uint64_t mac);
void stations_remove(struct stations *, uint64_t mac);
/* An address as the ARP and NDP entries of a routed AP have it; mac 0 removes it. When all places are taken an earlier
 * one is forgotten.
 */
void stations_address(struct stations *, const uint8_t *addr, unsigned len, uint64_t mac);
/* The station behind a flow: the Ethernet address if that is a station's (bridged AP), else the IP address's owner
 * (routed AP), else 0. */
uint64_t stations_of(const struct stations *, uint64_t client_mac, const uint8_t *addr, unsigned len);
void stations_touch(struct stations *, uint64_t mac, uint64_t t_us);
/* The clock was stepped: no station counts as active until its next packet. */
void stations_forget_times(struct stations *);
bool stations_active(const struct stations *, uint64_t mac, uint64_t since_us);

/* Its packets pass the tap by, or no longer. Nothing for a station that is not there. */
void stations_set_bypassed(struct stations *, uint64_t mac, bool bypassed);
/* False also for a station that is not there. */
bool stations_bypassed(const struct stations *, uint64_t mac);
/* How many. */
unsigned stations_n_bypassed(const struct stations *);

#endif
