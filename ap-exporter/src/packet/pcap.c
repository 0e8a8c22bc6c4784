#include "packet/pcap.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { LINKTYPE_ETHERNET = 1, LINKTYPE_RAW_OLD = 12, LINKTYPE_RAW_BSD = 14, LINKTYPE_RAW = 101, LINKTYPE_SLL = 113,
       LINKTYPE_IPV4 = 228, LINKTYPE_IPV6 = 229, LINKTYPE_SLL2 = 276 };
enum { BLOCK_SECTION = 0x0a0d0d0a, BLOCK_INTERFACE = 1, BLOCK_PACKET_OLD = 2, BLOCK_SIMPLE = 3, BLOCK_ENHANCED = 6 };
enum { OPTION_END = 0, OPTION_TSRESOL = 9, OPTION_TSOFFSET = 14 };
#define BYTE_ORDER_MAGIC 0x1a2b3c4du
/* No frame is longer, whatever a damaged length says. */
enum { MAX_FRAME = 1 << 20, RESOLUTION_US = 6 };

static uint32_t u32(const struct pcap *p, const uint8_t *b)
{
	return p->big_endian ? (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3]
	                     : (uint32_t)b[3] << 24 | (uint32_t)b[2] << 16 | (uint32_t)b[1] << 8 | b[0];
}

static uint16_t u16(const struct pcap *p, const uint8_t *b)
{
	return (uint16_t)(p->big_endian ? b[0] << 8 | b[1] : b[1] << 8 | b[0]);
}

static int link_of(uint32_t linktype)
{
	switch (linktype & 0xffff) { /* the upper half may tell the length of the FCS */
	case LINKTYPE_ETHERNET: return PACKET_LINK_ETHERNET;
	case LINKTYPE_RAW: case LINKTYPE_RAW_OLD: case LINKTYPE_RAW_BSD:
	case LINKTYPE_IPV4: case LINKTYPE_IPV6: return PACKET_LINK_RAW_IP;
	case LINKTYPE_SLL: return PACKET_LINK_SLL;
	case LINKTYPE_SLL2: return PACKET_LINK_SLL2;
	default: return -1;
	}
}

/* A timestamp to microseconds. */
static uint64_t to_us(const struct pcap_interface *f, uint64_t t)
{
	uint64_t s, rest;
	unsigned n = f->resolution & 127;

	if (f->resolution & 128) {
		s = n > 63 ? 0 : t >> n;
		rest = n > 63 ? t : t & ((UINT64_C(1) << n) - 1);
		for (; n > 43; n--) /* so that the product below stays within 64 bits */
			rest >>= 1;
		rest = rest * 1000000 >> n;
	} else {
		uint64_t unit = 1;

		for (; n && unit <= UINT64_MAX / 10; n--)
			unit *= 10;
		s = t / unit;
		rest = t % unit;
		rest = unit >= 1000000 ? rest / (unit / 1000000) : rest * (1000000 / unit);
	}
	return (s + (uint64_t)f->offset_s) * 1000000 + rest;
}

bool pcap_is(const uint8_t *b, size_t len)
{
	struct pcap p = {0};
	uint32_t magic;

	if (len < 24)
		return false;
	magic = u32(&p, b);
	return magic == 0xa1b2c3d4 || magic == 0xd4c3b2a1 || magic == 0xa1b23c4d || magic == 0x4d3cb2a1 ||
	       magic == BLOCK_SECTION;
}

int pcap_open(struct pcap *p, const uint8_t *b, size_t len)
{
	uint32_t magic;

	*p = (struct pcap){.start = b, .at = b, .end = b + len};
	if (!pcap_is(b, len))
		return -EINVAL;
	magic = u32(p, b);
	p->ng = magic == BLOCK_SECTION;
	if (p->ng)
		return 0;
	p->big_endian = magic == 0xd4c3b2a1 || magic == 0x4d3cb2a1;
	p->n_interfaces = 1;
	p->interfaces[0] = (struct pcap_interface){link_of(u32(p, b + 20)),
	                                           u32(p, b) == 0xa1b23c4d ? 9 : RESOLUTION_US, u32(p, b + 16), 0};
	p->at += 24;
	return 0;
}

/* Hands a packet out, or counts it if its link type is unknown. */
static bool fill_packet(struct pcap *p, const struct pcap_interface *f, uint64_t t_us, const uint8_t *bytes,
                        uint32_t caplen, uint32_t wirelen, struct pcap_packet *out)
{
	p->last_us = t_us;
	if (f->link < 0) {
		p->unknown_link++;
		return false;
	}
	*out = (struct pcap_packet){t_us, (enum packet_link)f->link, bytes, caplen, wirelen};
	return true;
}

static bool next_classic(struct pcap *p, struct pcap_packet *out)
{
	const struct pcap_interface *f = &p->interfaces[0];

	while (p->end - p->at >= 16) {
		const uint8_t *h = p->at;
		const uint32_t caplen = u32(p, h + 8), wirelen = u32(p, h + 12), fraction = u32(p, h + 4);
		const uint64_t t_us = u32(p, h) * UINT64_C(1000000) + (f->resolution == 9 ? fraction / 1000 : fraction);

		if (caplen > MAX_FRAME || caplen > (size_t)(p->end - h) - 16)
			break;
		p->at = h + 16 + caplen;
		if (fill_packet(p, f, t_us, h + 16, caplen, wirelen, out))
			return true;
	}
	p->broken = p->at != p->end;
	return false;
}

