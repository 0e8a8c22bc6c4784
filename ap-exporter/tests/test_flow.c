/* test_flow.c: the flow tracker on hand-made packets. Down is server to client. */
#include "check.h"
#include "packet/flow_table.h"

#include <errno.h>

enum { DOWN = 0, UP = 1, LEN = 1000 };
static struct flow_table t;
static uint16_t f;
static uint64_t now_us;

static void begin(const char *name)
{
	test(name);
	if (t.flows)
		flow_table_free(&t);
	CHECK_EQ(flow_table_new(&t, 16), 0);
	now_us = UINT64_C(1800000000000000);
	f = FLOW_NONE;
}

static struct packet make(unsigned direction, uint32_t seq, uint32_t ack, uint32_t len, unsigned flags)
{
	struct packet p = {
		.t_us = now_us, .direction = (uint8_t)direction, .addr_len = 4, .flags = (uint8_t)flags, .seq = seq,
		.ack = flags & PACKET_ACK ? ack : 0, .payload_bytes = len, .window_raw = 100, .src_port = 443,
		.dst_port = 5000,
	};

	p.src[0] = 192;
	p.dst[0] = 10;
	if (direction == UP) {
		p.src[0] = 10;
		p.dst[0] = 192;
		p.src_port = 5000;
		p.dst_port = 443;
	}
	return p;
}

static struct flow *give(struct packet p)
{
	f = flow_find(&t, &p);
	if (f == FLOW_NONE)
		f = flow_add(&t, &p);
	flow_packet(&t, f, &p);
	return &t.flows[f];
}

static struct flow *data(uint32_t seq, uint32_t len) { return give(make(DOWN, seq, 1, len, PACKET_ACK)); }
static struct flow *ack(uint32_t a) { return give(make(UP, 1, a, 0, PACKET_ACK)); }

/* What a SYN says of its sender's scale: NONE is not offered, CUT is that its options were not read whole. */
enum { NONE = -1, CUT = -2 };

static void offer(struct packet *p, int scale)
{
	p->syn_options = scale >= 0 ? PACKET_SYN_WSCALE : 0;
	p->wscale = scale >= 0 ? (uint8_t)scale : 0;
	p->options_unread = scale == CUT;
}

/* SYN with scale `client`, SYN-ACK with scale `server`; ISNs 0 (up) and isn − 1 (down). */
static void handshake(int client, int server, uint32_t isn)
{
	struct packet p = make(UP, 0, 0, 0, PACKET_SYN);

	offer(&p, client);
	give(p);
	now_us += 20000; /* server's side of the AP */
	p = make(DOWN, isn - 1, 1, 0, PACKET_SYN | PACKET_ACK);
	offer(&p, server);
	give(p);
	now_us += 3000; /* client's side */
	give(make(UP, 1, isn, 0, PACKET_ACK));
}

