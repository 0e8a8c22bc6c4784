/* tcp_frame.h: whole TCP frames with right checksums, from a description; a frame that should come out is the same
 * description with another window. */
#ifndef OAL_TCP_FRAME_H
#define OAL_TCP_FRAME_H

#include "frame.h"

#include <stdbool.h>

enum { FIN = 1, SYN = 2, RST = 4, PSH = 8, ACK = 16, URG = 32, ECE = 64, CWR = 128 };
enum { MOST_EXTENSIONS = 6 };

struct tcp_spec {
	bool v6, down; /* down: from the server */
	uint16_t tags[3]; /* types of VLAN tags, 0: no more */
	uint8_t tos; /* ECN among them */
	uint8_t ip_options; /* bytes, a multiple of four */
	uint8_t extensions[MOST_EXTENSIONS]; /* types of IPv6 extension headers (hop-by-hop is 1 here), 0: no more */
	uint16_t fragment; /* IPv4: the field; IPv6: that of a fragment header, if not 0 */
	uint16_t client_port;
	uint8_t flags;
	uint16_t window;
	uint8_t n_options; /* bytes, a multiple of four */
	uint8_t options[40];
	uint16_t payload;
	uint32_t client; /* last four bytes of its address; 0: 10.0.0.1 */
};

static const uint8_t spec_server4[4] = { 192, 0, 2, 7 };

static inline void spec_addresses(const struct tcp_spec *s, uint8_t client[16], uint8_t server[16])
{
	static const uint8_t net[12] = { 0x20, 1, 0xd, 0xb8 };
	const uint32_t host = s->client ? s->client : 0x0a000001;
	uint8_t *c = client + (s->v6 ? 12 : 0);

	memset(client, 0, 16);
	memset(server, 0, 16);
	if (s->v6) {
		memcpy(client, net, 12);
		memcpy(server, net, 12);
	}
	c[0] = (uint8_t)(host >> 24); c[1] = (uint8_t)(host >> 16); c[2] = (uint8_t)(host >> 8); c[3] = (uint8_t)host;
	memcpy(server + (s->v6 ? 12 : 0), spec_server4, 4);
}

/* RFC 1071, the plain way. */
static inline uint16_t spec_checksum(const uint8_t *p, uint32_t len, uint32_t sum)
{
	for (uint32_t i = 0; i < len; i++)
		sum += i & 1 ? p[i] : (uint32_t)p[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static inline void spec_put16(uint8_t *p, uint16_t v) { p[0] = (uint8_t)(v >> 8); p[1] = (uint8_t)v; }

static inline uint32_t spec_tcp_bytes(const struct tcp_spec *s) { return 20u + s->n_options + s->payload; }

/* The TCP header's offset goes to `*at`. */
static inline struct frame tcp_frame(const struct tcp_spec *s, uint32_t *at)
{
	static const uint8_t next_of[] = { 0, 0, 43, 60, 51 };
	uint8_t client[16], server[16], *src = s->down ? server : client, *dst = s->down ? client : server;
	const unsigned len = s->v6 ? 16 : 4;
	struct frame f = { .len = 0 };
	uint32_t tcp, ip, sum = 6 + spec_tcp_bytes(s);
	unsigned i, n = 0;

	spec_addresses(s, client, server);
	frame_ethernet(&f, 0xff, 1, s->tags[0] ? s->tags[0] : s->v6 ? 0x86dd : 0x0800);
	for (i = 0; i < 3 && s->tags[i]; i++) {
		frame_u16(&f, 0x2005 + i);
		frame_u16(&f, i < 2 && s->tags[i + 1] ? s->tags[i + 1] : s->v6 ? 0x86dd : 0x0800);
	}
	ip = f.len;
	if (s->v6) {
		uint8_t chain[MOST_EXTENSIONS + 2];

		for (i = 0; i < MOST_EXTENSIONS && s->extensions[i]; i++)
			chain[n++] = next_of[s->extensions[i]];
		if (s->fragment)
			chain[n++] = 44;
		chain[n] = 6;
		frame_u32(&f, 0x60000000u | (uint32_t)s->tos << 20);
		frame_u16(&f, 0); frame_u8(&f, chain[0]); frame_u8(&f, 64);
		frame_bytes(&f, src, 16); frame_bytes(&f, dst, 16);
		for (i = 0; i < n; i++) { /* 16 bytes each, fragments 8 */
			frame_u8(&f, chain[i + 1]);
			frame_u8(&f, chain[i] == 44 ? 0 : chain[i] == 51 ? 2 : 1);
			frame_u16(&f, chain[i] == 44 ? s->fragment : 0);
			frame_u32(&f, 1);
			if (chain[i] != 44) {
				frame_u32(&f, 2); frame_u32(&f, 3);
			}
		}
		spec_put16(f.bytes + ip + 4, (uint16_t)(f.len - ip - 40 + spec_tcp_bytes(s)));
	} else {
		frame_u8(&f, 0x45 + s->ip_options / 4u); frame_u8(&f, s->tos);
		frame_u16(&f, 20 + s->ip_options + spec_tcp_bytes(s));
		frame_u16(&f, 1); frame_u16(&f, s->fragment);
		frame_u8(&f, 64); frame_u8(&f, 6); frame_u16(&f, 0);
		frame_bytes(&f, src, 4); frame_bytes(&f, dst, 4);
		for (i = 0; i < s->ip_options; i++)
			frame_u8(&f, 1);
		spec_put16(f.bytes + ip + 10, spec_checksum(f.bytes + ip, 20u + s->ip_options, 0));
	}
	tcp = f.len;
	frame_u16(&f, s->down ? 443 : s->client_port ? s->client_port : 5000);
	frame_u16(&f, s->down ? s->client_port ? s->client_port : 5000 : 443);
	frame_u32(&f, 0x11223344); frame_u32(&f, 0x55667788);
	frame_u8(&f, (20u + s->n_options) / 4 << 4); frame_u8(&f, s->flags);
	frame_u16(&f, s->window); frame_u16(&f, 0); frame_u16(&f, s->flags & URG ? 7 : 0);
	frame_bytes(&f, s->options, s->n_options);
	for (i = 0; i < s->payload; i++)
		frame_u8(&f, i * 31);
	for (i = 0; i < len; i += 2)
		sum += (uint32_t)src[i] << 8 | src[i + 1];
	for (i = 0; i < len; i += 2)
		sum += (uint32_t)dst[i] << 8 | dst[i + 1];
	spec_put16(f.bytes + tcp + 16, spec_checksum(f.bytes + tcp, spec_tcp_bytes(s), sum));
	if (at)
		*at = tcp;
	return f;
}

#endif
