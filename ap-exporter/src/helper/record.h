/* record.h: what the daemon asks of its helper, and what the helper answers: records of fixed size, one a packet of a
 * socket that keeps packets apart. In the machine's own byte order: both ends are one program.
 *
 * Which programs and ports there are comes from the configuration that root started the exporter with: a record names
 * them by number. What a command does not use is 0; a record that has anything else in it is malformed, and ends the
 * helper. */
#ifndef OAL_HELPER_RECORD_H
#define OAL_HELPER_RECORD_H

#include <stdint.h>

#define HELPER_MAGIC 0x4f414c01u /* "OAL", and the version of these records */

enum { HELPER_SLOTS = 10 }; /* pairs of programs: a tap for each section, the rewrite, the marks */

enum helper_command {
	HELPER_ATTACH, /* the programs of `slot` to its port `port`; answered by where they are */
	HELPER_DETACH,
	/* rewrite: a clamp; marks: of a station; tap: counts the bytes of a station from now on. Answered when it
	 * fails */
	HELPER_SET,
	HELPER_RELEASE, /* ends that. Answered when it fails */
	HELPER_CLEAR, /* rewrite, marks: ends all. Answered when it fails */
	HELPER_READ, /* rewrite, marks: counters of packets; tap: bytes of a station */
	HELPER_COMMANDS,
	/* No commands: what owners of slots hear. */
	HELPER_STARTED = HELPER_COMMANDS,
	HELPER_ENDED,
};

/* Addresses in network order, IPv4 as ::ffff:a.b.c.d; ports in host order. */
struct helper_flow {
	uint8_t client[16], server[16];
	uint16_t client_port, server_port;
};

struct helper_record {
	uint32_t magic, number; /* number: of the records of this channel, from 0 */
	uint8_t command, slot, port, direction; /* direction: of the flow, enum rwnd_direction */
	struct helper_flow flow; /* rewrite: SET, RELEASE */
	uint8_t mac[6]; /* tap: SET, RELEASE, READ; marks: SET, RELEASE */
	uint8_t scale; /* these: rewrite, SET; marks, SET: which marks, their interval in µs as `bytes`, and ttl_ms */
	uint8_t unused_too;
	uint32_t bytes;
	uint16_t mss_bytes, ttl_ms;
};
_Static_assert(sizeof(struct helper_record) == 64, "no padding that could say anything");

enum { HELPER_VALUES = 32 };

struct helper_answer {
	uint32_t magic, number; /* of the record that it answers */
	uint8_t command, slot, port, unused;
	int32_t error; /* 0 or negative errno */
	uint8_t mac[6], unused_too[2];
	/* ATTACH: index of the port, and whether a program is at its egress too. READ: rewrite, marks: their counters
	 * in their order; tap: bytes down, bytes up. */
	uint64_t values[HELPER_VALUES];
};

#endif