static void test_loss(void)
{
	const uint32_t start[] = {1000, UINT32_MAX - 4500, UINT32_C(0x7fffff00)};
	unsigned i, k;
	struct flow *x;

	for (k = 0; k < 3; k++) {
		const uint32_t s = start[k];

		begin(k == 0   ? "payload seen again is a retransmission"
		      : k == 1 ? "also where sequence numbers wrap"
		               : "and where they change sign");
		handshake(7, 7, s);
		for (i = 0; i < 10; i++)
			x = data(s + i * LEN, LEN);
		CHECK(x->dir[DOWN].sent_bytes == 10 * LEN && x->dir[DOWN].sent_pkts == 10);
		CHECK(x->dir[DOWN].retrans_pkts == 0 && flow_unacked(&x->dir[DOWN]) == 10 * LEN);
		ack(s + 2 * LEN);
		for (i = 0; i < 3; i++)
			ack(s + 2 * LEN);
		CHECK_EQ(x->dir[DOWN].dup_acks, 3);
		CHECK_EQ(flow_unacked(&x->dir[DOWN]), 8 * LEN);
		data(s + 2 * LEN, LEN);
		CHECK(x->dir[DOWN].retrans_pkts == 1 && x->dir[DOWN].retrans_bytes == LEN);
		ack(s + 10 * LEN);
		CHECK(flow_unacked(&x->dir[DOWN]) == 0 && x->dir[DOWN].delivered_bytes == 10 * LEN);
		/* Half old, half new. */
		data(s + 9 * LEN + 500, LEN);
		CHECK(x->dir[DOWN].retrans_pkts == 2 && x->dir[DOWN].retrans_bytes == LEN + 500);
		CHECK_EQ(flow_unacked(&x->dir[DOWN]), 500);
	}

	begin("a hole filled for the first time is no retransmission, the second time it is");
	handshake(7, 7, 1000);
	data(1000, LEN);
	x = data(3000, LEN);
	data(2000, LEN);
	CHECK(x->dir[DOWN].retrans_pkts == 0 && x->dir[DOWN].n_holes == 0);
	data(2000, LEN);
	CHECK(x->dir[DOWN].retrans_pkts == 1 && x->dir[DOWN].retrans_bytes == LEN);

	begin("a hole is filled piece by piece, in any order, across holes");
	handshake(7, 7, 1000);
	data(1000, 100);
	x = data(2000, 100); /* hole 1100…2000 */
	data(3000, 100); /* hole 2100…3000 */
	data(1500, 100); /* splits the first */
	CHECK_EQ(x->dir[DOWN].n_holes, 3);
	CHECK_EQ(x->dir[DOWN].retrans_bytes, 0);
	data(1400, 300); /* 100 new, 100 again, 100 new */
	CHECK_EQ(x->dir[DOWN].retrans_bytes, 100);
	data(1100, 1900); /* all that is left: 300 + 300 + 900 new, the rest again */
	CHECK_EQ(x->dir[DOWN].n_holes, 0);
	CHECK_EQ(x->dir[DOWN].retrans_bytes, 100 + 1900 - 300 - 300 - 900);
	CHECK_EQ(x->dir[DOWN].retrans_pkts, 2);

	begin("holes that were acknowledged are forgotten: what fills them later was delivered before");
	handshake(7, 7, 1000);
	data(1000, LEN);
	x = data(3000, LEN);
	ack(4000);
	CHECK_EQ(x->dir[DOWN].n_holes, 0);
	data(2000, LEN);
	CHECK_EQ(x->dir[DOWN].retrans_bytes, LEN);

	begin("more holes than are remembered: bounded, counted, and nothing else goes wrong");
	handshake(7, 7, 1000);
	for (i = 0; i < 50; i++)
		x = data(1000 + i * 2 * LEN, LEN);
	CHECK(x->dir[DOWN].n_holes == FLOW_HOLES && t.holes_forgotten == 49 - FLOW_HOLES);
	CHECK_EQ(x->dir[DOWN].retrans_pkts, 0);
	data(1000 + 97 * LEN, LEN);
	CHECK_EQ(x->dir[DOWN].retrans_pkts, 0);

	begin("a keep-alive is no retransmission");
	handshake(7, 7, 1000);
	x = data(1000, LEN);
	ack(2000);
	data(1999, 1);
	CHECK(x->dir[DOWN].retrans_pkts == 0 && x->dir[DOWN].sent_pkts == 1);

	begin("a flow that is met in its middle: what lies before is not known, and not held against it");
	x = data(50000, LEN);
	data(48000, LEN);
	CHECK(x->dir[DOWN].retrans_pkts == 0);
	data(48000, LEN);
	CHECK(x->dir[DOWN].retrans_pkts == 1);
	CHECK(!flow_has_rwnd(x, DOWN));

	begin("an ACK beyond what was seen: the capture missed packets, the bytes count as delivered");
	handshake(7, 7, 1000);
	x = data(1000, LEN);
	ack(9000);
	CHECK(flow_unacked(&x->dir[DOWN]) == 0 && x->dir[DOWN].delivered_bytes == 8000);
	data(9000, LEN);
	CHECK(x->dir[DOWN].retrans_pkts == 0 && x->dir[DOWN].n_holes == 0);
}

