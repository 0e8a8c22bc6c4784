/*
 * Nanoseconds a packet in the marks' tc program, by the kernel's own count (BPF_PROG_TEST_RUN with `repeat`): lines
 * "NAME NS". Each is the difference between a run with the program and one with an empty program in its place, the
 * least of several rounds: what else the machine does only adds. usage: bench_mark BENCH_OBJECT
 */
#include "ecn_frame.h"
#include "mark/mark.h"
#include "mark/mark_bpf.h"
#include "mark/mark_stations.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 15, REPEAT = 100000, STATION = 2, OTHER = 3, IP_AT = 14 };

static struct mark *mark;
static struct mark_bpf_fds fd;
static int restore, nothing, next, restores;

static int fail(const char *what)
{
	fprintf(stderr, "bench_mark: %s\n", what);
	exit(1);
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

/* The packet described, to a station that is marked with `marks`. `ce`: whether it must come out with CE; ECT(0), whose
 * marks are spaced, may do either. */
static void measure(const char *name, struct ecn_spec s, uint64_t mac, uint8_t marks, bool ce)
{
	const struct mark_station station = mark_station_of(STATION, MARK_USUAL_INTERVAL_US),
				  to = mark_station_of(mac, 0);
	struct { uint32_t at; uint8_t bytes[12]; } back = { .at = IP_AT };
	uint32_t with = UINT32_MAX, without = UINT32_MAX;
	const uint32_t zero = 0;
	struct frame in, out, want;

	memcpy(s.mac, to.mac, sizeof s.mac);
	in = ecn_frame(&s);
	memcpy(back.bytes, in.bytes + IP_AT, sizeof back.bytes);
	if (ce)
		s.ecn = ECN_CE;
	want = ecn_frame(&s);
	if (bpf_map_update_elem(restores, &zero, &back, BPF_ANY) < 0)
		fail("cannot write the map");
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint32_t ns = run(&in, nothing, &out);

		without = ns < without ? ns : without;
		if (marks && mark_set(mark, &station, marks, MARK_MAX_TTL_MS) < 0)
			fail("cannot set marks");
		ns = run(&in, fd.down, &out);
		with = ns < with ? ns : with;
		if (s.ecn != ECN_ECT0 && (out.len != want.len || memcmp(out.bytes, want.bytes, want.len)))
			fail(name);
	}
	mark_release_all(mark);
	printf("%s %u\n", name, with > without ? with - without : 0);
}

int main(int argc, char **argv)
{
	const struct config_mark c = {.enabled = true, .backend = "bpf", .interface = "port0", .max_stations = 64};
	struct ecn_spec s = {.ecn = ECN_ECT1, .payload = 1200};
	struct bpf_object *o;
	char err[1024];

	if (argc != 2 || unshare(CLONE_NEWNET) < 0 || system("ip link add port0 type veth peer name far0") != 0)
		fail("usage: bench_mark BENCH_OBJECT, as root");
	if (mark_open(&mark, &c, err, sizeof err) < 0)
		fail(err);
	fd = mark_bpf_fds(mark);
	o = bpf_object__open_file(argv[1], NULL);
	if (!o || bpf_object__load(o) < 0)
		fail("cannot load the bench's own programs");
	restore = bpf_program__fd(bpf_object__find_program_by_name(o, "restore"));
	nothing = bpf_program__fd(bpf_object__find_program_by_name(o, "nothing"));
	next = bpf_object__find_map_fd_by_name(o, "next");
	restores = bpf_object__find_map_fd_by_name(o, "restores");

	measure("ect1", s, STATION, MARK_ALL, true);
	s.v6 = true;
	measure("ect1_ipv6", s, STATION, MARK_ALL, true);
	s.v6 = false;
	s.ecn = ECN_ECT0;
	measure("ect0", s, STATION, MARK_ALL, false);
	s.ecn = ECN_NOT_ECT;
	measure("not_ect", s, STATION, MARK_ALL, false);
	s.ecn = ECN_ECT1;
	measure("other_station", s, OTHER, MARK_ALL, false);
	bpf_object__close(o);
	mark_close(mark);
	return 0;
}
