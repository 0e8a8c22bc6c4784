/* flow.h: a TCP flow as seen from the AP: per direction of data the sequence space.
 *
 * "Direction" is that of the data: 0 down (server to client), 1 up. `client` is the Wi-Fi side. For data of direction
 * d, the sender is on one side of the AP and the receiver on the other; rtt is AP → receiver → AP.
 *
 * A retransmission is payload seen again: bytes below the highest sequence number seen, and not in a hole. Holes are
 * ranges that were skipped; payload that fills one for the first time came late (reordered, or lost before the AP) and
 * is no loss behind the AP. At most FLOW_HOLES are remembered per direction; beyond that the oldest is forgotten and
 * what fills it later counts as a retransmission (holes_forgotten counts them). */
#ifndef OAL_FLOW_H
#define OAL_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "packet/packet.h"

enum { FLOW_HOLES = 8, FLOW_HISTORY = 8 };

struct flow_range {
	uint32_t start, end; /* sequence numbers, half-open */
};

struct flow_direction {
	/* Sequence space of the data. */
	bool known; /* nxt, una and base hold */
	bool syn, fin;
	uint8_t n_holes;
	uint32_t isn;
	uint32_t base; /* what lies before this was never looked at */
	uint32_t nxt; /* end of the highest payload seen */
	uint32_t una; /* everything before this is acknowledged */
	struct flow_range holes[FLOW_HOLES]; /* ascending, not seen, between base and nxt */
	/* Running totals of the flow. */
	uint64_t sent_bytes, sent_pkts, retrans_bytes, retrans_pkts, delivered_bytes, dup_acks;
	/* The receiver's window. */
	uint16_t window_raw;
	bool has_window;
	uint32_t rwnd_bytes; /* scaled; holds if the receiver's scale is known */
	/* Round trip AP → receiver → AP. */
	bool timing, ts_timing;
	uint32_t timed_end; /* an ACK of this ends the measurement */
	uint32_t ts_val; /* an echo of this ends the measurement by timestamps */
	uint64_t timed_us, ts_us;
	uint64_t rtt_at_us; /* when data and ACK gave the last sample */
	uint32_t srtt_us; /* smoothed; 0 before the first sample */
	/* delivered_bytes (low 32 bits) at the last decision instants, for the delivery rate. */
	uint32_t history[FLOW_HISTORY];
	uint8_t history_at, history_n;
	uint64_t payload_us; /* when payload was last seen; 0: never */
};

enum flow_scale { FLOW_SCALE_UNKNOWN, FLOW_SCALE_OFFERED, FLOW_SCALE_KNOWN };

struct flow {
	uint8_t client_addr[16], server_addr[16];
	uint16_t client_port, server_port;
	uint8_t addr_len;
	bool used, closing; /* closing: RST, or FIN both ways */
	uint16_t chain, newer, older; /* hash chain; list by last packet */
	/* Window scale of each side: [0] the server's (it sends data down), [1] the client's. */
	uint8_t scale[2], scale_state[2];
	uint16_t mss_bytes[2]; /* that each side accepts, from its SYN; 0 unknown */
	struct flow_direction dir[2];
	uint64_t last_us, closing_us;
	uint64_t client_mac; /* Ethernet address on the client's side of the frame; 0 unknown */
	uint64_t station_mac; /* set by the pipeline; 0 unknown */
};

/* What a SYN says of both sides' scales and of its sender's segments, and nothing of its sequence numbers. */
void flow_learn_syn(struct flow *, const struct packet *);
struct flow_table;
/* Takes the packet into account. */
void flow_packet(struct flow_table *, uint16_t, const struct packet *);

static inline bool flow_has_rwnd(const struct flow *f, unsigned direction)
{
	return f->scale_state[!direction] == FLOW_SCALE_KNOWN && f->dir[direction].has_window;
}
static inline uint32_t flow_unacked(const struct flow_direction *d)
{
	return d->known ? d->nxt - d->una : 0;
}
/* Delivery rate at a decision instant, over the last round trip or the last interval, whichever is longer; to be called
 * once per instant and direction. */
uint32_t flow_delivery_kbps(struct flow *, unsigned direction, uint32_t interval_us);

#endif
