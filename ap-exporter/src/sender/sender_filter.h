/* sender_filter.h: which connections of this host are worth a look. Pure. */
#ifndef OAL_SENDER_FILTER_H
#define OAL_SENDER_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "packet/pcap.h"
#include "sender/inet_diag.h"

enum { SENDER_FILTER_PORTS = 32, SENDER_FILTER_PEERS = 16 };

struct sender_filter {
	unsigned n_ports, n_peers; /* 0: any */
	bool loopback;
	uint16_t ports[SENDER_FILTER_PORTS]; /* of this host */
	struct pcap_network peers[SENDER_FILTER_PEERS];
};

/* `ports` and `peers` are lists with commas; empty: any. NULL, or what is wrong with them, in words. */
const char *sender_filter_parse(struct sender_filter *, const char *ports, const char *peers, bool loopback);
bool sender_filter_takes(const struct sender_filter *, const struct sender_look *);

#endif