static void test_window(void)
{
	struct flow *x;
	struct packet p;

	begin("the real window is scaled by what the SYN of its sender offered");
	handshake(7, 3, 1000);
	x = ack(1000);
	CHECK(flow_has_rwnd(x, DOWN) && x->dir[DOWN].rwnd_bytes == 100 << 7);
	x = data(1000, LEN);
	CHECK(flow_has_rwnd(x, UP) && x->dir[UP].rwnd_bytes == 100 << 3);
	begin("scaling is off unless both offer it");
	handshake(7, NONE, 1000);
	CHECK(flow_has_rwnd(&t.flows[f], DOWN) && t.flows[f].dir[DOWN].rwnd_bytes == 100);
	begin("a SYN whose options were cut says nothing of scales");
	handshake(CUT, 3, 1000);
	CHECK(!flow_has_rwnd(ack(1000), DOWN));
	x = data(1000, LEN);
	CHECK(flow_has_rwnd(x, UP) && x->dir[UP].rwnd_bytes == 100 << 3);
	begin("nor a SYN-ACK, which leaves both unknown");
	handshake(7, CUT, 1000);
	CHECK(!flow_has_rwnd(ack(1000), DOWN));
	CHECK(!flow_has_rwnd(data(1000, LEN), UP));
	begin("a whole SYN-ACK without an offer turns scaling off, whatever its SYN said");
	handshake(CUT, NONE, 1000);
	x = ack(1000);
	CHECK(flow_has_rwnd(x, DOWN) && x->dir[DOWN].rwnd_bytes == 100);
	begin("a window in a SYN is not scaled");
	p = make(UP, 0, 0, 0, PACKET_SYN);
	p.syn_options = PACKET_SYN_WSCALE;
	p.wscale = 7;
	give(p);
	p = make(DOWN, 999, 1, 0, PACKET_SYN | PACKET_ACK);
	p.syn_options = PACKET_SYN_WSCALE;
	p.wscale = 3;
	x = give(p);
	CHECK(flow_has_rwnd(x, UP) && x->dir[UP].rwnd_bytes == 100);
	begin("when only the SYN-ACK was seen, only its sender's scale is known");
	p.syn_options = PACKET_SYN_WSCALE;
	p.wscale = 3;
	give(p);
	x = ack(1000);
	CHECK(!flow_has_rwnd(x, DOWN));
	x = data(1000, LEN);
	CHECK(flow_has_rwnd(x, UP) && x->dir[UP].rwnd_bytes == 100 << 3);
	begin("a shift above 14 is taken for 14");
	handshake(200, 3, 1000);
	CHECK(t.flows[f].dir[DOWN].rwnd_bytes == 100 << 14);
	begin("an old ACK changes nothing; a changed window is no duplicate ACK");
	handshake(0, 0, 1000);
	data(1000, LEN);
	data(2000, LEN);
	ack(2000);
	p = make(UP, 1, 1500, 0, PACKET_ACK);
	p.window_raw = 7;
	x = give(p);
	CHECK(x->dir[DOWN].rwnd_bytes == 100 && x->dir[DOWN].dup_acks == 0);
	p = make(UP, 1, 2000, 0, PACKET_ACK);
	p.window_raw = 90;
	give(p);
	CHECK(x->dir[DOWN].rwnd_bytes == 90 && x->dir[DOWN].dup_acks == 0);
}

static void test_rtt(void)
{
	struct flow *x;
	struct packet p;
	unsigned i;

	begin("the handshake gives both sides' round trips");
	handshake(7, 7, 1000);
	CHECK(t.flows[f].dir[UP].srtt_us == 20000 && t.flows[f].dir[DOWN].srtt_us == 3000);
	begin("data and its ACK give samples, smoothed by an eighth");
	handshake(7, 7, 1000);
	data(1000, LEN);
	now_us += 11000;
	x = ack(2000);
	CHECK_EQ(x->dir[DOWN].srtt_us, 4000);
	begin("after a retransmission the ACK is not trusted");
	handshake(7, 7, 1000);
	data(1000, LEN);
	now_us += 500000;
	data(1000, LEN);
	now_us += 4000;
	x = ack(2000);
	CHECK_EQ(x->dir[DOWN].srtt_us, 3000);
	begin("without data in a direction, timestamps measure it");
	now_us += 5000000;
	for (i = 0; i < 10; i++) {
		p = make(DOWN, 1000 + i * LEN, 1, LEN, PACKET_ACK);
		p.has_ts = true;
		p.ts_val = 1000 + i;
		p.ts_ecr = 500 + i;
		give(p);
		now_us += 2000;
		p = make(UP, 1, 2000 + i * LEN, 0, PACKET_ACK);
		p.has_ts = true;
		p.ts_val = 501 + i;
		p.ts_ecr = 1000 + i;
		x = give(p);
		now_us += 30000;
	}
	CHECK_EQ(x->dir[DOWN].srtt_us, 2000);
	CHECK_EQ(x->dir[UP].srtt_us, 30000);
	begin("a timestamp that does not change is timed once");
	for (i = 0; i < 10; i++) {
		p = make(UP, 1, 2000, 0, PACKET_ACK);
		p.has_ts = true;
		p.ts_val = 7;
		p.ts_ecr = 1;
		give(p);
		now_us += 10000;
		p = make(DOWN, 2000 + i, 1, 1, PACKET_ACK);
		p.has_ts = true;
		p.ts_val = 1;
		p.ts_ecr = 7;
		x = give(p);
		now_us += 100000;
	}
	CHECK_EQ(x->dir[UP].srtt_us, 10000);
}

