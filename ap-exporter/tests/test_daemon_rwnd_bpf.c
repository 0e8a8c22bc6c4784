/*
 * The tc programs in this machine's kernel: loaded by the backend as the daemon does it, then given packets one by one
 * (BPF_PROG_TEST_RUN); the whole packet that comes out is compared. (Real TCP through them: tests/rwnd.py.)
 */
#include "rewrite/bpf/rwnd_bpf_maps.h"
#include "check.h"
#include "base/clock.h"
#include "rewrite/rwnd.h"
#include "rewrite/rwnd_bpf.h"
#include "tcp_frame.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/perf_event.h>
#include <linux/pkt_cls.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MOST_FLOWS = 8, CPUS = 1024 };

static struct rwnd *rwnd;
static struct rwnd_bpf_fds fd;

static uint64_t counter_of(uint32_t way, enum rwnd_bpf_counter i)
{
	static struct rwnd_bpf_counts counts[CPUS];
	uint64_t n = 0;

	CHECK_EQ(bpf_map_lookup_elem(fd.counters, &way, counts), 0);
	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		n += counts[cpu].n[i];
	return n;
}

static void forget_scales(void)
{
	struct rwnd_bpf_flow key;

	while (bpf_map_get_next_key(fd.scales, NULL, &key) == 0)
		bpf_map_delete_elem(fd.scales, &key);
}

static uint64_t counter(enum rwnd_bpf_counter i)
{
	return counter_of(RWND_UP, i);
}

/* Everything that was learned or set is forgotten. */
static void fresh(const char *name)
{
	test(name);
	rwnd_release_all(rwnd);
	forget_scales();
}

/* What comes out. The program never has a say in where a packet goes. */
static struct frame through(const struct frame *in, bool down)
{
	struct frame out = { .len = 0 };
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = in->bytes, .data_size_in = in->len, .data_out = out.bytes,
	            .data_size_out = sizeof out.bytes);

	CHECK_EQ(bpf_prog_test_run_opts(down ? fd.down : fd.up, &o), 0);
	CHECK_EQ((int32_t)o.retval, TC_ACT_UNSPEC);
	out.len = o.data_size_out;
	return out;
}

static bool equal(const struct frame *a, const struct frame *b)
{
	return a->len == b->len && !memcmp(a->bytes, b->bytes, a->len);
}

/* The packet comes out with this window and its checksum, and is otherwise as it went in. */
static bool comes_out(struct tcp_spec s, uint16_t window)
{
	const struct frame in = tcp_frame(&s, NULL), out = through(&in, s.down);
	struct frame want;

	s.window = window;
	want = tcp_frame(&s, NULL);
	return equal(&out, &want);
}

static bool untouched(const struct tcp_spec *s)
{
	return comes_out(*s, s->window);
}

static struct rwnd_flow flow_of(const struct tcp_spec *s, unsigned scale)
{
	struct rwnd_flow f = {
		.client_port = s->client_port ? s->client_port : 5000,
		.server_port = 443,
		.addr_len = s->v6 ? 16 : 4,
		.scale = (uint8_t)scale,
		.direction = s->down ? RWND_DOWN : RWND_UP,
		.mss_bytes = 1448,
	};

	spec_addresses(s, f.client_addr, f.server_addr);
	return f;
}

static int clamp(const struct tcp_spec *s, unsigned scale, uint32_t bytes)
{
	const struct rwnd_flow f = flow_of(s, scale);

	return rwnd_set(rwnd, &f, bytes, 1000);
}

/* A SYN with the scale option, or without (-1). */
static struct tcp_spec syn(bool v6, bool down, bool ack, int scale)
{
	struct tcp_spec s = {
		.v6 = v6, .down = down, .flags = (uint8_t)(SYN | (ack ? ACK : 0)), .window = 64240, .n_options = 8,
		.options = { 2, 4, 5, 0xb4, 4, 2, 1, 1 },
	};

	if (scale >= 0) {
		const uint8_t more[] = { 1, 3, 3, (uint8_t)scale };

		memcpy(s.options + 8, more, 4);
		s.n_options = 12;
	}
	return s;
}

static void pass(const struct tcp_spec *s)
{
	CHECK(untouched(s));
}

static void handshake(bool v6, int client_scale, int server_scale)
{
	struct tcp_spec s = syn(v6, false, false, client_scale);

	pass(&s);
	s = syn(v6, true, true, server_scale);
	pass(&s);
}

/* --- what is lowered, and to what */

