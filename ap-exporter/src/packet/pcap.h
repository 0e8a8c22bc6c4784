/* pcap.h: packets out of pcap and pcapng files (draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng), read from memory.
 * Both byte orders; microseconds and nanoseconds; Ethernet, raw IP, Linux cooked v1 and v2. Packets of other link types
 * are counted and skipped. */
#ifndef OAL_PCAP_H
#define OAL_PCAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "packet/packet.h"

enum { PCAP_INTERFACES = 64 };

struct pcap_interface {
	int link; /* enum packet_link, or −1: unknown */
	uint8_t resolution; /* if_tsresol: 10^-n s, or 2^-(n & 127) s */
	uint32_t snaplen;
	int64_t offset_s; /* if_tsoffset */
};
struct pcap {
	const uint8_t *start, *at, *end;
	bool ng, big_endian;
	unsigned n_interfaces;
	struct pcap_interface interfaces[PCAP_INTERFACES]; /* pcap has one */
	uint64_t unknown_link; /* packets skipped for their link type */
	uint64_t last_us; /* time of the latest packet; used for a block without one */
	bool broken; /* the rest of the file could not be read */
};
struct pcap_packet {
	uint64_t t_us;
	enum packet_link link;
	const uint8_t *bytes;
	uint32_t caplen, wirelen;
};

bool pcap_is(const uint8_t *bytes, size_t len);
/* -EINVAL: not a pcap or pcapng file, or its header is cut short. */
int pcap_open(struct pcap *, const uint8_t *bytes, size_t len);
/* The next packet; false at the end, or where the file is broken. */
bool pcap_next(struct pcap *, struct pcap_packet *);

/* A network, to tell clients from servers. */
struct pcap_network {
	uint8_t addr[16];
	uint8_t addr_len; /* 0: none */
	uint8_t bits;
};
/* "192.168.1.0/24", "2001:db8::/32", or an address alone. -EINVAL. */
int pcap_network_parse(struct pcap_network *, const char *text);
/* Is this address, of 4 or 16 bytes, in it? */
bool pcap_network_has(const struct pcap_network *, const uint8_t *addr, unsigned len);
/* 1 up, 0 down, 2 (unknown) if both or neither side is inside. */
uint8_t pcap_direction(const struct pcap_network *, const struct packet *);

#endif
