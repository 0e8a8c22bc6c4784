/*
 * The tap's tc programs in this machine's kernel: loaded as the daemon does it, then given packets one by one
 * (BPF_PROG_TEST_RUN), and over a veth pair where the headers must not lie in one piece; what is read is compared
 * whole. (Real TCP through them: tests/tap.py.)
 */
#include "check.h"
#include "tap/tap.h"
#include "tap/tap_bpf.h"
#include "tcp_frame.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <linux/pkt_cls.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { STATION = 1, MOST = 4096, RECORD = 184, RING_KB = 64 };

static void *tap;
static struct tap_bpf_fds fd;
static struct {
	struct tap_frame frame;
	uint8_t bytes[256];
} got[MOST];
static unsigned n_got;

static void take(void *ctx, const struct tap_frame *f)
{
	CHECK(f->captured <= sizeof got->bytes);
	if (n_got == MOST)
		return;
	got[n_got].frame = *f;
	memcpy(got[n_got++].bytes, f->bytes, f->captured);
}

static void read_all(void)
{
	n_got = 0;
	tap_bpf.read(tap, 0, take, NULL);
}

static struct tap_stats totals(void)
{
	struct tap_stats s;

	tap_bpf.stats(tap, &s);
	return s;
}

static struct tap_station told_bytes;

static void on_bytes(void *ctx, uint64_t mac, const struct tap_station *s)
{
	CHECK_EQ(mac, *(const uint64_t *)ctx);
	told_bytes = *s;
}

static int bytes_of(uint64_t mac, struct tap_station *s)
{
	int ret;

	tap_bpf.on_station_bytes(tap, on_bytes, &mac);
	ret = tap_bpf.station_bytes(tap, mac);
	tap_bpf.on_station_bytes(tap, NULL, NULL);
	*s = told_bytes;
	return ret;
}

/* The packet comes out as it went in, and where it goes is not the tap's to say. */
static void pass(const struct frame *in, bool down)
{
	struct frame out = { .len = 0 };
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = in->bytes, .data_size_in = in->len, .data_out = out.bytes,
		    .data_size_out = sizeof out.bytes);

	CHECK_EQ(bpf_prog_test_run_opts(down ? fd.down : fd.up, &o), 0);
	CHECK_EQ((int32_t)o.retval, TC_ACT_UNSPEC);
	CHECK(o.data_size_out == in->len && !memcmp(out.bytes, in->bytes, in->len));
}

/* Read once, with these of its bytes and no more. */
static void is_read(const struct tcp_spec *s, uint32_t bytes)
{
	const struct frame in = tcp_frame(s, NULL);

	read_all();
	pass(&in, s->down);
	read_all();
	CHECK_EQ(n_got, 1);
	CHECK_EQ(got[0].frame.captured, bytes);
	CHECK_EQ(got[0].frame.length, in.len);
	CHECK_EQ(got[0].frame.outgoing, s->down);
	CHECK(got[0].frame.t_us > 0 && !memcmp(got[0].bytes, in.bytes, bytes));
}

static void is_not(const struct frame *in, bool down)
{
	const uint64_t frames = totals().frames;

	pass(in, down);
	read_all();
	CHECK_EQ(n_got, 0);
	CHECK_EQ(totals().frames, frames + 1);
}

static void headers(void)
{
	static const uint8_t options[40] = { 2, 4, 5, 0xb4, 4, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
					     1, 1, 1, 1,    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };
	struct tcp_spec s;

	for (unsigned tags = 0; tags <= 2; tags++)
		for (unsigned v6 = 0; v6 < 2; v6++)
			for (unsigned n = 0; n <= 40; n += 20) {
				s = (struct tcp_spec){ .v6 = v6, .flags = n == 40 ? SYN : ACK, .payload = 1000,
						       .n_options = (uint8_t)n, .down = tags & 1 };
				s.tags[0] = tags ? 0x8100 : 0;
				s.tags[1] = tags > 1 ? 0x8100 : 0;
				memcpy(s.options, options, sizeof options);
				is_read(&s, 14 + 4 * tags + (v6 ? 40 : 20) + 20 + n);
			}
	s = (struct tcp_spec){ .flags = ACK, .ip_options = 40, .payload = 100 };
	is_read(&s, 14 + 60 + 20);
	s = (struct tcp_spec){ .flags = ACK }; /* nothing after the headers */
	is_read(&s, 54);
}