static void lowering(void)
{
	struct tcp_spec ack = { .flags = ACK, .window = 2000 };

	for (unsigned v6 = 0; v6 < 2; v6++) {
		ack.v6 = v6;
		fresh(v6 ? "IPv6: an ACK of a clamped flow comes out with the lower window and its checksum, all else "
		           "as it was"
		         : "IPv4: an ACK of a clamped flow comes out with the lower window and its checksum, all else "
		           "as it was");
		handshake(v6, 7, 9);
		pass(&ack);
		CHECK_EQ(clamp(&ack, 7, 65536), 0);
		CHECK(comes_out(ack, 512));
		CHECK(comes_out(ack, 512)); /* the second time the scale is no longer looked up */
		ack.payload = 1448;
		CHECK(comes_out(ack, 512));
		ack.payload = 0;
	}
	ack.v6 = false;

	fresh("a clamp without a scale takes the one of the client's SYN");
	handshake(false, 5, 9);
	CHECK_EQ(clamp(&ack, RWND_SCALE_LEARNED, 32000), 0);
	CHECK(comes_out(ack, 1000));

	fresh("a window is never raised: below, equal and above the clamp; one that no field can say");
	handshake(false, 7, 7);
	CHECK_EQ(clamp(&ack, 7, 65536), 0);
	for (unsigned w = 0; w < 65536; w += w < 600 ? 1 : 511) {
		ack.window = (uint16_t)w;
		CHECK(comes_out(ack, w < 512 ? (uint16_t)w : 512));
	}
	CHECK_EQ(clamp(&ack, 7, UINT32_MAX), 0);
	ack.window = 65535;
	pass(&ack);
	ack.window = 2000;

	fresh("never below four segments, whatever is asked for");
	handshake(false, 7, 7);
	CHECK_EQ(clamp(&ack, 7, 1), 0);
	CHECK(comes_out(ack, 46)); /* 46 << 7 = 5888, the least that is not less than 4 × 1448 */
	handshake(false, 14, 7);
	CHECK_EQ(clamp(&ack, 14, 1), 0);
	CHECK(comes_out(ack, 1));

	fresh("every scale from 0 to 14, by the kernel and by arithmetic");
	for (unsigned scale = 0; scale <= 14; scale++) {
		handshake(false, (int)scale, 7);
		CHECK_EQ(clamp(&ack, scale, 30000), 0);
		ack.window = 65535;
		CHECK(comes_out(ack, (uint16_t)((30000u >> scale) ? (30000u >> scale) : 1)));
	}
	ack.window = 2000;

	fresh("other flows are not touched: the way down, another port, another client, the other IP version");
	handshake(false, 7, 7);
	CHECK_EQ(clamp(&ack, 7, 65536), 0);
	ack.down = true; pass(&ack); ack.down = false;
	ack.client_port = 5001; pass(&ack); ack.client_port = 0;
	ack.client = 0x0a000002; pass(&ack); ack.client = 0;
	ack.v6 = true; pass(&ack); ack.v6 = false;
	CHECK(comes_out(ack, 512));
}

/* --- scales */

static void scales(void)
{
	struct tcp_spec ack = { .flags = ACK, .window = 60000 }, s;
	uint64_t before;

	fresh("missed SYN: left alone where no scale is known, and counted; with the exporter's scale lowered");
	before = counter(RWND_BPF_UNKNOWN_SCALE);
	CHECK_EQ(clamp(&ack, RWND_SCALE_LEARNED, 65536), 0);
	pass(&ack);
	CHECK_EQ(counter(RWND_BPF_UNKNOWN_SCALE) - before, 1);
	CHECK_EQ(clamp(&ack, 7, 65536), 0);
	CHECK(comes_out(ack, 512));

	fresh("scale 0: the client's SYN has no option, or the server's answer has none");
	handshake(false, -1, -1);
	CHECK_EQ(clamp(&ack, RWND_SCALE_LEARNED, 20000), 0);
	CHECK(comes_out(ack, 20000));
	handshake(false, 9, -1);
	CHECK_EQ(clamp(&ack, RWND_SCALE_LEARNED, 20000), 0);
	CHECK(comes_out(ack, 20000));
	handshake(false, 0, 7);
	CHECK_EQ(clamp(&ack, RWND_SCALE_LEARNED, 20000), 0);
	CHECK(comes_out(ack, 20000));

	fresh("a SYN-ACK without the option tells even where the SYN was missed; one with it does not");
	s = syn(false, true, true, -1);
	pass(&s);
	CHECK_EQ(clamp(&ack, RWND_SCALE_LEARNED, 20000), 0);
	CHECK(comes_out(ack, 20000));
	fresh("(and with it)");
	s = syn(false, true, true, 7);
	pass(&s);
	CHECK_EQ(clamp(&ack, RWND_SCALE_LEARNED, 20000), 0);
	pass(&ack);

	fresh("a connection that the server opens: the client's SYN-ACK tells the scale");
	s = syn(false, true, false, 9);
	pass(&s);
	s = syn(false, false, true, 6);
	pass(&s);
	CHECK_EQ(clamp(&ack, RWND_SCALE_LEARNED, 64000), 0);
	CHECK(comes_out(ack, 1000));

	fresh("scale > 14 in a SYN is refused: 15 and 255, whatever scale the clamp brings");
	for (int scale = 15; scale < 256; scale += 240) {
		handshake(false, scale, 7);
		before = counter(RWND_BPF_UNKNOWN_SCALE);
		CHECK_EQ(clamp(&ack, RWND_SCALE_LEARNED, 65536), 0);
		pass(&ack);
		CHECK_EQ(clamp(&ack, 14, 65536), 0);
		pass(&ack);
		CHECK_EQ(counter(RWND_BPF_UNKNOWN_SCALE) - before, 2);
	}
	CHECK_EQ(clamp(&ack, 15, 65536), -EINVAL);

	fresh("an offer alone is not enough, unless the exporter knows the same scale");
	s = syn(false, false, false, 7);
	pass(&s);
	CHECK_EQ(clamp(&ack, RWND_SCALE_LEARNED, 65536), 0);
	pass(&ack);
	CHECK_EQ(clamp(&ack, 7, 65536), 0);
	CHECK(comes_out(ack, 512));

	fresh("a clamp with another scale than that of the SYN is not carried out, and counted");
	handshake(false, 7, 7);
	before = counter(RWND_BPF_OTHER_SCALE);
	CHECK_EQ(clamp(&ack, 8, 65536), 0);
	pass(&ack);
	CHECK_EQ(counter(RWND_BPF_OTHER_SCALE) - before, 1);

	fresh("a SYN ends the clamp: another connection begins on these ports");
	handshake(false, 7, 7);
	CHECK_EQ(clamp(&ack, 7, 65536), 0);
	CHECK(comes_out(ack, 512));
	s = syn(false, false, false, 3);
	pass(&s);
	pass(&ack);

	fresh("options of a SYN: 37 NOPs before the scale, kinds unknown, a length of 0 or beyond the header "
	      "(refused), an end before it");
	s = syn(false, false, true, -1);
	memset(s.options, 1, 37);
	memcpy(s.options + 37, "\x03\x03\x07", 3);
	s.n_options = 40;
	pass(&s);
	CHECK_EQ(clamp(&ack, RWND_SCALE_LEARNED, 65536), 0);
	CHECK(comes_out(ack, 512));
	memcpy(s.options, "\xfd\x06oal!\x03\x03\x06\x01\x01\x00", 12);
	s.n_options = 12;
	pass(&s);
	CHECK_EQ(clamp(&ack, RWND_SCALE_LEARNED, 65536), 0);
	CHECK(comes_out(ack, 1024));
	memcpy(s.options, "\x00\x03\x03\x06", 4);
	s.n_options = 4;
	pass(&s);
	CHECK_EQ(clamp(&ack, RWND_SCALE_LEARNED, 20000), 0);
	CHECK(comes_out(ack, 20000)); /* none: not scaled */
	before = counter(RWND_BPF_BAD_OPTIONS);
	for (unsigned i = 0; i < 4; i++) {
		static const char *const bad[] = { "\x03\x00\x07\x00", "\x03\x01\x07\x00", "\x03\x05\x07\x00",
		                                   "\x01\x01\x01\x03" };

		memcpy(s.options, bad[i], 4);
		pass(&s);
		CHECK_EQ(clamp(&ack, RWND_SCALE_LEARNED, 65536), 0);
		pass(&ack);
	}
	CHECK_EQ(counter(RWND_BPF_BAD_OPTIONS) - before, 4);
}

