/* test_packet.c: frames as they come, and as they should not. */
#include "check.h"
#include "frame.h"
#include "packet/packet.h"

static enum packet_reason used;
static struct packet p;

/* Parses an exact copy on the heap, so that reading past the captured bytes is seen by AddressSanitizer. */
static enum packet_reason parse(const struct frame *f, uint32_t caplen, enum packet_link link)
{
	uint8_t *copy = malloc(caplen ? caplen : 1);
	enum packet_reason r;

	memcpy(copy, f->bytes, caplen);
	r = packet_parse(&p, link, copy, caplen, f->len, &used);
	free(copy);
	return r;
}

static const uint8_t syn_options[] = {2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 1, 2, 0, 0, 3, 4, 1, 3, 3, 7};

static void test_good(void)
{
	struct frame f = frame_simple(77, PACKET_SYN, syn_options, sizeof syn_options, 0);
	static const uint8_t sack[] = {1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 1, 5, 18,
	                               0, 0, 0, 1,  0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4};
	unsigned cut;

	test("a SYN with its options");
	CHECK_EQ(parse(&f, f.len, PACKET_LINK_ETHERNET), PACKET_OK);
	CHECK_EQ(used, PACKET_OK);
	CHECK(p.src_mac == 0x020000000101 && p.dst_mac == 0x0200000001ff);
	CHECK(p.addr_len == 4 && p.src[0] == 10 && p.src[3] == 1 && p.dst[0] == 192 && p.dst[3] == 7);
	CHECK(p.src_port == 5000 && p.dst_port == 443 && p.seq == 77 && p.ack == 0 && p.window_raw == 1234 &&
	      p.flags == PACKET_SYN);
	CHECK(p.syn_options == 7 && p.wscale == 7 && p.mss_bytes == 1460 && p.has_ts && p.ts_val == 0x102 &&
	      p.ts_ecr == 0x304);
	CHECK(p.ip_ecn == 2 && p.payload_bytes == 0);

	test("payload is what the IP length says, not Ethernet's padding nor what was captured");
	f = frame_simple(1, PACKET_ACK, NULL, 0, 1);
	f.len = 60;
	CHECK_EQ(parse(&f, 60, PACKET_LINK_ETHERNET), PACKET_OK);
	CHECK_EQ(p.payload_bytes, 1);
	CHECK_EQ(p.ack, 99);
	f = frame_simple(1, PACKET_ACK, NULL, 0, 1400);
	CHECK_EQ(parse(&f, 96, PACKET_LINK_ETHERNET), PACKET_OK);
	CHECK_EQ(p.payload_bytes, 1400);

	test("SACK blocks are counted");
	f = frame_simple(1, PACKET_ACK, sack, sizeof sack, 0);
	CHECK_EQ(parse(&f, f.len, PACKET_LINK_ETHERNET), PACKET_OK);
	CHECK(p.sack_blocks == 2 && p.has_ts && used == PACKET_OK);
	test("also when the snap length cut them off, which is counted");
	CHECK_EQ(parse(&f, 14 + 20 + 20 + 20, PACKET_LINK_ETHERNET), PACKET_OK);
	CHECK(p.sack_blocks == 2 && used == PACKET_CUT_OPTIONS);

	test("VLAN and QinQ tags");
	for (cut = 1; cut <= 3; cut++) {
		struct frame v = {.len = 0};
		unsigned i;

		frame_ethernet(&v, 1, 2, cut == 1 ? 0x8100 : 0x88a8);
		for (i = cut; i; i--) {
			frame_u16(&v, 100 + i);
			frame_u16(&v, i == 1 ? 0x0800 : 0x8100);
		}
		frame_ipv4(&v, 6, 20, 0);
		frame_tcp(&v, 5, 6, PACKET_ACK, NULL, 0, 0);
		CHECK_EQ(parse(&v, v.len, PACKET_LINK_ETHERNET), PACKET_OK);
		CHECK_EQ(p.seq, 5);
	}

	test("raw IP and Linux cooked captures");
	f.len = 0;
	frame_ipv4(&f, 6, 20, 0);
	frame_tcp(&f, 8, 6, PACKET_ACK, NULL, 0, 0);
	CHECK(!parse(&f, f.len, PACKET_LINK_RAW_IP) && p.seq == 8 && p.src_mac == 0);
	f.len = 0;
	frame_u16(&f, 4); frame_u16(&f, 1); frame_u16(&f, 6);
	frame_bytes(&f, "\2\0\0\0\1\11\0\0", 8);
	frame_u16(&f, 0x0800);
	frame_ipv4(&f, 6, 20, 0);
	frame_tcp(&f, 9, 6, PACKET_ACK, NULL, 0, 0);
	CHECK(!parse(&f, f.len, PACKET_LINK_SLL) && p.seq == 9 && p.src_mac == 0x020000000109);
	f.len = 0;
	frame_u16(&f, 0x86dd); frame_u16(&f, 0); frame_u32(&f, 2); frame_u16(&f, 1); frame_u8(&f, 4); frame_u8(&f, 6);
	frame_bytes(&f, "\2\0\0\0\1\12\0\0", 8);
	frame_ipv6(&f, 6, 20);
	frame_tcp(&f, 10, 6, PACKET_ACK, NULL, 0, 0);
	CHECK(!parse(&f, f.len, PACKET_LINK_SLL2) && p.seq == 10 && p.src_mac == 0x02000000010a && p.addr_len == 16);

	test("a segment that offload made larger than an IP length can say");
	f = frame_simple(1, PACKET_ACK, NULL, 0, 3000);
	f.bytes[16] = f.bytes[17] = 0;
	CHECK(!parse(&f, 96, PACKET_LINK_ETHERNET) && p.payload_bytes == 3000);
}

