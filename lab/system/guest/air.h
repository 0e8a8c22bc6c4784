/* air.h: the tool of the guest: an access point, stations and traffic, without hostapd and without real clients.
 * Each function is a command of its own; see air.c for how it is called. Errors end the program. */
#ifndef OAL_AIR_H
#define OAL_AIR_H

#include <stddef.h>
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
/* A real client's side: join the access point; move a radio into the network namespace of a process. */
void air_join(const char *interface);
void air_to_namespace(const char *interface, int pid);
/* For serve.c: a station with this association id; the elements of an answer, written at `at`: how many bytes. */
void address_of(const char *interface, uint8_t mac[6]);
void air_station(const char *interface, const uint8_t mac[6], uint16_t aid);
size_t air_elements(uint8_t *at);
size_t air_probe_response(uint8_t *at); /* likewise, the whole body */

/* serve.c: lets whoever asks into the access point of this interface. */
_Noreturn void air_serve(const char *interface);

/* link.c: a pair of Ethernet ports with a cable between them; fq_codel on a port; the one VLAN, untagged, of a port of
 * a bridge; masquerading of what leaves by a port, by nftables. */
void air_cable(const char *a, const char *b);
void air_fq_codel(const char *interface);
void air_vlan(const char *port, unsigned vlan);
void air_vlan_of_bridge(const char *bridge, unsigned vlan);
/* nat.c */
void air_masquerade(const char *interface);

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