/* --- the way down: what a station uploads is held back by the server's ACKs */

/* What a fresh connection's server scale is: this one, or -1 for none that is known. */
static bool server_scale_is(int scale)
{
	struct tcp_spec ack = { .down = true, .flags = ACK, .window = 60000 };

	CHECK_EQ(clamp(&ack, RWND_SCALE_LEARNED, 20000), 0);
	return comes_out(ack, scale < 0 ? 60000 : (uint16_t)(20000 >> scale));
}

static void ways(void)
{
	struct tcp_spec up = { .flags = ACK, .window = 60000 }, down = { .down = true, .flags = ACK, .window = 60000 };
	struct rwnd_flow f;
	struct action_stats s, was;
	uint64_t before;

	for (unsigned v6 = 0; v6 < 2; v6++) {
		fresh(v6 ? "IPv6: the way down: the server's ACKs are lowered by the server's scale, with data and "
		           "without; the client's pass"
		         : "IPv4: the way down: the server's ACKs are lowered by the server's scale, with data and "
		           "without; the client's pass");
		up.v6 = down.v6 = v6;
		handshake(v6, 7, 9);
		pass(&down);
		CHECK_EQ(clamp(&down, RWND_SCALE_LEARNED, 65536), 0);
		CHECK(comes_out(down, 128));
		CHECK(comes_out(down, 128));
		down.payload = 1448;
		CHECK(comes_out(down, 128));
		down.payload = 0;
		pass(&up);

		test("(both ways of it at once, each with its own window, and each ends by itself)");
		CHECK_EQ(clamp(&up, RWND_SCALE_LEARNED, 32768), 0);
		CHECK(comes_out(up, 256));
		CHECK(comes_out(down, 128));
		f = flow_of(&down, RWND_SCALE_LEARNED);
		CHECK_EQ(rwnd_release(rwnd, &f), 0);
		pass(&down);
		CHECK(comes_out(up, 256));
		CHECK_EQ(clamp(&down, 9, 65536), 0);
		f = flow_of(&up, RWND_SCALE_LEARNED);
		CHECK_EQ(rwnd_release(rwnd, &f), 0);
		pass(&up);
		CHECK(comes_out(down, 128));
	}
	up.v6 = down.v6 = false;

	fresh("the way down: never raised, never below four segments, whatever the scale");
	handshake(false, 7, 7);
	CHECK_EQ(clamp(&down, 7, 65536), 0);
	for (unsigned w = 0; w < 65536; w += w < 600 ? 1 : 511) {
		down.window = (uint16_t)w;
		CHECK(comes_out(down, w < 512 ? (uint16_t)w : 512));
	}
	down.window = 60000;
	CHECK_EQ(clamp(&down, 7, 1), 0);
	CHECK(comes_out(down, 46));
	for (int scale = 0; scale <= 14; scale++) {
		handshake(false, 7, scale);
		CHECK_EQ(clamp(&down, RWND_SCALE_LEARNED, 30000), 0);
		CHECK(comes_out(down, (uint16_t)((30000u >> scale) ? (30000u >> scale) : 1)));
	}

	fresh("the way down: SYN, RST and what has no ACK bit pass as they are, and are counted there");
	CHECK_EQ(clamp(&down, 7, 65536), 0);
	before = counter_of(RWND_DOWN, RWND_BPF_RST);
	down.flags = RST | ACK; pass(&down);
	CHECK_EQ(counter_of(RWND_DOWN, RWND_BPF_RST) - before, 1);
	before = counter_of(RWND_DOWN, RWND_BPF_NO_ACK);
	down.flags = FIN; pass(&down);
	CHECK_EQ(counter_of(RWND_DOWN, RWND_BPF_NO_ACK) - before, 1);
	before = counter_of(RWND_DOWN, RWND_BPF_SYN);
	down.flags = SYN | ACK; pass(&down);
	CHECK_EQ(counter_of(RWND_DOWN, RWND_BPF_SYN) - before, 1);
	down.flags = ACK;

	fresh("the way down: past its deadline a clamp does nothing");
	f = flow_of(&down, 7);
	CHECK_EQ(rwnd_set(rwnd, &f, 65536, 1), 0);
	{
		const uint64_t until_us = clock_monotonic_us() + 1000;

		while (clock_monotonic_us() <= until_us)
			;
	}
	before = counter_of(RWND_DOWN, RWND_BPF_EXPIRED);
	pass(&down);
	CHECK_EQ(counter_of(RWND_DOWN, RWND_BPF_EXPIRED) - before, 1);

	fresh("each way is counted by itself, and both together");
	rwnd_stats(rwnd, &was);
	CHECK_EQ(clamp(&down, 7, 65536), 0);
	CHECK_EQ(clamp(&up, 7, 65536), 0);
	CHECK(comes_out(down, 512));
	CHECK(comes_out(down, 512));
	down.window = 100; pass(&down); down.window = 60000;
	CHECK(comes_out(up, 512));
	rwnd_stats(rwnd, &s);
	CHECK_EQ(s.in_force, 2);
	CHECK_EQ(s.down.in_force, 1);
	CHECK_EQ(s.packets_seen - was.packets_seen, 4);
	CHECK_EQ(s.down.packets_seen - was.down.packets_seen, 3);
	CHECK_EQ(s.down.packets_changed - was.down.packets_changed, 2);
	CHECK_EQ(s.down.packets_skipped - was.down.packets_skipped, 1);

	fresh("a flow whose ends are swapped, addresses and ports, is another flow in either way");
	up.client_port = down.client_port = 443;
	CHECK_EQ(clamp(&up, 7, 65536), 0);
	CHECK(comes_out(up, 512));
	pass(&down);
	CHECK_EQ(clamp(&down, 7, 32768), 0);
	CHECK(comes_out(down, 256));
	CHECK(comes_out(up, 512));
}