static void beyond(void)
{
	struct tcp_spec s = { .v6 = true, .flags = ACK, .extensions = { 1, 3 }, .payload = 500 };

	is_read(&s, 160); /* the reader follows them */
	s.payload = 0;
	is_read(&s, 14 + 40 + 32 + 20);
	s = (struct tcp_spec){ .flags = ACK, .fragment = 0x2000, .payload = 500 };
	is_read(&s, 54); /* the reader counts it as a fragment */
}

static void others(void)
{
	struct tcp_spec s = { .flags = ACK, .payload = 200 };
	struct frame f = tcp_frame(&s, NULL);

	f.bytes[14 + 9] = 17; /* UDP */
	is_not(&f, false);
	is_not(&f, true);
	s.v6 = true;
	f = tcp_frame(&s, NULL);
	f.bytes[14 + 6] = 58; /* ICMP */
	is_not(&f, false);
	f = tcp_frame(&s, NULL);
	f.bytes[12] = 8;
	f.bytes[13] = 6; /* ARP */
	is_not(&f, true);
	s = (struct tcp_spec){ .flags = ACK, .tags = { 0x8100, 0x8100, 0x8100 } };
	f = tcp_frame(&s, NULL);
	is_not(&f, false); /* three tags: nobody has them */
	s = (struct tcp_spec){ .flags = ACK };
	f = tcp_frame(&s, NULL);
	for (f.len = 34; f.len < 54; f.len++) { /* cut: the reader says so */
		pass(&f, false);
		read_all();
		CHECK_EQ(n_got, 1);
		CHECK(got[0].frame.captured <= f.len);
	}
}

static void stations(void)
{
	const struct tcp_spec up = { .flags = ACK, .payload = 100 };
	const struct tcp_spec down = { .flags = ACK, .payload = 900, .down = true };
	struct frame in = tcp_frame(&up, NULL), out = tcp_frame(&down, NULL), udp = in;
	struct tap_station s;
	const uint64_t mac = 0x020000000100u + STATION;

	udp.bytes[14 + 9] = 17;
	memcpy(out.bytes, in.bytes + 6, 6); /* to the station */
	CHECK_EQ(bytes_of(mac, &s), -ENOENT);
	pass(&in, false);
	CHECK_EQ(tap_bpf.station(tap, mac, true), 0);
	CHECK_EQ(bytes_of(mac, &s), 0);
	CHECK(!s.up_bytes && !s.down_bytes);
	for (unsigned i = 0; i < 10; i++) {
		pass(&in, false);
		pass(&udp, false); /* whatever it holds */
		pass(&out, true);
	}
	pass(&in, true); /* to somebody else */
	CHECK_EQ(bytes_of(mac, &s), 0);
	CHECK_EQ(s.up_bytes, 20u * in.len);
	CHECK_EQ(s.down_bytes, 10u * out.len);
	CHECK_EQ(tap_bpf.station(tap, mac + 1, true), 0);
	CHECK_EQ(tap_bpf.station(tap, mac + 2, true), -E2BIG);
	CHECK_EQ(tap_bpf.station(tap, mac, false), 0);
	CHECK_EQ(tap_bpf.station(tap, mac, false), 0);
	CHECK_EQ(bytes_of(mac, &s), -ENOENT);
	CHECK_EQ(tap_bpf.station(tap, mac + 2, true), 0);
	CHECK_EQ(tap_bpf.station(tap, mac, true), -E2BIG);
	read_all();
}

static void overrun(void)
{
	struct tcp_spec s = { .flags = ACK };
	const struct tap_stats before = totals();
	unsigned i, held;
	struct frame f;

	for (i = 0; i < 1000; i++) {
		s.client_port = (uint16_t)(1 + i);
		f = tcp_frame(&s, NULL);
		pass(&f, false);
	}
	for (held = 0; read_all(), n_got; held += n_got)
		for (i = 0; i < n_got; i++) /* the oldest, in their order */
			CHECK_EQ(got[i].bytes[34] << 8 | got[i].bytes[35], (int)(1 + held + i));
	CHECK(held >= RING_KB * 1024 / RECORD - 1 && held <= RING_KB * 1024 / RECORD);
	CHECK_EQ(totals().overruns - before.overruns, 1000 - held);
	CHECK_EQ(totals().frames - before.frames, 1000);
	CHECK_EQ(totals().packets - before.packets, held);
	s.client_port = 0;
	is_read(&s, 54); /* and goes on */
}

