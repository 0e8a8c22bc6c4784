/*
 * Nanoseconds a packet in the tap's tc programs, by the kernel's own count (BPF_PROG_TEST_RUN with `repeat`), and
 * what reading a packet out of the ring takes: lines "NAME NS". Each of the programs' figures is the difference
 * between a run and one of an empty program, the least of several rounds: what else the machine does only adds. A run
 * is no longer than the ring, which is read between runs: a full one would cost less.
 * usage: bench_tap BENCH_OBJECT
 */
#include "base/clock.h"
#include "packet/packet.h"
#include "tap/tap.h"
#include "tap/tap_bpf.h"
#include "tcp_frame.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 200, REPEAT = 5000, RING_KB = 4096 };

static void *tap;
static struct tap_bpf_fds fd;
static int nothing;
static unsigned n_read;

static int fail(const char *what)
{
	fprintf(stderr, "bench_tap: %s\n", what);
	exit(1);
}

static void count_frame(void *ctx, const struct tap_frame *f)
{
	n_read++;
}

static void parse_frame(void *ctx, const struct tap_frame *f)
{
	enum packet_reason used;
	struct packet k;

	n_read += packet_parse(&k, PACKET_LINK_ETHERNET, f->bytes, f->captured, f->length, &used) == PACKET_OK;
}

static uint32_t run(const struct frame *in, int program)
{
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = in->bytes, .data_size_in = in->len, .repeat = REPEAT);

	if (bpf_prog_test_run_opts(program, &o) < 0 || (int32_t)o.retval != -1)
		fail("the kernel refuses to run the programs");
	return o.duration;
}

/* `copied`: it goes into the ring. What reading takes goes to `*read_ns`, unless that is NULL. */
static void measure(const char *name, const struct frame *in, bool down, bool copied, tap_frame_cb cb,
		    uint64_t *read_ns)
{
	uint32_t with = UINT32_MAX, without = UINT32_MAX;

	for (unsigned i = 0; i < ROUNDS; i++) {
		uint32_t ns = run(in, nothing);
		uint64_t began_ns;

		without = ns < without ? ns : without;
		ns = run(in, down ? fd.down : fd.up);
		with = ns < with ? ns : with;
		n_read = 0;
		began_ns = clock_monotonic_ns();
		tap_bpf.read(tap, 0, cb, NULL);
		if (read_ns && clock_monotonic_ns() - began_ns < *read_ns)
			*read_ns = clock_monotonic_ns() - began_ns;
		if (n_read != (copied ? REPEAT : 0))
			fail(name);
	}
	if (name)
		printf("%s %u\n", name, with > without ? with - without : 0);
}

int main(int argc, char **argv)
{
	static const struct tap_config c = {
		.section = "tap", .interface = "port0", .ring_kb = RING_KB, .max_stations = 64,
	};
	static const uint8_t timestamps[] = { 1, 1, 8, 10, 0, 0, 1, 2, 0, 0, 3, 4 };
	struct tcp_spec s = { .flags = ACK, .window = 60000, .n_options = sizeof timestamps };
	struct frame ack, data, udp;
	uint64_t ns = UINT64_MAX, parsed_ns = UINT64_MAX;
	struct bpf_object *o;
	char err[1024];

	memcpy(s.options, timestamps, sizeof timestamps);
	if (argc != 2 || unshare(CLONE_NEWNET) < 0 || system("ip link add port0 type veth peer name far0") != 0)
		fail("usage: bench_tap BENCH_OBJECT, as root");
	if (tap_bpf.open(&tap, &c, err, sizeof err) < 0)
		fail(err);
	fd = tap_bpf_fds(tap);
	o = bpf_object__open_file(argv[1], NULL);
	if (!o || bpf_object__load(o) < 0)
		fail("cannot load the bench's own programs");
	nothing = bpf_program__fd(bpf_object__find_program_by_name(o, "nothing"));
	ack = tcp_frame(&s, NULL);
	s.payload = 1400;
	s.down = true;
	data = tcp_frame(&s, NULL);
	udp = data;
	udp.bytes[14 + 9] = 17;

	measure("ack_up", &ack, false, true, count_frame, &ns);
	measure("data_down", &data, true, true, count_frame, &ns);
	measure("other_packet", &udp, true, false, count_frame, NULL);
	if (tap_bpf.station(tap, 0x020000000101u, true) < 0)
		fail("cannot count a station");
	measure("ack_up_of_a_counted_station", &ack, false, true, count_frame, &ns);
	measure(NULL, &ack, false, true, parse_frame, &parsed_ns);
	printf("read %u\nread_and_parsed %u\n", (unsigned)(ns / REPEAT), (unsigned)(parsed_ns / REPEAT));
	bpf_object__close(o);
	tap_bpf.close(tap);
	return 0;
}