static void server_scales(void)
{
	static const uint8_t bad[][4] = {
		{ 3, 0, 7, 0 }, { 3, 1, 7, 0 }, { 3, 5, 7, 0 }, { 1, 1, 1, 3 }, { 3, 3, 15, 0 }, { 3, 3, 255, 0 },
	};
	struct tcp_spec up = { .flags = ACK, .window = 60000 }, s;
	struct frame f, out;
	uint32_t at;

	fresh("the server's scale: of its SYN-ACK; missed, nothing is known; without the option it is 0");
	handshake(false, 7, 9);
	CHECK(server_scale_is(9));
	fresh("(the SYN-ACK missed)");
	s = syn(false, false, false, 7);
	pass(&s);
	CHECK(server_scale_is(-1));
	fresh("(nothing seen)");
	CHECK(server_scale_is(-1));
	fresh("(the SYN missed: an answer has the option only if the question had)");
	s = syn(false, true, true, 5);
	pass(&s);
	CHECK(server_scale_is(5));
	fresh("(an answer without the option)");
	handshake(false, 7, -1);
	CHECK(server_scale_is(0));

	fresh("an answer with the option to a SYN without one makes no sense: the server's scale is not known");
	handshake(false, -1, 7);
	CHECK(server_scale_is(-1));

	fresh("a server that opens the connection: its SYN is an offer, which the client's SYN-ACK makes sure");
	s = syn(false, true, false, 9);
	pass(&s);
	CHECK(server_scale_is(-1));
	s = syn(false, false, true, 6);
	pass(&s);
	CHECK(server_scale_is(9));
	CHECK_EQ(clamp(&up, RWND_SCALE_LEARNED, 64000), 0);
	CHECK(comes_out(up, 1000));
	fresh("(and without the option in that answer it is 0)");
	s = syn(false, true, false, 9);
	pass(&s);
	s = syn(false, false, true, -1);
	pass(&s);
	CHECK(server_scale_is(0));

	fresh("a SYN of either side ends the clamps of both ways, and what was known of the other side");
	for (unsigned down = 0; down < 2; down++) {
		handshake(false, 7, 7);
		CHECK(server_scale_is(7));
		CHECK_EQ(clamp(&up, 7, 65536), 0);
		s = syn(false, down, false, 3);
		pass(&s);
		pass(&up);
		s = (struct tcp_spec){ .down = true, .flags = ACK, .window = 60000 };
		pass(&s);
		CHECK(server_scale_is(-1));
	}

	fresh("a SYN-ACK cut at any length within its options teaches no scale of either side; a whole one does");
	for (uint32_t cut = 0; cut <= 12; cut++) {
		struct tcp_spec question = syn(false, false, false, 7), whole = syn(false, true, true, 9);

		rwnd_release_all(rwnd);
		forget_scales();
		question.tags[0] = whole.tags[0] = 0x8100;
		pass(&question);
		f = tcp_frame(&whole, &at);
		f.len -= cut;
		out = through(&f, true);
		CHECK(equal(&out, &f));
		CHECK(server_scale_is(cut ? -1 : 9));
		CHECK_EQ(clamp(&up, RWND_SCALE_LEARNED, 20000), 0);
		CHECK(comes_out(up, cut ? 60000 : 156));
	}

	fresh("a SYN-ACK with options that make no sense, or a scale above 14: the server's windows are left alone, "
	      "whatever scale the clamp brings");
	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
		rwnd_release_all(rwnd);
		forget_scales();
		s = syn(false, false, false, 7);
		pass(&s);
		s = syn(false, true, true, -1);
		memcpy(s.options, bad[i], 4);
		s.n_options = 4;
		pass(&s);
		CHECK(server_scale_is(-1));
		s = (struct tcp_spec){ .down = true, .flags = ACK, .window = 60000 };
		CHECK_EQ(clamp(&s, 7, 65536), 0);
		pass(&s);
		CHECK_EQ(clamp(&up, RWND_SCALE_LEARNED, 20000), 0);
		CHECK(comes_out(up, i < 4 ? 60000 : 156)); /* what scales too far has the option all the same */
	}
}

/* --- packets as they come */

