/* frame.h: builds frames byte by byte for tests of the parser. */
#ifndef OAL_FRAME_H
#define OAL_FRAME_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct frame {
	uint8_t bytes[4096];
	uint32_t len;
};

static inline void frame_u8(struct frame *f, unsigned v) { f->bytes[f->len++] = (uint8_t)v; }
static inline void frame_u16(struct frame *f, unsigned v) { frame_u8(f, v >> 8); frame_u8(f, v & 255); }
static inline void frame_u32(struct frame *f, uint32_t v) { frame_u16(f, v >> 16); frame_u16(f, v & 65535); }
static inline void frame_bytes(struct frame *f, const void *p, size_t n)
{
	if (n)
		memcpy(f->bytes + f->len, p, n);
	f->len += (uint32_t)n;
}

/* Destination 02:00:00:00:01:00 + dst, source the same + src. */
static inline void frame_ethernet(struct frame *f, unsigned dst, unsigned src, unsigned type)
{
	const uint8_t mac[5] = {2, 0, 0, 0, 1};

	frame_bytes(f, mac, 5); frame_u8(f, dst);
	frame_bytes(f, mac, 5); frame_u8(f, src);
	frame_u16(f, type);
}

/* IPv4 header from 10.0.0.1 to 192.0.2.7 for `payload` bytes after it. */
static inline void frame_ipv4(struct frame *f, unsigned protocol, unsigned payload, unsigned fragment)
{
	frame_u8(f, 0x45); frame_u8(f, 2); /* ECT(0) */
	frame_u16(f, 20 + payload);
	frame_u16(f, 1); frame_u16(f, fragment);
	frame_u8(f, 64); frame_u8(f, protocol); frame_u16(f, 0);
	frame_u32(f, 0x0a000001); frame_u32(f, 0xc0000207);
}

static inline void frame_ipv6(struct frame *f, unsigned next, unsigned payload)
{
	static const uint8_t src[16] = {0x20, 1, 0xd, 0xb8, 1}, dst[16] = {0x20, 1, 0xd, 0xb8, 2};

	frame_u32(f, 0x60300000); /* CE */
	frame_u16(f, payload); frame_u8(f, next); frame_u8(f, 64);
	frame_bytes(f, src, 16); frame_bytes(f, dst, 16);
}

/* TCP header 5000 → 443 with options (a multiple of four bytes) and `payload` bytes of 'x'. */
static inline void frame_tcp(struct frame *f, uint32_t seq, uint32_t ack, unsigned flags, const void *options,
                             unsigned n_options, unsigned payload)
{
	frame_u16(f, 5000); frame_u16(f, 443);
	frame_u32(f, seq); frame_u32(f, ack);
	frame_u8(f, (20 + n_options) / 4 << 4); frame_u8(f, flags);
	frame_u16(f, 1234); frame_u16(f, 0); frame_u16(f, 0);
	frame_bytes(f, options, n_options);
	memset(f->bytes + f->len, 'x', payload);
	f->len += payload;
}

/* A whole Ethernet frame with IPv4 and TCP. */
static inline struct frame frame_simple(uint32_t seq, unsigned flags, const void *options, unsigned n_options,
                                        unsigned payload)
{
	struct frame f = {.len = 0};

	frame_ethernet(&f, 0xff, 1, 0x0800);
	frame_ipv4(&f, 6, 20 + n_options + payload, 0x4000);
	frame_tcp(&f, seq, 99, flags, options, n_options, payload);
	return f;
}

#endif
