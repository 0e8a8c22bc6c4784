/*
 * The marks' tc programs in this machine's kernel: loaded by the backend as the daemon does it, then given packets one
 * by one (BPF_PROG_TEST_RUN); the whole packet that comes out is compared. (Real packets through them: tests/mark.py.)
 */
#include "base/clock.h"
#include "check.h"
#include "ecn_frame.h"
#include "mark/bpf/mark_bpf_maps.h"
#include "mark/mark.h"
#include "mark/mark_bpf.h"
#include "mark/mark_stations.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <sched.h>
#include <unistd.h>

enum { MOST_STATIONS = 4, CPUS = 1024, STATION = 2 };

static struct mark *mark;
static struct mark_bpf_fds fd;

static uint64_t counter(enum mark_bpf_counter i)
{
	static struct mark_bpf_counts counts[CPUS];
	const uint32_t zero = 0;
	uint64_t n = 0;

	CHECK_EQ(bpf_map_lookup_elem(fd.counters, &zero, counts), 0);
	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		n += counts[cpu].n[i];
	return n;
}

/* Everything that was set, and every spacing, is forgotten. */
static void fresh(const char *name)
{
	static const struct mark_bpf_spacing none;

	test(name);
	mark_release_all(mark);
	for (uint32_t slot = 0; slot < MARK_BPF_SLOTS; slot++)
		CHECK_EQ(bpf_map_update_elem(fd.spacings, &slot, &none, BPF_ANY), 0);
}

static struct ecn_spec to(uint64_t mac, uint8_t ecn)
{
	const struct mark_station s = mark_station_of(mac, 0);
	struct ecn_spec spec = { .ecn = ecn, .dscp = 0x2a, .payload = 100 };

	memcpy(spec.mac, s.mac, sizeof spec.mac);
	return spec;
}

static int set(uint64_t mac, uint8_t marks, uint32_t interval_us, uint32_t ttl_ms)
{
	const struct mark_station s = mark_station_of(mac, interval_us);

	return mark_set(mark, &s, marks, ttl_ms);
}

/* The ECN field that a packet comes out with, as its whole bytes say; 255: something else changed. The program never
 * has a say in where a packet goes. */
static uint8_t through(struct ecn_spec s)
{
	const struct frame in = ecn_frame(&s);
	struct frame out = { .len = 0 }, want;
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = in.bytes, .data_size_in = in.len, .data_out = out.bytes,
		    .data_size_out = sizeof out.bytes);

	CHECK_EQ(bpf_prog_test_run_opts(fd.down, &o), 0);
	CHECK_EQ((int32_t)o.retval, TC_ACT_UNSPEC);
	for (uint8_t ecn = ECN_NOT_ECT; ecn <= ECN_CE; ecn++) {
		s.ecn = ecn;
		want = ecn_frame(&s);
		if (o.data_size_out == want.len && !memcmp(out.bytes, want.bytes, want.len))
			return ecn;
	}
	return 255;
}

static void what_is_marked(void)
{
	for (unsigned kind = 0; kind < 4; kind++) {
		static const char *const names[] = {
			"IPv4 UDP: ECT(1) to a marked station comes out with CE and right checksums, all else as it "
			"was",
			"IPv4 TCP: the same", "IPv6 UDP: the same", "IPv6 TCP: the same",
		};
		struct ecn_spec s;

		fresh(names[kind]);
		for (uint8_t ecn = ECN_NOT_ECT; ecn <= ECN_CE; ecn++) {
			s = to(STATION, ecn);
			s.tcp = kind & 1;
			s.v6 = kind & 2;
			CHECK_EQ(through(s), ecn); /* not asked for */
			CHECK_EQ(set(STATION, MARK_ECT1, 0, 1000), 0);
			CHECK_EQ(through(s), ecn == ECN_ECT1 ? ECN_CE : ecn);
			mark_release_all(mark);
			CHECK_EQ(through(s), ecn);
		}
	}
}