static void packets(void)
{
	static const uint8_t sack_ts[] = { 1, 1, 8, 10, 0, 0, 1, 2, 0, 0, 3, 4, 1, 1, 5, 18,
	                                   0, 0, 0, 1,  0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4 };
	struct tcp_spec ack = { .flags = ACK, .window = 60000 }, s;
	uint64_t before;

	fresh("SYN, RST and what has no ACK bit pass as they are, and are counted");
	CHECK_EQ(clamp(&ack, 7, 65536), 0);
	before = counter(RWND_BPF_RST);
	s = ack;
	s.flags = RST; pass(&s);
	s.flags = RST | ACK; pass(&s);
	CHECK_EQ(counter(RWND_BPF_RST) - before, 2);
	before = counter(RWND_BPF_NO_ACK);
	s.flags = 0; pass(&s);
	s.flags = FIN; pass(&s);
	CHECK_EQ(counter(RWND_BPF_NO_ACK) - before, 2);
	before = counter(RWND_BPF_SYN);
	s.flags = SYN | ACK; pass(&s);
	s.flags = SYN; pass(&s);
	CHECK_EQ(counter(RWND_BPF_SYN) - before, 2);

	fresh("zero windows and answers to window probes pass as they are; the window that opens again is lowered");
	CHECK_EQ(clamp(&ack, 7, 65536), 0);
	s = ack;
	s.window = 0; pass(&s); pass(&s);
	s.window = 1; pass(&s);
	s.window = 512; pass(&s);
	s.window = 513;
	CHECK(comes_out(s, 512));

	fresh("SACK and timestamp options, urgent data, payload of every alignment");
	CHECK_EQ(clamp(&ack, 7, 65536), 0);
	s = ack;
	memcpy(s.options, sack_ts, sizeof sack_ts);
	s.n_options = sizeof sack_ts;
	CHECK(comes_out(s, 512));
	s.flags = ACK | PSH | URG;
	for (s.payload = 0; s.payload < 9; s.payload++)
		CHECK(comes_out(s, 512));

	fresh("ACKs of a half-closed flow: with FIN, and after it");
	CHECK_EQ(clamp(&ack, 7, 65536), 0);
	s = ack;
	s.flags = FIN | ACK;
	CHECK(comes_out(s, 512));
	CHECK(comes_out(ack, 512));

	fresh("ECN: ECE, CWR and the codepoints of IP stay");
	for (unsigned v6 = 0; v6 < 2; v6++) {
		s = ack;
		s.v6 = v6;
		CHECK_EQ(clamp(&s, 7, 65536), 0);
		for (unsigned i = 0; i < 16; i++) {
			s.tos = i & 3;
			s.flags = (uint8_t)(ACK | (i & 4 ? ECE : 0) | (i & 8 ? CWR : 0));
			CHECK(comes_out(s, 512));
		}
	}

	fresh("VLAN tags: 802.1Q, 802.1ad and both; with three the packet is let through");
	for (unsigned v6 = 0; v6 < 2; v6++) {
		s = (struct tcp_spec){ .v6 = v6, .flags = ACK, .window = 60000, .tags = { 0x8100 } };
		CHECK_EQ(clamp(&s, 7, 65536), 0);
		CHECK(comes_out(s, 512));
		s.tags[0] = 0x88a8;
		CHECK(comes_out(s, 512));
		s.tags[1] = 0x8100;
		CHECK(comes_out(s, 512));
		s.tags[2] = 0x8100;
		pass(&s);
		s.tags[1] = s.tags[2] = 0;
		s.flags = SYN | ACK;
		memcpy(s.options, "\x03\x03\x06\x00", 4);
		s.n_options = 4;
		pass(&s); /* learned behind a tag */
		s.flags = ACK;
		CHECK_EQ(clamp(&s, RWND_SCALE_LEARNED, 65536), 0);
		CHECK(comes_out(s, 1024));
	}

	fresh("IPv4 options of every length");
	CHECK_EQ(clamp(&ack, 7, 65536), 0);
	s = ack;
	for (s.ip_options = 0; s.ip_options <= 40; s.ip_options += 4)
		CHECK(comes_out(s, 512));

	fresh("IPv6 extension headers: one to four of any kind; five are let through, and counted");
	s = (struct tcp_spec){ .v6 = true, .flags = ACK, .window = 60000 };
	CHECK_EQ(clamp(&s, 7, 65536), 0);
	for (unsigned i = 0; i < 4; i++) {
		s.extensions[i] = (uint8_t)(i + 1);
		CHECK(comes_out(s, 512));
	}
	before = counter(RWND_BPF_HEADERS);
	s.extensions[4] = 3;
	pass(&s);
	CHECK_EQ(counter(RWND_BPF_HEADERS) - before, 1);

	fresh("fragments pass as they are, the first one too, and are counted");
	CHECK_EQ(clamp(&ack, 7, 65536), 0);
	before = counter(RWND_BPF_FRAGMENT);
	s = ack;
	s.fragment = 0x2000; pass(&s);
	s.fragment = 0x0001; pass(&s);
	s.fragment = 0x4000;
	CHECK(comes_out(s, 512)); /* "do not fragment" is none */
	s = (struct tcp_spec){ .v6 = true, .flags = ACK, .window = 60000, .fragment = 1 };
	CHECK_EQ(clamp(&s, 7, 65536), 0);
	pass(&s);
	CHECK_EQ(counter(RWND_BPF_FRAGMENT) - before, 3);
}

/* --- what is not a packet, or only half of one */

