/* The pure parts of marks: when a packet with ECT(0) is due, and the table of stations. */
#include "check.h"
#include "mark/bpf/mark_bpf_maps.h"
#include "mark/mark_stations.h"

#include <errno.h>

enum { INTERVAL_NS = 100000000, PACKET_NS = 100000 };

/* 1/√n to a thousandth, by whole numbers: the least r with r² n >= 10^6. */
static uint32_t inverse_root_permille(uint32_t n)
{
	uint32_t r = 1;

	while (r * r * n < 1000000)
		r++;
	return r;
}

/* Marks by packets every 100 µs from `from_ns` to `to_ns`; the time of the last one to `*last_ns`. */
static unsigned marks(struct mark_bpf_spacing *p, uint64_t since_ns, uint64_t from_ns, uint64_t to_ns,
		      uint64_t *last_ns)
{
	unsigned n = 0;
	uint64_t t;

	for (t = from_ns; t < to_ns; t += PACKET_NS)
		if (mark_bpf_due(p, since_ns, INTERVAL_NS, t)) {
			n++;
			*last_ns = t;
		}
	return n;
}

static void spacing(void)
{
	struct mark_bpf_spacing p = { 0 };
	const uint64_t since = UINT64_C(5000000000);
	uint64_t last = 0, before;
	unsigned n = 0, i;

	test("spacing: the first at once, the next an interval later");
	CHECK(mark_bpf_due(&p, since, INTERVAL_NS, since));
	CHECK(!mark_bpf_due(&p, since, INTERVAL_NS, since));
	CHECK_EQ(marks(&p, since, since, since + INTERVAL_NS - PACKET_NS, &last), 0);
	p = (struct mark_bpf_spacing){ 0 };
	CHECK_EQ(marks(&p, since, since, since + INTERVAL_NS + PACKET_NS, &last), 2);
	p = (struct mark_bpf_spacing){ 0 };
	CHECK(mark_bpf_due(&p, since, INTERVAL_NS, since));
	test("spacing: the gap after the n-th mark is the interval over the root of n, but for Newton's first steps");
	before = since;
	for (i = 2; i < 200; i++) {
		while (!mark_bpf_due(&p, since, INTERVAL_NS, before += PACKET_NS))
			;
		if (i > 6) {
			const uint64_t gap = p.next_ns - before, want = (uint64_t)INTERVAL_NS / 1000 *
									inverse_root_permille(i);

			CHECK(gap + 2 * PACKET_NS >= want * 97 / 100 && gap <= want * 103 / 100 + 2 * PACKET_NS);
		}
	}
	CHECK_EQ(p.count, 199);
	test("spacing: a station that sent nothing for a while makes nothing up for");
	p = (struct mark_bpf_spacing){ 0 };
	n = marks(&p, since, since, since + 3 * (uint64_t)INTERVAL_NS, &last);
	CHECK(n > 2);
	before = since + 100 * (uint64_t)INTERVAL_NS;
	CHECK_EQ(marks(&p, since, before, before + 3 * PACKET_NS, &last), 2); /* the one that is due, and its next */
	test("spacing: a new state keeps the distance to the last mark, and goes on nearly where the one before was");
	n = p.count;
	before = last + PACKET_NS;
	last = p.next_ns;
	CHECK(last > before + PACKET_NS);
	CHECK_EQ(marks(&p, before, before, last, &last), 0);
	CHECK(mark_bpf_due(&p, before, INTERVAL_NS, last));
	CHECK_EQ(p.count, n - 1);
	test("spacing: one that comes and goes marks no more often than one that stays");
	p = (struct mark_bpf_spacing){ 0 };
	for (i = 0; i < 40; i++) {
		const uint64_t begin = since + i * (uint64_t)INTERVAL_NS / 4;

		n = i ? n : 0;
		n += marks(&p, begin, begin, begin + INTERVAL_NS / 8, &last);
	}
	CHECK(n >= 5 && n <= 10);
	test("spacing: one that ended long ago is forgotten");
	before = p.next_ns + 40 * (uint64_t)INTERVAL_NS;
	CHECK(mark_bpf_due(&p, before, INTERVAL_NS, before));
	CHECK_EQ(p.count, 1);
	CHECK_EQ(p.next_ns - before, mark_bpf_gap_ns(INTERVAL_NS, MARK_BPF_ONE));
	test("spacing: a clock behind the state marks nothing");
	CHECK(!mark_bpf_due(&p, before, INTERVAL_NS, before - 1));
}

