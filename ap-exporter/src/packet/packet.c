#include "packet/packet.h"

#include <string.h>

enum { ETH_IPV4 = 0x0800, ETH_IPV6 = 0x86dd, ETH_8021Q = 0x8100, ETH_8021AD = 0x88a8, ETH_QINQ_OLD = 0x9100 };
enum { PROTO_HOPOPTS = 0, PROTO_TCP = 6, PROTO_ROUTING = 43, PROTO_FRAGMENT = 44, PROTO_AH = 51, PROTO_DSTOPTS = 60,
       PROTO_MOBILITY = 135, PROTO_HIP = 139, PROTO_SHIM6 = 140 };
enum { OPT_END = 0, OPT_NOP = 1, OPT_MSS = 2, OPT_WSCALE = 3, OPT_SACK_OK = 4, OPT_SACK = 5, OPT_TS = 8 };
/* More extension headers than any real packet has: a longer chain is taken for malformed, so that work is bounded. */
enum { MAX_IPV6_EXTENSIONS = 8, MAX_VLAN_TAGS = 3 };

static uint16_t be16(const uint8_t *p) { return (uint16_t)(p[0] << 8 | p[1]); }
static uint32_t be32(const uint8_t *p) { return (uint32_t)be16(p) << 16 | be16(p + 2); }
static uint64_t mac48(const uint8_t *p) { return (uint64_t)be16(p) << 32 | be32(p + 2); }

/* Reads the options of `len` bytes, `have` of them captured. An option that contradicts its length ends the reading:
 * what follows it cannot be told apart from noise. */
static enum packet_reason parse_options(struct packet *p, const uint8_t *o, uint32_t len, uint32_t have)
{
	const bool syn = p->flags & PACKET_SYN;
	uint32_t i = 0;

	while (i < len) {
		uint32_t size;

		if (i >= have)
			return PACKET_CUT_OPTIONS;
		if (o[i] == OPT_END)
			break;
		if (o[i] == OPT_NOP) {
			i++;
			continue;
		}
		if (i + 1 >= len)
			return PACKET_BAD_OPTIONS;
		if (i + 1 >= have)
			return PACKET_CUT_OPTIONS;
		size = o[i + 1];
		if (size < 2 || size > len - i)
			return PACKET_BAD_OPTIONS;
		if (o[i] == OPT_SACK) {
			/* Only its length counts, which may be known although the blocks were cut off. */
			if (size < 10 || (size - 2) % 8)
				return PACKET_BAD_OPTIONS;
			p->sack_blocks = (uint8_t)((size - 2) / 8);
		}
		if (size > have - i)
			return PACKET_CUT_OPTIONS;
		switch (o[i]) {
		case OPT_MSS:
			if (size != 4)
				return PACKET_BAD_OPTIONS;
			if (syn) {
				p->mss_bytes = be16(o + i + 2);
				p->syn_options |= PACKET_SYN_MSS;
			}
			break;
		case OPT_WSCALE:
			if (size != 3)
				return PACKET_BAD_OPTIONS;
			if (syn) {
				p->wscale = o[i + 2];
				p->syn_options |= PACKET_SYN_WSCALE;
			}
			break;
		case OPT_SACK_OK:
			if (size != 2)
				return PACKET_BAD_OPTIONS;
			if (syn)
				p->syn_options |= PACKET_SYN_SACK;
			break;
		case OPT_TS:
			if (size != 10)
				return PACKET_BAD_OPTIONS;
			p->ts_val = be32(o + i + 2);
			p->ts_ecr = be32(o + i + 6);
			p->has_ts = true;
			break;
		default: /* fast open, MPTCP, MD5, …: skipped by their length */
			break;
		}
		i += size;
	}
	return PACKET_OK;
}

/* `len`: bytes from here to the end of the IP packet, as its header says; `have`: of these, captured. */
static enum packet_reason parse_tcp(struct packet *p, const uint8_t *t, uint32_t len, uint32_t have,
                                    enum packet_reason *used)
{
	uint32_t header;

	if (len < 20)
		return PACKET_BAD_HEADER;
	if (have < 20)
		return PACKET_CUT;
	header = (uint32_t)(t[12] >> 4) * 4;
	if (header < 20 || header > len)
		return PACKET_BAD_HEADER;
	p->src_port = be16(t);
	p->dst_port = be16(t + 2);
	p->seq = be32(t + 4);
	p->flags = t[13];
	p->ack = p->flags & PACKET_ACK ? be32(t + 8) : 0;
	p->window_raw = be16(t + 14);
	p->payload_bytes = len - header;
	*used = header > 20 ? parse_options(p, t + 20, header - 20, (have < header ? have : header) - 20) : PACKET_OK;
	p->options_unread = *used != PACKET_OK;
	return PACKET_OK;
}

static enum packet_reason parse_ipv4(struct packet *p, const uint8_t *ip, uint32_t have, uint32_t wire,
                                     enum packet_reason *used)
{
	uint32_t header, total;

	if (have < 20)
		return PACKET_CUT;
	header = (uint32_t)(ip[0] & 15) * 4;
	total = be16(ip + 2);
	if (total == 0) /* a segment larger than 64 KB, before it is cut up by offload */
		total = wire;
	if (header < 20 || total < header || total > wire)
		return PACKET_BAD_HEADER;
	if (ip[9] != PROTO_TCP)
		return PACKET_NOT_TCP;
	if (be16(ip + 6) & 0x3fff) /* more fragments, or an offset */
		return PACKET_FRAGMENT;
	if (have < header)
		return PACKET_CUT;
	p->ip_ecn = ip[1] & 3;
	p->addr_len = 4;
	memcpy(p->src, ip + 12, 4);
	memcpy(p->dst, ip + 16, 4);
	if (have > total)
		have = total;
	return parse_tcp(p, ip + header, total - header, have - header, used);
}