static void damaged(void)
{
	/* Behind a tag: BPF_PROG_TEST_RUN itself refuses what says IP and is shorter than its header. */
	struct tcp_spec s = { .tags = { 0x8100 }, .flags = ACK, .window = 60000, .payload = 3 };
	uint32_t at;
	struct frame f, out;
	uint64_t before;

	for (unsigned v6 = 0; v6 < 2; v6++) {
		fresh(v6 ? "IPv6: cut anywhere before the end of the TCP header, a packet passes as it is"
		         : "IPv4: cut anywhere before the end of the TCP header, a packet passes as it is");
		s.v6 = v6;
		CHECK_EQ(clamp(&s, 7, 65536), 0);
		f = tcp_frame(&s, &at);
		for (f.len = 14; f.len < at + 20; f.len++) {
			out = through(&f, false);
			CHECK(equal(&out, &f));
			out = through(&f, true);
			CHECK(equal(&out, &f));
		}
	}

	fresh("a SYN cut at any length within its options teaches no scale; a whole one does");
	for (uint32_t cut = 0; cut <= 12; cut++) {
		struct tcp_spec whole = syn(false, false, false, 7), answer = syn(false, true, true, 7);
		struct tcp_spec ack = { .tags = { 0x8100 }, .flags = ACK, .window = 60000 };

		rwnd_release_all(rwnd);
		forget_scales();
		whole.tags[0] = answer.tags[0] = 0x8100;
		f = tcp_frame(&whole, &at);
		f.len -= cut;
		out = through(&f, false);
		CHECK(equal(&out, &f));
		pass(&answer);
		CHECK_EQ(clamp(&ack, RWND_SCALE_LEARNED, 20000), 0);
		CHECK(comes_out(ack, cut ? 60000 : 156));
	}

	fresh("lengths that contradict each other: IP header of 16 bytes, TCP header of 16, IP too short for TCP, "
	      "versions 0 and 15");
	s.v6 = false;
	s.tags[0] = 0;
	CHECK_EQ(clamp(&s, 7, 65536), 0);
	before = counter(RWND_BPF_MALFORMED);
	for (unsigned i = 0; i < 5; i++) {
		f = tcp_frame(&s, &at);
		if (i == 0) f.bytes[14] = 0x44;
		else if (i == 1) f.bytes[at + 12] = 0x40;
		else if (i == 2) spec_put16(f.bytes + 16, 39);
		else f.bytes[14] = i == 3 ? 0x05 : 0xf5;
		out = through(&f, false);
		CHECK(equal(&out, &f));
	}
	CHECK_EQ(counter(RWND_BPF_MALFORMED) - before, 5);

	fresh("each of 65,024 windows comes out lowered with the checksum that the frame then has, whatever that was "
	      "before: also one that looks as if it were yet to be made");
	for (unsigned v6 = 0; v6 < 2; v6++) {
		struct tcp_spec w = { .v6 = v6, .flags = ACK };
		uint32_t wrong = 0;

		CHECK_EQ(clamp(&w, 7, 65536), 0);
		for (uint32_t window = 513; window <= 65535; window++) {
			w.window = (uint16_t)window;
			if (window % 4096 == 0) /* a busy machine must not outlast it */
				CHECK_EQ(clamp(&w, 7, 65536), 0);
			wrong += !comes_out(w, 512);
		}
		CHECK_EQ(wrong, 0);
	}

	fresh("100,000 frames with random bytes in them: nothing but the window and its checksum ever changes, and "
	      "that downwards");
	{
		uint64_t seed = 11, clamped = counter(RWND_BPF_CLAMPED);

		for (int i = 0; i < 100000; i++) {
			struct tcp_spec r = {
				.v6 = check_random(&seed) & 1, .flags = ACK, .window = 60000,
				.payload = check_random(&seed) & 31,
			};
			const unsigned damage = check_random(&seed) & 3;
			uint32_t differ = 0;

			forget_scales(); /* a frame that became a SYN taught one, and ended the clamp */
			CHECK_EQ(clamp(&r, 7, 65536), 0);
			f = tcp_frame(&r, NULL);
			for (unsigned n = 0; n < damage; n++)
				f.bytes[12 + check_random(&seed) % (f.len - 12)] = (uint8_t)check_random(&seed);
			out = through(&f, false);
			CHECK_EQ(out.len, f.len);
			for (uint32_t k = 0; k < f.len; k++)
				differ += out.bytes[k] != f.bytes[k];
			CHECK(differ <= 4);
		}
		CHECK(counter(RWND_BPF_CLAMPED) - clamped > 10000); /* those that were not damaged where it counts */
	}
}

/* --- time and room */

static void ends(void)
{
	struct tcp_spec ack = { .flags = ACK, .window = 60000 };
	struct rwnd_flow f = flow_of(&ack, 7);
	struct action_stats s, was;
	uint64_t before, until_us;

	fresh("past its deadline a clamp does nothing, though nobody took it out");
	CHECK_EQ(rwnd_set(rwnd, &f, 65536, 1), 0);
	until_us = clock_monotonic_us() + 1000;
	while (clock_monotonic_us() <= until_us)
		;
	before = counter(RWND_BPF_EXPIRED);
	pass(&ack);
	CHECK_EQ(counter(RWND_BPF_EXPIRED) - before, 1);
	rwnd_stats(rwnd, &was);
	CHECK_EQ(was.in_force, 1);
	rwnd_poll(rwnd, clock_monotonic_us());
	rwnd_stats(rwnd, &s);
	CHECK_EQ(s.in_force, 0);
	CHECK_EQ(s.expired - was.expired, 1);

	fresh("released, a flow is plain TCP at once; released again, it still is");
	CHECK_EQ(rwnd_set(rwnd, &f, 65536, 1000), 0);
	CHECK(comes_out(ack, 512));
	CHECK_EQ(rwnd_release(rwnd, &f), 0);
	pass(&ack);
	CHECK_EQ(rwnd_release(rwnd, &f), 0);
	CHECK_EQ(rwnd_set(rwnd, &f, 65536, 1000), 0);
	rwnd_release_all(rwnd);
	pass(&ack);

	fresh("map full: refused and counted; the clamps that are there work on, and a released one makes room");
	rwnd_stats(rwnd, &was);
	for (uint16_t i = 0; i < MOST_FLOWS; i++) {
		ack.client_port = (uint16_t)(6000 + i);
		CHECK_EQ(clamp(&ack, 7, 65536), 0);
	}
	ack.client_port = 7000;
	CHECK_EQ(clamp(&ack, 7, 65536), -ENOSPC);
	pass(&ack);
	for (uint16_t i = 0; i < MOST_FLOWS; i++) {
		ack.client_port = (uint16_t)(6000 + i);
		CHECK(comes_out(ack, 512));
		CHECK_EQ(clamp(&ack, 7, 32768), 0); /* again: there already */
		CHECK(comes_out(ack, 256));
	}
	rwnd_stats(rwnd, &s);
	CHECK_EQ(s.errors - was.errors, 1);
	CHECK_EQ(s.in_force, MOST_FLOWS);
	f = flow_of(&ack, 7);
	CHECK_EQ(rwnd_release(rwnd, &f), 0);
	ack.client_port = 7000;
	CHECK_EQ(clamp(&ack, 7, 65536), 0);
	CHECK(comes_out(ack, 512));

	fresh("5,000 flows whose SYNs went by leave room for the next: the oldest scales go");
	for (uint32_t i = 1; i <= 5000; i++) {
		struct tcp_spec s_ = syn(false, false, true, 7);

		s_.client = 0x0a010000 + i;
		pass(&s_);
	}
	ack = (struct tcp_spec){ .flags = ACK, .window = 60000, .client = 0x0a010000 + 5000 };
	CHECK_EQ(clamp(&ack, RWND_SCALE_LEARNED, 65536), 0);
	CHECK(comes_out(ack, 512));

	fresh("what is seen is either lowered or has a reason why not");
	rwnd_stats(rwnd, &s);
	CHECK(s.packets_seen > 0 && s.packets_changed > 0 && s.packets_skipped > 0);
	CHECK_EQ(s.packets_seen, s.packets_changed + s.packets_skipped);
	CHECK(s.ready);
}