static void what_is_not(void)
{
	struct ecn_spec s = to(STATION, ECN_ECT1);
	uint64_t ce, marked;

	fresh("never Not-ECT; what has CE is counted as that, and not as marked");
	CHECK_EQ(set(STATION, MARK_ALL, 5000, 1000), 0);
	ce = counter(MARK_BPF_N_CE);
	marked = counter(MARK_BPF_N_MARKED_ECT1);
	CHECK_EQ(through(to(STATION, ECN_CE)), ECN_CE);
	CHECK_EQ(through(to(STATION, ECN_NOT_ECT)), ECN_NOT_ECT);
	CHECK_EQ(counter(MARK_BPF_N_CE), ce + 1);
	CHECK_EQ(counter(MARK_BPF_N_MARKED_ECT1), marked);
	CHECK_EQ(through(s), ECN_CE);
	CHECK_EQ(counter(MARK_BPF_N_MARKED_ECT1), marked + 1);
	test("other stations, groups, VLAN tags and other protocols are left as they are");
	CHECK_EQ(through(to(3, ECN_ECT1)), ECN_ECT1);
	s.mac[0] |= 1;
	CHECK_EQ(through(s), ECN_ECT1);
	memset(s.mac, 0xff, 6);
	CHECK_EQ(through(s), ECN_ECT1);
	s = to(STATION, ECN_ECT1);
	s.tag = ETH_P_8021Q;
	CHECK_EQ(through(s), ECN_ECT1);
	s.tag = ETH_P_8021AD;
	CHECK_EQ(through(s), ECN_ECT1);
	s.tag = 0;
	s.type = ETH_P_ARP;
	CHECK_EQ(through(s), ECN_ECT1);
	s.type = ETH_P_IPV6; /* says so, and is not */
	CHECK_EQ(through(s), ECN_ECT1);
	test("nothing can be set for a group or nobody, with marks, interval or time to live that there are not");
	CHECK_EQ(set(0, MARK_ECT1, 0, 1000), -EINVAL);
	CHECK_EQ(set(UINT64_C(0x010000000002), MARK_ECT1, 0, 1000), -EINVAL);
	CHECK_EQ(set(STATION, 0, 0, 1000), -EINVAL);
	CHECK_EQ(set(STATION, 4, 0, 1000), -EINVAL);
	CHECK_EQ(set(STATION, MARK_ECT0, 4999, 1000), -EINVAL);
	CHECK_EQ(set(STATION, MARK_ECT0, 1000001, 1000), -EINVAL);
	CHECK_EQ(set(STATION, MARK_ECT1, 0, 0), -EINVAL);
	CHECK_EQ(set(STATION, MARK_ECT1, 0, 1001), -EINVAL);
}

static void spaced(void)
{
	const struct ecn_spec ect0 = to(STATION, ECN_ECT0), ect1 = to(STATION, ECN_ECT1);
	uint64_t first_us, last_us, end_us, n = 0;

	fresh("ECT(0): the first, then none for an interval, then one now and then, and ECT(1) each time");
	CHECK_EQ(set(STATION, MARK_ALL, 50000, 1000), 0);
	CHECK_EQ(through(ect1), ECN_CE);
	first_us = end_us = clock_monotonic_us();
	while (through(ect0) == ECN_ECT0 && end_us < first_us + 900000)
		end_us = clock_monotonic_us();
	first_us = end_us; /* no later than the mark */
	while (through(ect0) == ECN_ECT0 && end_us < first_us + 900000)
		end_us = clock_monotonic_us();
	CHECK(clock_monotonic_us() - first_us >= 50000 - 10000); /* the coarse clock is late by a tick */
	CHECK_EQ(through(ect1), ECN_CE);
	first_us = clock_monotonic_us();
	CHECK_EQ(set(STATION, MARK_ALL, 50000, 1000), 0); /* a renewal changes nothing */
	last_us = end_us = first_us;
	while (n < 5 && end_us < first_us + 900000) {
		const uint8_t ecn = through(ect0);

		end_us = clock_monotonic_us();
		if (ecn != ECN_CE)
			continue;
		n++;
		last_us = end_us;
	}
	CHECK_EQ(n, 5);
	CHECK(last_us - first_us >= 50000); /* 50 ms (1/√2 + … + 1/√6), by Newton's method: some 110 */
	fresh("ECT(0) is left alone where it is not asked for, and ECT(1) where that is not");
	CHECK_EQ(set(STATION, MARK_ECT0, 5000, 1000), 0);
	CHECK_EQ(through(ect1), ECN_ECT1);
	CHECK_EQ(set(STATION, MARK_ECT1, 0, 1000), 0);
	for (end_us = clock_monotonic_us() + 20000; clock_monotonic_us() < end_us;)
		CHECK_EQ(through(ect0), ECN_ECT0);
}