static void test_life(void)
{
	struct flow *x;
	struct packet p;
	uint32_t i;

	begin("the delivery rate is over the last round trip, or the interval if that is longer");
	handshake(7, 7, 1000);
	x = &t.flows[f];
	CHECK_EQ(flow_delivery_kbps(x, DOWN, 100000), 0);
	data(1000, 50000);
	ack(51000);
	CHECK_EQ(flow_delivery_kbps(x, DOWN, 100000), 4000);
	CHECK_EQ(flow_delivery_kbps(x, DOWN, 100000), 0);
	x->dir[DOWN].srtt_us = 250000;
	data(51000, 15000);
	ack(66000);
	CHECK_EQ(flow_delivery_kbps(x, DOWN, 100000), (50000 + 15000) * 8 / 300);

	begin("FIN both ways, or RST, ends a flow");
	handshake(7, 7, 1000);
	give(make(DOWN, 1000, 1, 100, PACKET_ACK | PACKET_FIN));
	x = give(make(UP, 1, 1101, 0, PACKET_ACK | PACKET_FIN));
	CHECK(x->closing && flow_unacked(&x->dir[DOWN]) == 0 && x->dir[DOWN].delivered_bytes == 100);
	begin("RST");
	handshake(7, 7, 1000);
	x = give(make(DOWN, 1000, 0, 0, PACKET_RST));
	CHECK(x->closing);
	CHECK(x->dir[DOWN].sent_pkts == 0);

	begin("a new SYN on the same ports: sequence space starts over, totals go on");
	handshake(7, 7, 1000);
	data(1000, LEN);
	handshake(2, 2, UINT32_C(3000000000));
	CHECK(!t.flows[f].closing);
	p = make(UP, 77777, 0, 0, PACKET_SYN);
	p.syn_options = PACKET_SYN_WSCALE;
	p.wscale = 5;
	give(p);
	p = make(DOWN, UINT32_C(2999999999), 77778, 0, PACKET_SYN | PACKET_ACK);
	p.syn_options = PACKET_SYN_WSCALE;
	give(p);
	give(make(UP, 77778, UINT32_C(3000000000), 0, PACKET_ACK));
	x = data(UINT32_C(3000000000), LEN);
	CHECK(x->dir[DOWN].retrans_pkts == 0 && x->dir[DOWN].sent_pkts == 2 && x->dir[DOWN].delivered_bytes <= LEN);
	CHECK_EQ(x->dir[DOWN].rwnd_bytes, 100 << 5);

	begin("a SYN that is sent again restarts nothing");
	handshake(7, 7, 1000);
	data(1000, LEN);
	x = give(make(UP, 0, 0, 0, PACKET_SYN));
	CHECK_EQ(flow_unacked(&x->dir[DOWN]), LEN);

	begin("a jump in sequence numbers larger than any window is a fresh start");
	x = data(1000, LEN);
	data(UINT32_C(2000001000), LEN);
	CHECK(t.resyncs == 1 && x->dir[DOWN].n_holes == 0 && x->dir[DOWN].retrans_pkts == 0);

	begin("ten gigabytes of one flow, many times around the sequence space");
	handshake(7, 7, 1000);
	for (i = 0; i < 200000; i++) {
		x = data(1000 + i * 50000, 50000);
		if (i % 4 == 3)
			ack(1000 + (i + 1) * 50000);
	}
	CHECK(x->dir[DOWN].sent_bytes == UINT64_C(10000000000) && x->dir[DOWN].retrans_pkts == 0);
	CHECK_EQ(x->dir[DOWN].delivered_bytes, UINT64_C(10000000000));

	begin("the table: flows are found by either direction, removed, and used again");
	for (i = 0; i < 16; i++) {
		p = make(UP, 1, 0, 1, PACKET_ACK);
		p.src_port = (uint16_t)(6000 + i);
		CHECK_EQ(flow_find(&t, &p), FLOW_NONE);
		CHECK(flow_add(&t, &p) != FLOW_NONE);
	}
	CHECK(flow_table_full(&t) && flow_add(&t, &p) == FLOW_NONE);
	p = make(DOWN, 1, 0, 1, PACKET_ACK);
	p.dst_port = 6003;
	f = flow_find(&t, &p);
	CHECK(f != FLOW_NONE && t.flows[f].client_port == 6003 && t.oldest != t.newest);
	flow_packet(&t, f, &p);
	CHECK_EQ(t.newest, f);
	while (t.used) {
		const uint16_t oldest = t.oldest;

		flow_remove(&t, oldest);
	}
	CHECK(t.oldest == FLOW_NONE && t.newest == FLOW_NONE && flow_find(&t, &p) == FLOW_NONE);
	CHECK(flow_add(&t, &p) != FLOW_NONE && flow_find(&t, &p) != FLOW_NONE);
	flow_table_free(&t);
	CHECK_EQ(flow_table_new(&t, 0), -EINVAL);
	CHECK_EQ(flow_table_new(&t, FLOW_MAX + 1), -EINVAL);
}