/* --- settings while packets run on another CPU */

enum { STORM_PACKETS = 2000000, STORM_ROUNDS = 250000, STORM_REPEAT = 2000, STORM_SETS = 1, STORM_CLOCK_NS = 25000 };
static struct {
	struct frame in;
	int program;
	_Atomic uint64_t packets;
	atomic_bool end, failed;
} storm;

/* A clock that interrupts this thread, and so now and then a program between two reads of an entry: the race needs more
 * time than the program takes. */
static int interrupt_often(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .size = sizeof attr, .config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = STORM_CLOCK_NS,
	};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static void *run_storm(void *unused)
{
	static struct frame out;
	const int clock = interrupt_often();

	(void)unused;
	while (!storm.end) {
		LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = storm.in.bytes, .data_size_in = storm.in.len,
		            .data_out = out.bytes, .data_size_out = sizeof out.bytes, .repeat = STORM_REPEAT);

		if (bpf_prog_test_run_opts(storm.program, &o) < 0) {
			storm.failed = true;
			break;
		}
		storm.packets += STORM_REPEAT;
	}
	close(clock);
	return NULL;
}

static uint32_t seal_of(const struct rwnd_bpf_flow *key, const struct rwnd_bpf_clamp *c)
{
	return rwnd_bpf_seal(rwnd_bpf_tag(key), c->deadline_ns, c->bytes, c->floor_bytes, c->scale);
}

/* The flow's entry, as the backend writes it. */
static void read_entry(const struct tcp_spec *s, struct rwnd_bpf_flow *key, struct rwnd_bpf_clamp *value)
{
	const struct rwnd_flow f = flow_of(s, 0);

	*key = (struct rwnd_bpf_flow){
		.client = { 0, 0, htonl(0xffff) }, .server = { 0, 0, htonl(0xffff) },
		.client_port = htons(f.client_port), .server_port = htons(f.server_port), .direction = f.direction,
	};
	memcpy(&key->client[3], f.client_addr, 4);
	memcpy(&key->server[3], f.server_addr, 4);
	CHECK_EQ(bpf_map_lookup_elem(fd.clamps, key, value), 0);
}

/* While ACKs of one flow run, that flow and another are set in turn, many times a system call: the kernel gives the
 * memory of the entry that an ACK reads to the other flow, which must not be held to the first one's field. */
static void settings_amid_packets(bool down)
{
	const struct tcp_spec scaled = { .down = down, .flags = ACK, .window = 60000 };
	/* On the way down the other flow is the same connection's other way: they differ in nothing but that. */
	const struct tcp_spec plain = { .flags = ACK, .window = 60000, .client_port = down ? 0 : 5001 };
	struct tcp_spec lower = plain;
	const struct rwnd_flow scaled_flow = flow_of(&scaled, 7), plain_flow = flow_of(&plain, 0);
	const struct frame in = tcp_frame(&plain, NULL);
	struct rwnd_bpf_flow keys[2 * STORM_SETS];
	struct rwnd_bpf_clamp values[2 * STORM_SETS];
	uint64_t wrong = 0, rounds = 0, replaced = counter_of(down, RWND_BPF_REPLACED);
	struct frame want;
	pthread_t thread;

	fresh(down ? "both ways of a flow are set while its server's ACKs run on another CPU: none is held to what was "
	             "set for the other way"
	           : "flows are set while ACKs run on another CPU: no ACK is held to what was set for another flow");
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
		skip("settings amid packets", "takes two processors");
		return;
	}
	lower.window = 30000;
	want = tcp_frame(&lower, NULL);
	storm.in = tcp_frame(&scaled, NULL);
	storm.program = down ? fd.down : fd.up;
	storm.packets = 0;
	storm.end = storm.failed = false;
	CHECK_EQ(rwnd_set(rwnd, &scaled_flow, 65536, RWND_MAX_TTL_MS), 0);
	CHECK_EQ(rwnd_set(rwnd, &plain_flow, 30000, RWND_MAX_TTL_MS), 0);
	for (unsigned i = 0; i < STORM_SETS; i++) {
		read_entry(&scaled, &keys[2 * i], &values[2 * i]);
		read_entry(&plain, &keys[2 * i + 1], &values[2 * i + 1]);
		values[2 * i].deadline_ns = values[2 * i + 1].deadline_ns = UINT64_MAX;
		values[2 * i].seal = seal_of(&keys[2 * i], &values[2 * i]);
		values[2 * i + 1].seal = seal_of(&keys[2 * i + 1], &values[2 * i + 1]);
	}
	CHECK_EQ(pthread_create(&thread, NULL, run_storm, NULL), 0);
	while (!storm.failed && (rounds < STORM_ROUNDS || storm.packets < STORM_PACKETS)) {
		LIBBPF_OPTS(bpf_map_batch_opts, o, .elem_flags = BPF_ANY);
		uint32_t n = 2 * STORM_SETS;
		struct frame out;

		CHECK_EQ(bpf_map_update_batch(fd.clamps, keys, values, &n, &o), 0);
		out = through(&in, false);
		wrong += !equal(&out, &want);
		rounds++;
	}
	storm.end = true;
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK(!storm.failed);
	printf("# %llu settings of another flow, %llu ACKs; %llu entries were replaced while they were read\n",
	       (unsigned long long)rounds * STORM_SETS, (unsigned long long)storm.packets,
	       (unsigned long long)(counter_of(down, RWND_BPF_REPLACED) - replaced));
	CHECK_EQ(wrong, 0);
}

