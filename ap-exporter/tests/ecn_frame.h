/* ecn_frame.h: whole UDP or TCP frames to a station with right checksums, from a description; a frame that should come
 * out is the same description with another ECN field. */
#ifndef OAL_ECN_FRAME_H
#define OAL_ECN_FRAME_H

#include "frame.h"
#include "tcp_frame.h"

enum { ECN_NOT_ECT, ECN_ECT1, ECN_ECT0, ECN_CE };

struct ecn_spec {
	bool v6, tcp;
	uint8_t ecn, dscp;
	uint8_t mac[6]; /* of the station */
	uint16_t tag; /* type of a VLAN tag; 0: none */
	uint16_t type; /* of what is neither IPv4 nor IPv6; 0: it is */
	uint16_t payload;
};

static inline struct frame ecn_frame(const struct ecn_spec *s)
{
	static const uint8_t from[6] = { 2, 0, 0, 0, 0, 9 };
	static const uint8_t addresses6[32] = { [0] = 0x20, [1] = 1, [15] = 2, [16] = 0x20, [17] = 1, [31] = 1 };
	const uint16_t type = s->type ? s->type : s->v6 ? 0x86dd : 0x0800;
	const uint32_t transport_bytes = (s->tcp ? 20u : 8u) + s->payload;
	const uint8_t protocol = s->tcp ? 6 : 17, tos = (uint8_t)(s->dscp << 2 | s->ecn);
	struct frame f = { .len = 0 };
	uint32_t ip, at, i, sum = protocol + transport_bytes;

	frame_bytes(&f, s->mac, 6);
	frame_bytes(&f, from, 6);
	if (s->tag) {
		frame_u16(&f, s->tag);
		frame_u16(&f, 5);
	}
	frame_u16(&f, type);
	ip = f.len;
	if (s->v6) {
		frame_u32(&f, 0x60000000u | (uint32_t)tos << 20 | 0x12345);
		frame_u16(&f, transport_bytes);
		frame_u8(&f, protocol);
		frame_u8(&f, 64);
		frame_bytes(&f, addresses6, 32);
	} else {
		frame_u8(&f, 0x45);
		frame_u8(&f, tos);
		frame_u16(&f, 20 + transport_bytes);
		frame_u32(&f, 0x00014000);
		frame_u8(&f, 64);
		frame_u8(&f, protocol);
		frame_u16(&f, 0);
		frame_u32(&f, 0xc0000207);
		frame_u32(&f, 0x0a000001);
		spec_put16(f.bytes + ip + 10, spec_checksum(f.bytes + ip, 20, 0));
	}
	at = f.len;
	frame_u16(&f, 443);
	frame_u16(&f, 5000);
	if (s->tcp) {
		frame_u32(&f, 1);
		frame_u32(&f, 2);
		frame_u16(&f, 0x5010);
		frame_u16(&f, 1000);
		frame_u32(&f, 0);
	} else {
		frame_u16(&f, transport_bytes);
		frame_u16(&f, 0);
	}
	for (i = 0; i < s->payload; i++)
		frame_u8(&f, i * 31);
	for (i = ip + (s->v6 ? 8 : 12); i < ip + (s->v6 ? 40 : 20); i += 2)
		sum += (uint32_t)f.bytes[i] << 8 | f.bytes[i + 1];
	spec_put16(f.bytes + at + (s->tcp ? 16 : 6), spec_checksum(f.bytes + at, transport_bytes, sum));
	return f;
}

#endif