/* Where a station's search for a slot begins. */
static uint32_t first_slot(uint64_t mac)
{
	const struct mark_station s = mark_station_of(mac, 0);
	struct mark_bpf_station key = { 0 };

	memcpy(key.mac, s.mac, sizeof key.mac);
	return mark_bpf_seal(&key, &(struct mark_bpf_state){ 0 }) % MARK_BPF_SLOTS;
}

/* Does one of these packets get CE soon? The coarse clock may be a tick behind the time at which a state began. */
static bool one_is_marked(struct ecn_spec s)
{
	const uint64_t end_us = clock_monotonic_us() + 900000;

	while (clock_monotonic_us() < end_us)
		if (through(s) == ECN_CE)
			return true;
	return false;
}

static void apart(void)
{
	const struct ecn_spec one = to(STATION, ECN_ECT0);
	struct ecn_spec two;
	uint64_t mac = STATION + 1;

	fresh("two stations whose slots would be one: each has a spacing of its own");
	while (first_slot(mac) != first_slot(STATION))
		mac++;
	two = to(mac, ECN_ECT0);
	CHECK_EQ(set(STATION, MARK_ECT0, 1000000, 1000), 0);
	CHECK_EQ(set(mac, MARK_ECT0, 1000000, 1000), 0);
	CHECK(one_is_marked(one));
	CHECK(one_is_marked(two));
	for (unsigned i = 0; i < 10; i++) {
		CHECK_EQ(through(one), ECN_ECT0);
		CHECK_EQ(through(two), ECN_ECT0);
	}
	test("a station that takes the slot of one that left has nothing of its history; one that comes back has its "
	     "own");
	mark_release_all(mark);
	CHECK_EQ(set(mac, MARK_ECT0, 1000000, 1000), 0); /* it comes first now, so that it has the other's slot */
	CHECK(one_is_marked(two));
	CHECK_EQ(through(two), ECN_ECT0);
	mark_release_all(mark);
	CHECK_EQ(set(mac, MARK_ECT0, 1000000, 1000), 0);
	CHECK_EQ(through(two), ECN_ECT0);
}