static void read_interface(struct pcap *p, const uint8_t *b, uint32_t len)
{
	struct pcap_interface f = {-1, RESOLUTION_US, 0, 0};
	uint32_t at = 8;

	if (len >= 8) {
		f.link = link_of(u16(p, b));
		f.snaplen = u32(p, b + 4);
	}
	while (at + 4 <= len) {
		const uint16_t code = u16(p, b + at), size = u16(p, b + at + 2);

		at += 4;
		if (code == OPTION_END || size > len - at)
			break;
		if (code == OPTION_TSRESOL && size >= 1)
			f.resolution = b[at];
		if (code == OPTION_TSOFFSET && size >= 8)
			f.offset_s = (int64_t)(p->big_endian ? (uint64_t)u32(p, b + at) << 32 | u32(p, b + at + 4)
			                                     : (uint64_t)u32(p, b + at + 4) << 32 | u32(p, b + at));
		at += (size + 3u) & ~3u;
	}
	if (p->n_interfaces < PCAP_INTERFACES)
		p->interfaces[p->n_interfaces] = f;
	p->n_interfaces += p->n_interfaces < UINT32_MAX;
}

static const struct pcap_interface *interface(const struct pcap *p, uint32_t id)
{
	static const struct pcap_interface none = {-1, RESOLUTION_US, 0, 0};

	return id < p->n_interfaces && id < PCAP_INTERFACES ? &p->interfaces[id] : &none;
}

static bool read_packet(struct pcap *p, uint32_t type, const uint8_t *b, uint32_t len, struct pcap_packet *out)
{
	const struct pcap_interface *f = interface(p, 0);
	uint32_t caplen, wirelen, head = 20;
	uint64_t t_us = p->last_us;

	if (type == BLOCK_SIMPLE) { /* has no time: that of the packet before is used */
		if (len < 4)
			return false;
		head = 4;
		wirelen = u32(p, b);
		caplen = wirelen < len - head ? wirelen : len - head;
		if (f->snaplen && caplen > f->snaplen)
			caplen = f->snaplen;
	} else {
		if (len < head)
			return false;
		f = interface(p, type == BLOCK_ENHANCED ? u32(p, b) : u16(p, b));
		t_us = to_us(f, (uint64_t)u32(p, b + 4) << 32 | u32(p, b + 8));
		caplen = u32(p, b + 12);
		wirelen = u32(p, b + 16);
		if (caplen > len - head)
			return false;
	}
	return fill_packet(p, f, t_us, b + head, caplen, wirelen, out);
}

static bool next_ng(struct pcap *p, struct pcap_packet *out)
{
	while (p->end - p->at >= 12) {
		const uint8_t *h = p->at;
		uint32_t type = u32(p, h), len;

		if (type == BLOCK_SECTION) { /* the same in both byte orders; what follows says which it is */
			p->big_endian = false;
			p->big_endian = u32(p, h + 8) != BYTE_ORDER_MAGIC;
			if (u32(p, h + 8) != BYTE_ORDER_MAGIC)
				break;
			p->n_interfaces = 0;
		}
		len = u32(p, h + 4);
		if (len < 12 || len % 4 || len > (size_t)(p->end - h))
			break;
		p->at = h + len;
		if (type == BLOCK_INTERFACE)
			read_interface(p, h + 8, len - 12);
		else if ((type == BLOCK_ENHANCED || type == BLOCK_SIMPLE || type == BLOCK_PACKET_OLD) &&
		         read_packet(p, type, h + 8, len - 12, out))
			return true;
	}
	p->broken = p->at != p->end;
	return false;
}

bool pcap_next(struct pcap *p, struct pcap_packet *out)
{
	return p->ng ? next_ng(p, out) : next_classic(p, out);
}

/* --- direction */

int pcap_network_parse(struct pcap_network *n, const char *text)
{
	const char *slash = strchr(text, '/');
	const size_t len = slash ? (size_t)(slash - text) : strlen(text);
	char addr[64], *end;
	unsigned long bits;

	memset(n, 0, sizeof *n);
	if (!len || len >= sizeof addr)
		return -EINVAL;
	memcpy(addr, text, len);
	addr[len] = 0;
	if (inet_pton(AF_INET, addr, n->addr) == 1)
		n->addr_len = 4;
	else if (inet_pton(AF_INET6, addr, n->addr) == 1)
		n->addr_len = 16;
	else
		return -EINVAL;
	n->bits = n->addr_len * 8;
	if (!slash)
		return 0;
	bits = strtoul(slash + 1, &end, 10);
	if (slash[1] < '0' || slash[1] > '9' || *end || bits > n->bits) {
		n->addr_len = 0;
		return -EINVAL;
	}
	n->bits = (uint8_t)bits;
	return 0;
}

bool pcap_network_has(const struct pcap_network *n, const uint8_t *addr, unsigned len)
{
	const unsigned whole = n->bits / 8, rest = n->bits % 8;

	return len == n->addr_len && !memcmp(addr, n->addr, whole) &&
	       (!rest || !((addr[whole] ^ n->addr[whole]) >> (8 - rest)));
}

uint8_t pcap_direction(const struct pcap_network *n, const struct packet *k)
{
	const bool src = pcap_network_has(n, k->src, k->addr_len), dst = pcap_network_has(n, k->dst, k->addr_len);

	return src == dst ? 2 : src;
}