/* A frame of which only the Ethernet header is in the linear part, in by the port. */
static void pages(void)
{
	static uint8_t large[5000];
	const struct tcp_spec s = { .flags = ACK, .payload = 1000, .n_options = 0 };
	struct frame f = tcp_frame(&s, NULL);
	const struct virtio_net_hdr none = { 0 };
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_ifindex = (int)if_nametoindex("far0") };
	const struct iovec iov[2] = { { (void *)&none, sizeof none }, { large, sizeof large } };
	const struct msghdr m = { .msg_name = &to, .msg_namelen = sizeof to, .msg_iov = (void *)iov, .msg_iovlen = 2 };
	const int one = 1, s_fd = socket(AF_PACKET, SOCK_RAW, 0);
	unsigned tries;

	spec_put16(f.bytes + 16, sizeof large - 14);
	memcpy(large, f.bytes, f.len);
	CHECK_EQ(setsockopt(s_fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof one), 0);
	read_all();
	CHECK_EQ(sendmsg(s_fd, &m, 0), (ssize_t)(sizeof none + sizeof large));
	for (tries = 0, n_got = 0; tries < 5000; tries++) {
		read_all();
		if (n_got && got[n_got - 1].frame.length == sizeof large)
			break;
		poll(NULL, 0, 1);
	}
	close(s_fd);
	CHECK(tries < 5000);
	if (!n_got)
		return;
	CHECK_EQ(got[n_got - 1].frame.captured, 54);
	CHECK(!memcmp(got[n_got - 1].bytes, large, 54) && !got[n_got - 1].frame.outgoing);
}

int main(void)
{
	const struct tap_config c = {
		.section = "tap", .interface = "port0", .ring_kb = RING_KB, .max_stations = 2,
	};
	char err[1024] = "";

	if (unshare(CLONE_NEWNET) < 0 ||
	    /* no router solicitations of the kernel's own: frames are counted */
	    system("{ echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6; } 2>/dev/null; "
		   "ip link add port0 type veth peer name far0 && ip link set port0 mtu 9000 up && "
		   "ip link set far0 mtu 9000 up") != 0) {
		skip("the tap's programs", "network namespaces and veth need root");
		return done();
	}
	if (tap_bpf.check(&c, err, sizeof err) < 0) {
		skip("the tap's programs", err);
		return done();
	}
	CHECK(system("tc qdisc show dev port0 | grep -q clsact") != 0);
	test("the kernel's verifier takes both programs, and they are on the port, behind those that lower windows");
	CHECK_EQ(tap_bpf.open(&tap, &c, err, sizeof err), 0);
	if (!tap) {
		printf("# %s\n", err);
		return done();
	}
	fd = tap_bpf_fds(tap);
	CHECK_EQ(system("tc filter show dev port0 ingress | grep -q 'pref 12 .*tap_up'"), 0);
	CHECK_EQ(system("tc filter show dev port0 egress | grep -q 'pref 12 .*tap_down'"), 0);
	CHECK(totals().attached);
	test("the headers of a TCP packet are read, whole and nothing after them: IPv4, IPv6, options, two tags");
	headers();
	test("behind IPv6 extension headers as much as a record takes; a fragment, for the reader to name");
	beyond();
	test("other packets are counted and not read; cut ones are read as far as they go");
	others();
	test("bytes of the stations that are asked for, whatever their frames hold, and of no more than there is room "
	     "for");
	stations();
	test("a full ring keeps what it has, counts what it loses, and goes on");
	overrun();
	test("headers that lie in pages are read");
	pages();
	test("closed, nothing of it is left on the port, and the hooks that it made go, unless somebody uses them");
	tap_bpf.close(tap);
	CHECK(system("tc qdisc show dev port0 | grep -q clsact") != 0);
	CHECK_EQ(tap_bpf.open(&tap, &c, err, sizeof err), 0);
	CHECK_EQ(system("tc filter add dev port0 egress pref 50 u32 match u32 0 0"), 0);
	tap_bpf.close(tap);
	CHECK_EQ(system("tc filter show dev port0 egress | grep -q 'pref 50'"), 0);
	CHECK(system("tc filter show dev port0 ingress | grep -q tap_") != 0);
	return done();
}