static void test_ipv6(void)
{
	struct frame f = {.len = 0};
	unsigned i;

	test("IPv6 with extension headers");
	frame_ethernet(&f, 1, 2, 0x86dd);
	frame_ipv6(&f, 0, 8 + 16 + 8 + 12 + 20 + 5);
	frame_u8(&f, 60); frame_u8(&f, 0); frame_bytes(&f, "\1\4\0\0\0\0", 6); /* hop by hop */
	/* Destination options. */
	frame_u8(&f, 44); frame_u8(&f, 1); frame_bytes(&f, "\1\14\0\0\0\0\0\0\0\0\0\0\0\0", 14);
	frame_u8(&f, 51); frame_u8(&f, 0); frame_bytes(&f, "\0\0\0\0\0\1", 6); /* atomic fragment */
	/* Authentication: (1 + 2) * 4 bytes. */
	frame_u8(&f, 6); frame_u8(&f, 1); frame_bytes(&f, "\0\0\0\0\0\1\0\0\0\1", 10);
	frame_tcp(&f, 4711, 1, PACKET_ACK | PACKET_PSH, NULL, 0, 5);
	CHECK_EQ(parse(&f, f.len, PACKET_LINK_ETHERNET), PACKET_OK);
	CHECK(p.addr_len == 16 && p.src[4] == 1 && p.dst[4] == 2 && p.seq == 4711 && p.payload_bytes == 5 &&
	      p.ip_ecn == 3);
	test("cut anywhere in them it is reported as cut");
	for (i = 15; i < 14 + 40 + 44 + 20; i++)
		CHECK_EQ(parse(&f, i, PACKET_LINK_ETHERNET), PACKET_CUT);
	test("fragments are skipped");
	f.len = 0;
	frame_ethernet(&f, 1, 2, 0x86dd);
	frame_ipv6(&f, 44, 28);
	frame_u8(&f, 6); frame_bytes(&f, "\0\0\1\0\0\0\1", 7);
	frame_tcp(&f, 1, 1, 0, NULL, 0, 0);
	CHECK_EQ(parse(&f, f.len, PACKET_LINK_ETHERNET), PACKET_FRAGMENT);
	f.len = 0;
	frame_ethernet(&f, 1, 2, 0x0800);
	frame_ipv4(&f, 6, 20, 0x2000); /* the first of several */
	frame_tcp(&f, 1, 1, 0, NULL, 0, 0);
	CHECK_EQ(parse(&f, f.len, PACKET_LINK_ETHERNET), PACKET_FRAGMENT);
	f.len = 0;
	frame_ethernet(&f, 1, 2, 0x0800);
	frame_ipv4(&f, 6, 20, 0x00b9); /* a later one */
	frame_tcp(&f, 1, 1, 0, NULL, 0, 0);
	CHECK_EQ(parse(&f, f.len, PACKET_LINK_ETHERNET), PACKET_FRAGMENT);
	test("an endless chain of extension headers is refused");
	f.len = 0;
	frame_ethernet(&f, 1, 2, 0x86dd);
	frame_ipv6(&f, 0, 8 * 50);
	for (i = 0; i < 50; i++)
		frame_bytes(&f, "\0\0\1\4\0\0\0\0", 8);
	CHECK_EQ(parse(&f, f.len, PACKET_LINK_ETHERNET), PACKET_BAD_HEADER);
}

