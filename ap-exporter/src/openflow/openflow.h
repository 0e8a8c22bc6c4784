/* openflow.h: the few OpenFlow 1.3 messages that actions need, as bytes. Pure: no socket, no state.
 *
 * An effect is one flow of the bridge's table 0, above every other. That of a clamp matches one way of a TCP
 * connection and has the window lowered by rewrite_rwnd, that of marks matches the packets to a station and has CE set
 * by mark_ce (openwrt/openvswitch/). Both then hand the packet to the bridge's own flows: they mark it in a register,
 * which they want to be 0 themselves, and look it up again. Clamps take register 15 and marks register 14, so a packet
 * that both concern meets both. VLAN tags do not matter to the match. */
#ifndef OAL_OPENFLOW_H
#define OAL_OPENFLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	OPENFLOW_HEADER = 8, /* bytes: version, type, length, xid */
	OPENFLOW_MESSAGE_MAX = 256, /* bytes of any message below */
	OPENFLOW_PRIORITY = 60000, /* of 65535: above the bridge's own flows; marks take the next */
	OPENFLOW_MAC = 6, /* bytes */
};

/* What is done with the packets of a flow of ours. */
enum openflow_kind { OPENFLOW_CLAMP, OPENFLOW_MARKS, OPENFLOW_KINDS };

/* ACKs that go this way carry at most `raw` in their window field. Ports in host order; addresses are 4 or 16 bytes. */
struct openflow_clamp {
	const uint8_t *source, *destination;
	uint8_t addr_len;
	uint16_t source_port, destination_port;
	uint16_t raw;
};

/* Packets to this station get CE: bit 1 of `marks`, each with ECT(1); bit 2, those with ECT(0), spaced by the
 * interval. The spacing goes on while `since`, a number of the caller's choice, is the same. */
struct openflow_marks {
	const uint8_t *mac;
	uint32_t interval_us, since; /* 0 where ECT(0) is not marked */
	uint8_t marks;
};

struct openflow_rule {
	enum openflow_kind kind;
	union {
		struct openflow_clamp clamp;
		struct openflow_marks marks;
	};
};

/* Each writes one message of at most OPENFLOW_MESSAGE_MAX bytes and returns its length. */
size_t openflow_hello(uint8_t *, uint32_t xid);
/* Of what the switch says by itself, only that our flows ended. Two messages: they take effect together. */
size_t openflow_set_config(uint8_t *, uint32_t xid);
size_t openflow_set_async(uint8_t *, uint32_t xid);
size_t openflow_barrier(uint8_t *, uint32_t xid);
size_t openflow_echo_request(uint8_t *, uint32_t xid);
size_t openflow_echo_reply(uint8_t *, uint32_t xid);
/* How many packets met flows with this cookie. */
size_t openflow_aggregate(uint8_t *, uint32_t xid, uint64_t cookie);
/* The datapath forgets it after `ttl_ms`, the switch the flow within a second after that. */
size_t openflow_add(uint8_t *, uint32_t xid, uint64_t cookie, const struct openflow_rule *, uint16_t ttl_ms);
size_t openflow_delete(uint8_t *, uint32_t xid, uint64_t cookie, const struct openflow_rule *);
/* All flows with this cookie; of clamps, those over IPv4 or those over IPv6. Carries the action of its kind, to no
 * effect but that a switch which does not know it answers with an error. */
size_t openflow_delete_all(uint8_t *, uint32_t xid, uint64_t cookie, enum openflow_kind, bool v6);

enum openflow_type {
	OPENFLOW_HELLO = 0,
	OPENFLOW_ERROR = 1,
	OPENFLOW_ECHO_REQUEST = 2,
	OPENFLOW_ECHO_REPLY = 3,
	OPENFLOW_SET_CONFIG = 9,
	OPENFLOW_FLOW_REMOVED = 11,
	OPENFLOW_FLOW_MOD = 14,
	OPENFLOW_MULTIPART_REQUEST = 18,
	OPENFLOW_MULTIPART_REPLY = 19,
	OPENFLOW_BARRIER_REQUEST = 20,
	OPENFLOW_BARRIER_REPLY = 21,
	OPENFLOW_SET_ASYNC = 28,
};

/* What an error means to us. */
enum openflow_error {
	OPENFLOW_ERROR_OTHER,
	OPENFLOW_ERROR_VERSION, /* OpenFlow 1.3 is not spoken there */
	OPENFLOW_ERROR_ACTION,  /* ours is not known there */
	OPENFLOW_ERROR_FULL,    /* the flow table is */
};

struct openflow_message {
	uint8_t type; /* enum openflow_type, or one that does not concern us */
	uint32_t xid, length;
	bool speaks_13;            /* hello */
	enum openflow_error error; /* error, with what it was called on the wire */
	uint16_t error_type, error_code;
	uint64_t cookie, packets;  /* flow removed; packets: multipart reply too */
	bool expired;              /* flow removed: by its own time */
};

/* Reads the message at `data`, of which `len` bytes are there. 1: it is in `m`. 0: more bytes are needed; m->length
 * says of how many, or 0. -EPROTO: this is not OpenFlow, or a message that is too short for what it says it is. */
int openflow_parse(struct openflow_message *m, const uint8_t *data, size_t len);

#endif