/* --- packets whose headers are in pages, as some drivers hand them on: through a TAP that takes a packet in parts */

static int tap = -1, listener = -1;

/* TAP port1 and veth out0 in a bridge; what comes out of the bridge is read at out1. */
static bool make_pages(void)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	struct ifreq r = { .ifr_name = "port1", .ifr_flags = IFF_TAP | IFF_NO_PI | IFF_NAPI | IFF_NAPI_FRAGS };

	tap = open("/dev/net/tun", O_RDWR);
	if (tap < 0 || ioctl(tap, TUNSETIFF, &r) < 0 ||
	    system("ip link add br0 type bridge && ip link add out0 type veth peer name out1 && "
	           "ethtool -K port1 gro off >/dev/null && ip link set port1 master br0 && "
	           "ip link set out0 master br0 && "
	           "for port in br0 port1 out0 out1; do ip link set $port up; done") != 0)
		return false;
	listener = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, htons(ETH_P_ALL));
	at.sll_ifindex = (int)if_nametoindex("out1");
	return listener >= 0 && bind(listener, (struct sockaddr *)&at, sizeof at) == 0;
}

/* Sends a frame whose first `linear` bytes are in the linear part and the rest in pages; what comes out of the
 * bridge. */
static struct frame through_pages(const struct frame *in, uint32_t linear)
{
	const struct iovec parts[] = { { (void *)(uintptr_t)in->bytes, linear },
	                               { (void *)(uintptr_t)(in->bytes + linear), in->len - linear } };
	struct pollfd p = { .fd = listener, .events = POLLIN };
	struct frame out = { .len = 0 };
	ssize_t n;

	while (recv(listener, out.bytes, sizeof out.bytes, 0) >= 0) /* what came before */
		;
	CHECK_EQ(writev(tap, parts, linear < in->len ? 2 : 1), in->len);
	while (poll(&p, 1, 10000) == 1) {
		n = recv(listener, out.bytes, sizeof out.bytes, 0);
		if (n >= 12 && !memcmp(out.bytes, in->bytes, 12)) { /* and not a word of the bridge's own */
			out.len = (uint32_t)n;
			return out;
		}
	}
	CHECK(!"the frame came out");
	return out;
}

static void pages(void)
{
	struct tcp_spec w, s = {
		.flags = ACK, .window = 60000, .payload = 600, .n_options = 12, .options = { 1, 1, 8, 10 },
	};
	struct frame in, want, out;
	uint32_t at;

	for (unsigned v6 = 0; v6 < 2; v6++) {
		fresh(v6 ? "IPv6: wherever the linear part of a packet ends, it is lowered all the same"
		         : "IPv4: wherever the linear part of a packet ends, it is lowered all the same");
		s.v6 = v6;
		CHECK_EQ(clamp(&s, 7, 65536), 0);
		w = s;
		w.window = 512;
		in = tcp_frame(&s, &at);
		want = tcp_frame(&w, NULL);
		for (uint32_t linear = 14; linear <= at + 40; linear++) {
			out = through_pages(&in, linear);
			CHECK(equal(&out, &want));
		}
	}
	fresh("a scale is learned from a SYN in pages");
	w = syn(false, false, true, 6);
	in = tcp_frame(&w, NULL);
	out = through_pages(&in, 14);
	CHECK(equal(&out, &in));
	s.v6 = false;
	CHECK_EQ(clamp(&s, RWND_SCALE_LEARNED, 65536), 0);
	CHECK(comes_out(s, 1024));
}

int main(void)
{
	const struct config_rwnd c = {
		.enabled = true, .backend = "bpf", .interface = "port0,port1", .max_flows = MOST_FLOWS,
	};
	char err[1024] = "";

	if (unshare(CLONE_NEWNET) < 0 || system("ip link add port0 type veth peer name far0") != 0 || !make_pages()) {
		skip("tc programs", "network namespaces, veth, TAP and a bridge need root");
		return done();
	}
	if (rwnd_check(&c, err, sizeof err) < 0) {
		skip("tc programs", err);
		return done();
	}
	test("the kernel's verifier takes both programs, and they are on the port");
	CHECK_EQ(rwnd_open(&rwnd, &c, err, sizeof err), 0);
	if (!rwnd) {
		printf("# %s\n", err);
		return done();
	}
	CHECK_EQ(rwnd_backend(rwnd), OAL_REWRITE_BACKEND_BPF);
	CHECK_EQ(system("tc filter show dev port0 ingress | grep -q rwnd_up"), 0);
	CHECK_EQ(system("tc filter show dev port0 egress | grep -q rwnd_down"), 0);
	fd = rwnd_bpf_fds(rwnd);
	lowering();
	scales();
	ways();
	server_scales();
	packets();
	damaged();
	pages();
	ends();
	settings_amid_packets(false);
	settings_amid_packets(true);
	test("closed, nothing of it is left on the port");
	rwnd_close(rwnd);
	CHECK(system("tc filter show dev port0 ingress | grep -q rwnd") != 0);
	CHECK(system("tc filter show dev port0 egress | grep -q rwnd") != 0);
	return done();
}
