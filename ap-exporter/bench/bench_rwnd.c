/*
 * Nanoseconds a packet in the tc programs, by the kernel's own count (BPF_PROG_TEST_RUN with `repeat`): lines "NAME
 * NS". Each is the difference between a run with the program and one with an empty program in its place, the least of
 * several rounds: what else the machine does only adds. usage: bench_rwnd BENCH_OBJECT
 */
#include "rewrite/rwnd.h"
#include "rewrite/rwnd_bpf.h"
#include "tcp_frame.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 15, REPEAT = 100000 };

static struct rwnd *rwnd;
static struct rwnd_bpf_fds fd;
static int restore, nothing, next, restores;

static int fail(const char *what)
{
	fprintf(stderr, "bench_rwnd: %s\n", what);
	exit(1);
}

static void clamp(const struct tcp_spec *s)
{
	struct rwnd_flow f = {
		.client_port = 5000, .server_port = 443, .addr_len = s->v6 ? 16 : 4, .scale = 7, .mss_bytes = 1448,
		.direction = s->down ? RWND_DOWN : RWND_UP,
	};

	spec_addresses(s, f.client_addr, f.server_addr);
	if (rwnd_set(rwnd, &f, 65536, RWND_MAX_TTL_MS) < 0)
		fail("cannot set a clamp");
}

static uint32_t run(const struct frame *in, int program, struct frame *out)
{
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = in->bytes, .data_size_in = in->len, .data_out = out->bytes,
	            .data_size_out = sizeof out->bytes, .repeat = REPEAT);
	const uint32_t zero = 0;

	if (bpf_map_update_elem(next, &zero, &program, BPF_ANY) < 0 || bpf_prog_test_run_opts(restore, &o) < 0 ||
	    (int32_t)o.retval != -1)
		fail("the kernel refuses to run the programs");
	out->len = o.data_size_out;
	return o.duration;
}

/* The packet described, of a clamped flow or not. `window`: the one that it must come out with. */
static void measure(const char *name, struct tcp_spec s, bool clamped, uint16_t window)
{
	struct { uint32_t at; uint8_t bytes[4]; } back;
	uint32_t at, with = UINT32_MAX, without = UINT32_MAX;
	const struct frame in = tcp_frame(&s, &at);
	struct frame out, want;
	const uint32_t zero = 0;

	s.window = window;
	want = tcp_frame(&s, NULL);
	back.at = at + 14;
	memcpy(back.bytes, in.bytes + at + 14, 4);
	if (bpf_map_update_elem(restores, &zero, &back, BPF_ANY) < 0)
		fail("cannot write the map");
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint32_t ns = run(&in, nothing, &out);

		without = ns < without ? ns : without;
		if (clamped)
			clamp(&s);
		ns = run(&in, s.down ? fd.down : fd.up, &out);
		with = ns < with ? ns : with;
		if (out.len != want.len || memcmp(out.bytes, want.bytes, want.len))
			fail(name);
	}
	rwnd_release_all(rwnd);
	printf("%s %u\n", name, with > without ? with - without : 0);
}

int main(int argc, char **argv)
{
	const struct config_rwnd c = { .enabled = true, .backend = "bpf", .interface = "port0", .max_flows = 64 };
	static const uint8_t timestamps[] = { 1, 1, 8, 10, 0, 0, 1, 2, 0, 0, 3, 4 };
	struct tcp_spec ack = { .flags = ACK, .window = 60000, .n_options = sizeof timestamps };
	struct bpf_object *o;
	struct tcp_spec s;
	char err[1024];

	memcpy(ack.options, timestamps, sizeof timestamps);
	if (argc != 2 || unshare(CLONE_NEWNET) < 0 || system("ip link add port0 type veth peer name far0") != 0)
		fail("usage: bench_rwnd BENCH_OBJECT, as root");
	if (rwnd_open(&rwnd, &c, err, sizeof err) < 0)
		fail(err);
	fd = rwnd_bpf_fds(rwnd);
	o = bpf_object__open_file(argv[1], NULL);
	if (!o || bpf_object__load(o) < 0)
		fail("cannot load the bench's own programs");
	restore = bpf_program__fd(bpf_object__find_program_by_name(o, "restore"));
	nothing = bpf_program__fd(bpf_object__find_program_by_name(o, "nothing"));
	next = bpf_object__find_map_fd_by_name(o, "next");
	restores = bpf_object__find_map_fd_by_name(o, "restores");

	measure("clamped_ack", ack, true, 512);
	s = ack; s.v6 = true;
	measure("clamped_ack_ipv6", s, true, 512);
	s = ack; s.tags[0] = 0x88a8; s.tags[1] = 0x8100;
	measure("clamped_ack_qinq", s, true, 512);
	s = ack; s.window = 400;
	measure("ack_below", s, true, 400);
	measure("ack_of_another_flow", ack, false, ack.window);
	s = ack; s.down = true;
	measure("clamped_ack_down", s, true, 512);
	s.v6 = true;
	measure("clamped_ack_down_ipv6", s, true, 512);
	s.v6 = false; s.payload = 1400;
	measure("data_down", s, false, s.window);
	bpf_object__close(o);
	rwnd_close(rwnd);
	return 0;
}