/* A sender, a lossy path behind the AP and a receiver, simulated; the tracker must count exactly the losses. */
static void test_property(void)
{
	uint64_t random = 99;
	unsigned round;

	begin("with random loss, reordering and SACK-less recovery the count of repeated bytes is exact");
	for (round = 0; round < 300; round++) {
		uint32_t isn = (uint32_t)check_random(&random), next = 0, i;
		static bool seen[4000];
		uint64_t repeated = 0;
		struct flow *x;

		flow_table_free(&t);
		flow_table_new(&t, 4);
		memset(seen, 0, sizeof seen);
		handshake(7, 7, isn);
		x = &t.flows[f];
		for (i = 0; i < 400; i++) {
			uint32_t at = next, len = 1 + (uint32_t)check_random(&random) % 20, b;

			if (check_random(&random) % 4 == 0 && next > 40)
				at = next - 1 - (uint32_t)check_random(&random) % 40; /* again, or late */
			else if (check_random(&random) % 8 == 0 && x->dir[DOWN].n_holes < FLOW_HOLES / 2)
				at = next + (uint32_t)check_random(&random) % 20; /* leaves a hole */
			if (at + len > sizeof seen || (at + 1 == next && len == 1))
				continue;
			/* Splitting holes beyond what is remembered would make the count inexact by design. */
			if (x->dir[DOWN].n_holes >= FLOW_HOLES - 1 && at < next)
				continue;
			for (b = at; b < at + len; b++) {
				repeated += seen[b];
				seen[b] = true;
			}
			data(isn + at, len);
			next = at + len > next ? at + len : next;
		}
		CHECK_EQ(x->dir[DOWN].retrans_bytes, repeated);
		CHECK_EQ(t.holes_forgotten, 0);
	}
	flow_table_free(&t);
}

/* The hash that everybody can compute: what a client would choose its ports by, if the table's had no key. */
static unsigned without_key(const struct packet *p)
{
	uint32_t h = ((uint32_t)p->src_port << 16 | p->dst_port) * 0x85ebca6bu, w;
	unsigned i;

	for (i = 0; i < 2; i++) {
		memcpy(&w, i ? p->dst : p->src, 4);
		h = (h ^ w) * 0x9e3779b1u;
		h ^= h >> 15;
	}
	return h & 1023;
}

static unsigned longest_chain(void)
{
	unsigned b, longest = 0, n;
	uint16_t i;

	for (b = 0; b <= t.bucket_mask; b++) {
		for (n = 0, i = t.buckets[b]; i != FLOW_NONE; i = t.flows[i].chain)
			n++;
		longest = n > longest ? n : longest;
	}
	return longest;
}

static void test_chosen_ports(void)
{
	struct packet p = make(UP, 1, 1, 0, PACKET_ACK);
	struct flow_table other;
	unsigned i, n;

	test("ports that a client chooses by a known hash do not share a chain");
	flow_table_free(&t);
	CHECK_EQ(flow_table_new(&t, 512), 0);
	for (i = 0; t.used < 500 && i < 1u << 24; i++) {
		p.src_port = (uint16_t)i;
		p.src[3] = (uint8_t)(i >> 16);
		if (!without_key(&p))
			flow_add(&t, &p);
	}
	CHECK_EQ(t.used, 500);
	CHECK(longest_chain() <= 12); /* by chance alone 13 of 500 share one of 1,024 once in some 10^12 tables */

	test("each table has a key of its own, so that nobody who knows one's chains knows another's");
	CHECK_EQ(flow_table_new(&other, 512), 0);
	CHECK(memcmp(&t.key, &other.key, sizeof t.key));
	for (i = n = 0; i < 64; i++) {
		p.src_port = (uint16_t)i;
		n += flow_hash(&t.key, p.src, p.dst, 4, p.src_port, p.dst_port) ==
		     flow_hash(&other.key, p.src, p.dst, 4, p.src_port, p.dst_port);
	}
	CHECK(n <= 1);
	flow_table_free(&other);
}

int main(void)
{
	test_loss();
	test_window();
	test_rtt();
	test_life();
	test_chosen_ports();
	flow_table_free(&t);
	CHECK_EQ(flow_table_new(&t, 4), 0);
	test_property();
	return done();
}