static void seals(void)
{
	const struct mark_bpf_station a = { .mac = { 2, 0, 0, 0, 0, 1 } };
	struct mark_bpf_state s = { .deadline_ns = 1, .since_ns = 2, .interval_ns = 3, .marks = 1 };
	const uint32_t seal = mark_bpf_seal(&a, &s);
	struct mark_bpf_station b = a;

	test("a seal is of the station, and of each thing that was set");
	for (unsigned i = 0; i < 6; i++) {
		b = a;
		b.mac[i] ^= 4;
		CHECK(mark_bpf_seal(&b, &s) != seal);
	}
	s.deadline_ns ^= UINT64_C(1) << 40;
	CHECK(mark_bpf_seal(&a, &s) != seal);
	s.deadline_ns = 1;
	s.since_ns++;
	CHECK(mark_bpf_seal(&a, &s) != seal);
	s.since_ns = 2;
	s.interval_ns++;
	CHECK(mark_bpf_seal(&a, &s) != seal);
	s.interval_ns = 3;
	s.marks = 3;
	CHECK(mark_bpf_seal(&a, &s) != seal);
}

static void table(void)
{
	struct mark_stations *t = mark_stations_new(3);
	const struct mark_station one = mark_station_of(UINT64_C(0x0203040506f7), 0), two = mark_station_of(2, 0),
				  three = mark_station_of(3, 0), four = mark_station_of(4, 0);
	struct mark_station over;

	test("stations: an address lies as in a frame");
	CHECK_EQ(memcmp(one.mac, "\x02\x03\x04\x05\x06\xf7", 6), 0);
	test("stations: set, renewed, removed and expired; a full table says so");
	CHECK_EQ(mark_stations_set(t, &one, 100), 1);
	CHECK_EQ(mark_stations_set(t, &two, 200), 1);
	CHECK_EQ(mark_stations_set(t, &one, 300), 0);
	CHECK_EQ(mark_stations_set(t, &three, 50), 1);
	CHECK_EQ(mark_stations_set(t, &four, 50), -ENOSPC);
	CHECK(!mark_stations_expire(t, 49, &over));
	CHECK(mark_stations_expire(t, 200, &over));
	CHECK(mark_stations_expire(t, 200, &over));
	CHECK(!mark_stations_expire(t, 200, &over));
	CHECK_EQ(mark_stations_count(t), 1);
	test("stations: a renewed one keeps its number, one that comes again has another");
	{
		const uint32_t since = mark_stations_since(t, &one);

		CHECK(since && !mark_stations_since(t, &two));
		CHECK_EQ(mark_stations_set(t, &one, 400), 0);
		CHECK_EQ(mark_stations_since(t, &one), since);
		CHECK(mark_stations_remove(t, &one));
		CHECK_EQ(mark_stations_set(t, &one, 300), 1);
		CHECK(mark_stations_since(t, &one) && mark_stations_since(t, &one) != since);
	}
	CHECK(!mark_stations_remove(t, &two));
	CHECK(mark_stations_remove(t, &one));
	CHECK_EQ(mark_stations_count(t), 0);
	mark_stations_set(t, &one, 100);
	mark_stations_clear(t);
	CHECK_EQ(mark_stations_count(t), 0);
	mark_stations_free(t);
	test("what two policies want of a station is what either wants");
	CHECK_EQ(mark_meet(0, MARK_ECT1), MARK_ECT1);
	CHECK_EQ(mark_meet(MARK_ECT0, MARK_ECT1), MARK_ALL);
	CHECK_EQ(mark_meet(0, 0), 0);
}

int main(void)
{
	spacing();
	seals();
	table();
	return done();
}
