/* packet.h: what a captured frame says about TCP. Reads at most `caplen` bytes, keeps nothing.
 * Sources: IEEE 802.1Q, RFC 791, RFC 8200 (extension headers), RFC 9293 (TCP), RFC 7323 (scale, timestamps),
 * RFC 2018 (SACK); LINKTYPE_* from the pcap-linktype registry. */
#ifndef OAL_PACKET_H
#define OAL_PACKET_H

#include <stdbool.h>
#include <stdint.h>

enum packet_link {
	PACKET_LINK_ETHERNET, /* with up to three VLAN tags (802.1Q, 802.1ad) */
	PACKET_LINK_RAW_IP,
	PACKET_LINK_SLL, /* Linux "cooked" v1 */
	PACKET_LINK_SLL2, /* v2 */
};

/* Why a frame is not used; PACKET_BAD_OPTIONS and PACKET_CUT_OPTIONS only count: the packet is used, without the rest
 * of its options. */
enum packet_reason {
	PACKET_OK,
	PACKET_NOT_IP,
	PACKET_NOT_TCP,
	PACKET_FRAGMENT, /* of IPv4 or IPv6; the first one too, since its length is not the packet's */
	PACKET_CUT, /* capture too short for the TCP header */
	PACKET_BAD_HEADER, /* lengths that contradict each other */
	PACKET_BAD_OPTIONS,
	PACKET_CUT_OPTIONS, /* options go on beyond the captured bytes */
	PACKET_N_REASONS
};

enum packet_flags {
	PACKET_FIN = 1, PACKET_SYN = 2, PACKET_RST = 4, PACKET_PSH = 8,
	PACKET_ACK = 16, PACKET_URG = 32, PACKET_ECE = 64, PACKET_CWR = 128
};
enum packet_syn_options { PACKET_SYN_WSCALE = 1, PACKET_SYN_MSS = 2, PACKET_SYN_SACK = 4 };

struct packet {
	uint64_t t_us; /* realtime, set by the caller */
	uint64_t src_mac, dst_mac; /* first octet highest; 0 where the link has none */
	uint8_t src[16], dst[16]; /* `addr_len` bytes, the rest 0 */
	uint8_t addr_len; /* 4 or 16 */
	uint8_t direction; /* enum pipeline_direction, set by the caller */
	uint8_t flags;
	uint8_t ip_ecn; /* 0 not ECT, 1 ECT(1), 2 ECT(0), 3 CE */
	uint16_t src_port, dst_port;
	uint32_t seq, ack; /* ack is 0 without the flag */
	uint32_t payload_bytes; /* from the IP length, so that padding does not count */
	uint16_t window_raw;
	uint16_t mss_bytes;
	uint8_t syn_options, wscale;
	bool options_unread; /* some: cut off, or malformed; what is not in syn_options may have been there */
	uint8_t sack_blocks;
	bool has_ts;
	uint32_t ts_val, ts_ecr;
};

/* Parses a frame of `wirelen` bytes, of which `caplen` were captured. Fills `*p` but for t_us and direction.
 * `*used_reason` gets PACKET_OK, PACKET_BAD_OPTIONS or PACKET_CUT_OPTIONS when the result is PACKET_OK. */
enum packet_reason packet_parse(struct packet *p, enum packet_link link, const uint8_t *frame, uint32_t caplen,
                                uint32_t wirelen, enum packet_reason *used_reason);

/* Which way a packet of a flow not yet known goes, if all there is are its own bytes: 1 up (from the client), 0 down.
 * The client opened the connection; it has the private address if only one side has one; else the higher port. */
unsigned packet_guess_direction(const struct packet *);

/* The name of a reason, for status output. */
const char *packet_reason_name(enum packet_reason);

#endif