static enum packet_reason parse_ipv6(struct packet *p, const uint8_t *ip, uint32_t have, uint32_t wire,
                                     enum packet_reason *used)
{
	uint32_t total, at = 40;
	uint8_t next;
	int n;

	if (have < 40)
		return PACKET_CUT;
	total = 40 + (uint32_t)be16(ip + 4);
	if (total == 40) /* a jumbo payload, or offload */
		total = wire;
	if (total > wire)
		return PACKET_BAD_HEADER;
	if (have > total)
		have = total;
	next = ip[6];
	for (n = 0; next != PROTO_TCP; n++) {
		uint32_t size;

		if (n == MAX_IPV6_EXTENSIONS)
			return PACKET_BAD_HEADER;
		switch (next) {
		case PROTO_HOPOPTS: case PROTO_ROUTING: case PROTO_DSTOPTS: case PROTO_MOBILITY: case PROTO_HIP:
		case PROTO_SHIM6: case PROTO_AH: case PROTO_FRAGMENT:
			break;
		default:
			return PACKET_NOT_TCP;
		}
		if (have - at < 8)
			return PACKET_CUT;
		if (next == PROTO_FRAGMENT) {
			/* Offset or more fragments: not an atomic fragment (RFC 6946). */
			if (be16(ip + at + 2) & 0xfff9)
				return PACKET_FRAGMENT;
			size = 8;
		} else if (next == PROTO_AH) {
			size = (ip[at + 1] + 2u) * 4;
		} else {
			size = (ip[at + 1] + 1u) * 8;
		}
		if (size > total - at)
			return PACKET_BAD_HEADER;
		if (size > have - at)
			return PACKET_CUT;
		next = ip[at];
		at += size;
	}
	p->ip_ecn = ip[1] >> 4 & 3;
	p->addr_len = 16;
	memcpy(p->src, ip + 8, 16);
	memcpy(p->dst, ip + 24, 16);
	return parse_tcp(p, ip + at, total - at, have - at, used);
}

enum packet_reason packet_parse(struct packet *p, enum packet_link link, const uint8_t *frame, uint32_t caplen,
                                uint32_t wirelen, enum packet_reason *used)
{
	uint32_t at = 0;
	uint16_t type = 0;
	int tags;

	memset(p, 0, sizeof *p);
	*used = PACKET_OK;
	if (caplen > wirelen)
		wirelen = caplen;
	switch (link) {
	case PACKET_LINK_ETHERNET:
		if (caplen < 14)
			return PACKET_CUT;
		p->dst_mac = mac48(frame);
		p->src_mac = mac48(frame + 6);
		type = be16(frame + 12);
		at = 14;
		for (tags = 0; tags < MAX_VLAN_TAGS; tags++) {
			if (type != ETH_8021Q && type != ETH_8021AD && type != ETH_QINQ_OLD)
				break;
			if (caplen - at < 4)
				return PACKET_CUT;
			type = be16(frame + at + 2);
			at += 4;
		}
		break;
	case PACKET_LINK_SLL:
		if (caplen < 16)
			return PACKET_CUT;
		if (be16(frame + 4) == 6)
			p->src_mac = mac48(frame + 6);
		type = be16(frame + 14);
		at = 16;
		break;
	case PACKET_LINK_SLL2:
		if (caplen < 20)
			return PACKET_CUT;
		type = be16(frame);
		if (frame[11] == 6)
			p->src_mac = mac48(frame + 12);
		at = 20;
		break;
	case PACKET_LINK_RAW_IP:
		if (caplen < 1)
			return PACKET_CUT;
		type = frame[0] >> 4 == 4 ? ETH_IPV4 : frame[0] >> 4 == 6 ? ETH_IPV6 : 0;
		break;
	}
	if (type != ETH_IPV4 && type != ETH_IPV6)
		return PACKET_NOT_IP;
	if (caplen == at)
		return PACKET_CUT;
	if (frame[at] >> 4 != (type == ETH_IPV4 ? 4 : 6))
		return PACKET_BAD_HEADER;
	return type == ETH_IPV4 ? parse_ipv4(p, frame + at, caplen - at, wirelen - at, used)
	                        : parse_ipv6(p, frame + at, caplen - at, wirelen - at, used);
}

/* RFC 1918, RFC 6598 (CGN), RFC 3927, RFC 4193, RFC 4291 (link-local). */
static bool is_private(const uint8_t *a, unsigned len)
{
	if (len == 16)
		return (a[0] & 0xfe) == 0xfc || (a[0] == 0xfe && (a[1] & 0xc0) == 0x80);
	return a[0] == 10 || (a[0] == 172 && (a[1] & 0xf0) == 16) || (a[0] == 192 && a[1] == 168) ||
	       (a[0] == 100 && (a[1] & 0xc0) == 64) || (a[0] == 169 && a[1] == 254);
}

unsigned packet_guess_direction(const struct packet *p)
{
	const bool src = is_private(p->src, p->addr_len), dst = is_private(p->dst, p->addr_len);

	if (p->flags & PACKET_SYN)
		return !(p->flags & PACKET_ACK);
	return src != dst ? src : p->src_port >= p->dst_port;
}

const char *packet_reason_name(enum packet_reason reason)
{
	static const char *const names[PACKET_N_REASONS] = {"ok", "not_ip", "not_tcp", "fragment", "cut", "bad_header",
	                                                    "bad_options", "cut_options"};

	return (unsigned)reason < PACKET_N_REASONS ? names[reason] : "?";
}