static void ends(void)
{
	const struct ecn_spec s = to(STATION, ECN_ECT1);
	uint64_t begin_us, expired;

	fresh("a state ends at its deadline, to the microsecond, though nobody ends it");
	expired = counter(MARK_BPF_N_EXPIRED);
	begin_us = clock_monotonic_us();
	CHECK_EQ(set(STATION, MARK_ECT1, 0, 100), 0);
	while (through(s) == ECN_CE && clock_monotonic_us() < begin_us + 2000000)
		;
	CHECK(clock_monotonic_us() >= begin_us + 100000);
	CHECK_EQ(through(s), ECN_ECT1);
	CHECK_EQ(through(s), ECN_ECT1);
	CHECK(counter(MARK_BPF_N_EXPIRED) >= expired + 2);
	CHECK_EQ(set(STATION, MARK_ECT1, 0, 100), 0);
	CHECK_EQ(through(s), ECN_CE);
	test("a release ends it at once, of one station alone");
	CHECK_EQ(set(STATION, MARK_ECT1, 0, 1000), 0);
	CHECK_EQ(set(3, MARK_ECT1, 0, 1000), 0);
	CHECK_EQ(mark_release(mark, &(struct mark_station){ .mac = { 0, 0, 0, 0, 0, STATION } }), 0);
	CHECK_EQ(through(s), ECN_ECT1);
	CHECK_EQ(through(to(3, ECN_ECT1)), ECN_CE);
	test("a full table refuses another station and keeps its own; room comes back with time");
	for (uint64_t mac = 4; mac < 3 + MOST_STATIONS; mac++)
		CHECK_EQ(set(mac, MARK_ECT1, 0, 1000), 0);
	CHECK_EQ(set(20, MARK_ECT1, 0, 1000), -ENOSPC);
	CHECK_EQ(through(to(3, ECN_ECT1)), ECN_CE);
	mark_poll(mark, clock_monotonic_us() + 2000000);
	CHECK_EQ(set(20, MARK_ECT1, 0, 1000), 0);
	CHECK_EQ(through(to(3, ECN_ECT1)), ECN_ECT1);
}

static void replaced(void)
{
	const struct mark_bpf_station key = { .mac = { 0, 0, 0, 0, 0, 20 } }, other = { .mac = { 0, 0, 0, 0, 0, 21 } };
	const uint64_t before = counter(MARK_BPF_N_REPLACED);
	struct mark_bpf_state state;

	fresh("an entry whose seal is not of this station is believed by nobody");
	CHECK_EQ(set(20, MARK_ECT1, 0, 1000), 0);
	CHECK_EQ(bpf_map_lookup_elem(fd.states, &key, &state), 0);
	CHECK_EQ(bpf_map_update_elem(fd.states, &other, &state, BPF_ANY), 0);
	CHECK_EQ(through(to(20, ECN_ECT1)), ECN_CE);
	CHECK_EQ(through(to(21, ECN_ECT1)), ECN_ECT1);
	CHECK_EQ(counter(MARK_BPF_N_REPLACED), before + 1);
}

int main(void)
{
	const struct config_mark c = {
		.enabled = true, .backend = "bpf", .interface = "port0,port1", .max_stations = MOST_STATIONS,
	};
	struct action_stats stats;
	char err[1024] = "";

	if (unshare(CLONE_NEWNET) < 0 || system("ip link add port0 type veth peer name far0") != 0) {
		skip("tc programs", "network namespaces and veth need root");
		return done();
	}
	if (mark_check(&c, err, sizeof err) < 0) {
		skip("tc programs", err);
		return done();
	}
	test("the kernel's verifier takes both programs, and they are on the port");
	CHECK_EQ(mark_open(&mark, &c, err, sizeof err), 0);
	if (!mark) {
		printf("# %s\n", err);
		return done();
	}
	CHECK_EQ(mark_backend(mark), OAL_REWRITE_BACKEND_BPF);
	CHECK_EQ(system("tc filter show dev port0 ingress | grep -q mark_up"), 0);
	CHECK_EQ(system("tc filter show dev port0 egress | grep -q mark_down"), 0);
	fd = mark_bpf_fds(mark);
	what_is_marked();
	what_is_not();
	spaced();
	apart();
	ends();
	replaced();
	test("what was seen, marked and left adds up");
	mark_stats(mark, &stats);
	CHECK(stats.ready);
	CHECK(stats.packets_changed > 0);
	CHECK_EQ(stats.packets_seen, stats.packets_changed + stats.packets_skipped);
	CHECK_EQ(counter(MARK_BPF_N_FAILED), 0);
	test("closed, nothing of it is left on the port");
	mark_close(mark);
	CHECK(system("tc filter show dev port0 ingress | grep -q mark") != 0);
	CHECK(system("tc filter show dev port0 egress | grep -q mark") != 0);
	return done();
}
