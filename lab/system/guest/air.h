/* air.h: the tool of the guest: an access point, stations and traffic, without hostapd and without real clients.
 * Each function is a command of its own; see air.c for how it is called. Errors end the program. */
#ifndef OAL_AIR_H
#define OAL_AIR_H

#include <stdint.h>

enum { STATIONS_MOST = 250, CHANNEL_MHZ = 2437 };

/* Addresses: a station's, and that of the host behind the wired port. */
static inline void station_address(uint8_t mac[6], unsigned station)
{
	const uint8_t a[6] = { 2, 0, 0, 1, 0, (uint8_t)(station + 1) };

	for (int i = 0; i < 6; i++)
		mac[i] = a[i];
}
static inline void server_address(uint8_t mac[6])
{
	const uint8_t a[6] = { 2, 0, 0, 2, 0, 1 };

	for (int i = 0; i < 6; i++)
		mac[i] = a[i];
}

/* wifi.c: an open 802.11n access point on an interface; stations from..to-1 as if they had associated; an interface
 * that puts frames on the air as they are given to it. */
void air_ap(const char *interface);
void air_stations(const char *interface, unsigned from, unsigned to);
void air_monitor(const char *interface);

/* link.c: a pair of Ethernet ports with a cable between them; fq_codel on a port; a bridge's VLAN of a port. */
void air_cable(const char *a, const char *b);
void air_fq_codel(const char *interface);

/* traffic.c */
struct traffic {
	const char *wired; /* the far end of the cable */
	const char *monitor, *ap;
	unsigned stations;
	unsigned tcp_per_s; /* in all: two thirds downlink segments of 1,514 bytes, one third the ACKs for them */
	unsigned udp_per_s; /* downlink, short: keeps stations active without a TCP header */
};
_Noreturn void air_traffic(const struct traffic *);

/* measure.c: marks around so many seconds of doing nothing, with the CPU time of a process (0: none) in them; and what
 * is known beforehand, to prove the counts. */
void air_window(unsigned seconds, int pid);
void air_known(void);

#endif