static void test_bad(void)
{
	struct frame f = frame_simple(77, PACKET_SYN, syn_options, sizeof syn_options, 100), g;
	static const struct {
		uint8_t bytes[8];
		enum packet_reason want;
	} options[] = {
		{{2, 0, 0, 0, 1, 1, 1, 1}, PACKET_BAD_OPTIONS}, /* length 0 would never end */
		{{2, 1, 0, 0, 1, 1, 1, 1}, PACKET_BAD_OPTIONS},
		{{2, 3, 0, 1, 1, 1, 1, 1}, PACKET_BAD_OPTIONS}, /* an MSS of another length */
		{{3, 4, 0, 0, 1, 1, 1, 1}, PACKET_BAD_OPTIONS},
		{{8, 10, 0, 0, 1, 1, 1, 1}, PACKET_BAD_OPTIONS}, /* runs past the header */
		{{5, 7, 0, 0, 1, 1, 1, 1}, PACKET_BAD_OPTIONS}, /* half a SACK block */
		{{1, 1, 1, 1, 1, 1, 1, 2}, PACKET_BAD_OPTIONS}, /* a kind without a length */
		{{254, 255, 0, 0, 0, 0, 0, 0}, PACKET_BAD_OPTIONS},
		{{0, 255, 255, 255, 255, 255, 255, 255}, PACKET_OK}, /* what follows the end does not count */
		{{254, 6, 0, 0, 0, 0, 3, 255}, PACKET_BAD_OPTIONS},
		{{34, 6, 9, 9, 9, 9, 1, 0}, PACKET_OK}, /* an unknown kind is skipped */
	};
	unsigned i;
	uint64_t random = 5;

	test("malformed options end the options, not the packet");
	for (i = 0; i < sizeof options / sizeof *options; i++) {
		g = frame_simple(9, PACKET_SYN, options[i].bytes, 8, 10);
		CHECK_EQ(parse(&g, g.len, PACKET_LINK_ETHERNET), PACKET_OK);
		CHECK_EQ(used, options[i].want);
		CHECK(p.seq == 9 && p.payload_bytes == 10 && p.options_unread == (options[i].want != PACKET_OK));
	}
	test("options that only a SYN may carry are ignored elsewhere");
	g = frame_simple(9, PACKET_ACK, syn_options, sizeof syn_options, 10);
	CHECK(!parse(&g, g.len, PACKET_LINK_ETHERNET) && !p.syn_options && !p.mss_bytes && !p.wscale && p.has_ts);
	test("a frame cut at any length is parsed or reported as cut");
	for (i = 0; i <= f.len; i++) {
		const enum packet_reason r = parse(&f, i, PACKET_LINK_ETHERNET);

		CHECK_EQ(r, i < 54 ? PACKET_CUT : PACKET_OK);
		CHECK_EQ(used, i >= 54 && i < 74 ? PACKET_CUT_OPTIONS : PACKET_OK);
		CHECK(r != PACKET_OK || p.options_unread == (i < 74));
		CHECK(r != PACKET_OK || p.options_unread || p.wscale == 7);
	}
	test("lengths that contradict each other");
	g = f;
	g.bytes[14] = 0x44; /* IP header of 16 bytes */
	CHECK_EQ(parse(&g, g.len, PACKET_LINK_ETHERNET), PACKET_BAD_HEADER);
	g = f;
	g.bytes[17] = 20; /* IP length without room for TCP */
	g.bytes[16] = 0;
	CHECK_EQ(parse(&g, g.len, PACKET_LINK_ETHERNET), PACKET_BAD_HEADER);
	g = f;
	g.bytes[16] = 0x7f; /* IP length beyond the frame */
	CHECK_EQ(parse(&g, g.len, PACKET_LINK_ETHERNET), PACKET_BAD_HEADER);
	g = f;
	g.bytes[46] = 0x40; /* TCP header of 16 bytes */
	CHECK_EQ(parse(&g, g.len, PACKET_LINK_ETHERNET), PACKET_BAD_HEADER);
	g = f;
	g.bytes[14] = 0x65; /* version 6 in an IPv4 frame */
	CHECK_EQ(parse(&g, g.len, PACKET_LINK_ETHERNET), PACKET_BAD_HEADER);
	test("other protocols");
	g = f;
	g.bytes[23] = 17;
	CHECK_EQ(parse(&g, g.len, PACKET_LINK_ETHERNET), PACKET_NOT_TCP);
	g = f;
	g.bytes[13] = 6; /* ARP */
	CHECK_EQ(parse(&g, g.len, PACKET_LINK_ETHERNET), PACKET_NOT_IP);
	test("random damage is survived");
	for (i = 0; i < 200000; i++) {
		g = f;
		g.bytes[12 + check_random(&random) % 62] = (uint8_t)check_random(&random);
		g.bytes[12 + check_random(&random) % 62] = (uint8_t)check_random(&random);
		CHECK(parse(&g, (uint32_t)(check_random(&random) % 97), (enum packet_link)(check_random(&random) % 4)) <
		      PACKET_N_REASONS);
	}
	test("direction is guessed from who opens, who is private, and which port is high");
	f = frame_simple(1, PACKET_SYN, NULL, 0, 0);
	CHECK(!parse(&f, f.len, PACKET_LINK_ETHERNET) && packet_guess_direction(&p) == 1);
	f = frame_simple(1, PACKET_SYN | PACKET_ACK, NULL, 0, 0);
	CHECK(!parse(&f, f.len, PACKET_LINK_ETHERNET) && packet_guess_direction(&p) == 0);
	f = frame_simple(1, PACKET_ACK, NULL, 0, 0);
	CHECK(!parse(&f, f.len, PACKET_LINK_ETHERNET) && packet_guess_direction(&p) == 1);
	p.src[0] = 8;
	CHECK_EQ(packet_guess_direction(&p), 1);
	p.src_port = 80;
	CHECK_EQ(packet_guess_direction(&p), 0);
}

int main(void)
{
	test_good();
	test_ipv6();
	test_bad();
	return done();
}
