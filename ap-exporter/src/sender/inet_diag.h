/* inet_diag.h: what the kernel says of a TCP connection (sock_diag), as numbers. Pure. */
#ifndef OAL_INET_DIAG_H
#define OAL_INET_DIAG_H

#include <stdbool.h>
#include <stdint.h>

#include "oal_schema.h"
#include "sender/sender_flow.h"

/* A connection at one moment. */
struct sender_look {
	uint64_t cookie; /* the kernel's number of the socket, of no other ever */
	struct sender_flow flow;
	char control[SENDER_CONTROL]; /* empty: not said */
	bool loopback;
	struct oal_sender_tcp_row row; /* but for flow, congestion control, tick and interval */
	uint64_t busy_us, rwnd_limited_us, sndbuf_limited_us;
	uint32_t reordering_pkts, reorderings, segs_in;
	bool has_reorderings;
};

/* Of the payload of a message SOCK_DIAG_BY_FAMILY. False: it is of no TCP connection, or says nothing of its state. */
bool inet_diag_parse(const uint8_t *payload, uint32_t len, struct sender_look *out);

#endif
