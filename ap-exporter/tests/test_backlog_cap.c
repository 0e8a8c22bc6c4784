/* The law `backlog_cap`: uploads through a bottleneck, whose queue is what is on its way beyond what the path holds. */
#include "check.h"
#include "control/control.h"
#include "control/law.h"

#include <string.h>

enum {
	STEP_US = 20000,
	LONG_AGO_US = 1000000000, /* where time begins */
	MOST = 8, /* flows, each of a station of its own unless a scene says otherwise */
	MSS = 1448,
	C_KBPS = 20000, /* what the air carries up */
	AIR_US = 4000, /* smallest round trip of ACK and data on the air */
	WIRE_US = 252000, /* to the server and back */
	BASE_US = AIR_US + WIRE_US,
	CWND_BYTES = 1000000, /* of a sender that nothing holds back */
	SETTLE = 1500, /* steps: half a minute */
};

struct scene {
	struct control *control;
	struct oal_policy policy;
	struct control_station stations[MOST];
	struct control_flow flows[MOST];
	uint32_t window_bytes[MOST]; /* as a data path has them; 0: none */
	uint32_t cwnd_bytes[MOST];
	uint64_t t_us;
	uint32_t queue_us;
	unsigned n, sets, rows;
	bool shadow;
};

static struct scene scene_new(unsigned flows)
{
	struct scene s = {.t_us = LONG_AGO_US, .n = flows};
	unsigned i;

	CHECK_EQ(control_new(&s.control, MOST, MOST), 0);
	oal_policy_defaults(&s.policy);
	control_policy(s.control, &s.policy);
	control_law(s.control, &law_backlog_cap, NULL, 0);
	for (i = 0; i < MOST; i++) {
		s.cwnd_bytes[i] = CWND_BYTES;
		s.stations[i] = (struct control_station){.mac = 2 + i, .place = (uint16_t)i};
		s.flows[i] = (struct control_flow){
			.id = 1 + i, .place = (uint16_t)i, .station = (uint16_t)i, .mss_bytes = MSS,
			.announced_bytes = 4000000, .scale = 7, .can_clamp = true,
		};
	}
	return s;
}

static uint32_t on_the_way(const struct scene *s, unsigned i)
{
	const uint32_t window = s->window_bytes[i];

	return !s->shadow && window && window < s->cwnd_bytes[i] ? window : s->cwnd_bytes[i];
}

static uint32_t rate_kbps(const struct scene *s, unsigned i)
{
	return (uint32_t)((uint64_t)on_the_way(s, i) * 8000 / (BASE_US + s->queue_us));
}

static void step(struct scene *s, unsigned steps)
{
	while (steps--) {
		struct control_input in = {
			.stations = s->stations, .n_stations = MOST, .flows = s->flows, .n_flows = s->n,
			.class = CONTROL_NO_CLASS, .shadow = s->shadow,
		};
		const struct control_action *actions;
		uint64_t bytes = 0;
		unsigned i, n;

		s->t_us += STEP_US;
		for (i = 0; i < s->n; i++)
			bytes += on_the_way(s, i);
		s->queue_us = bytes * 8000 / C_KBPS > BASE_US ? (uint32_t)(bytes * 8000 / C_KBPS) - BASE_US : 0;
		for (i = 0; i < s->n; i++) {
			struct control_flow *f = &s->flows[i];

			f->delivered_bytes += (uint64_t)rate_kbps(s, i) * STEP_US / 8000;
			f->rtt_down_us = AIR_US + s->queue_us;
			f->rtt_up_us = WIRE_US;
			f->unacked_bytes = (uint32_t)((uint64_t)rate_kbps(s, i) * WIRE_US / 8000);
		}
		in.t_us = s->t_us;
		n = control_step(s->control, &in, &actions);
		for (i = 0; i < n; i++) {
			s->window_bytes[actions[i].place] = actions[i].window_bytes;
			s->sets += actions[i].window_bytes != 0;
			s->rows += actions[i].report;
		}
	}
}

/* So that the least round trip is known: before anybody fills the queue. */
static void begin(struct scene *s)
{
	unsigned i;

	for (i = 0; i < s->n; i++)
		s->cwnd_bytes[i] = 20000;
	step(s, 100);
	for (i = 0; i < s->n; i++)
		s->cwnd_bytes[i] = CWND_BYTES;
}

static uint64_t sum_kbps(const struct scene *s)
{
	uint64_t sum = 0;
	unsigned i;

	for (i = 0; i < s->n; i++)
		sum += rate_kbps(s, i);
	return sum;
}

static void holds_the_wait(void)
{
	struct scene s = scene_new(7);
	unsigned i;

	test("backlog_cap: seven uploads that fill a queue of seconds wait as long as is wanted, at the full rate");
	begin(&s);
	CHECK_EQ(s.sets, 0);
	step(&s, 1);
	CHECK(s.queue_us > 2000000);
	test("backlog_cap: and that within three seconds");
	step(&s, 3000000 / STEP_US);
	CHECK(sum_kbps(&s) >= C_KBPS * 95 / 100 && s.queue_us < 2 * s.policy.cap_wait_us);
	step(&s, SETTLE);
	CHECK(s.queue_us < 2 * s.policy.cap_wait_us);
	CHECK(sum_kbps(&s) >= C_KBPS * 95 / 100);
	test("backlog_cap: each terminal has the same");
	for (i = 0; i < s.n; i++)
		CHECK(s.window_bytes[i] > s.window_bytes[0] * 9 / 10 &&
		      s.window_bytes[i] < s.window_bytes[0] * 11 / 10);
	test("backlog_cap: a terminal with two flows has no more than one with one");
	s.flows[6].station = 5;
	step(&s, SETTLE);
	CHECK(s.window_bytes[5] + s.window_bytes[6] < s.window_bytes[0] * 12 / 10);
	CHECK(s.window_bytes[5] + s.window_bytes[6] > s.window_bytes[0] * 8 / 10);
	CHECK(sum_kbps(&s) >= C_KBPS * 95 / 100);
	test("backlog_cap: what one does not use the others have");
	s.cwnd_bytes[0] = 20000;
	step(&s, SETTLE);
	CHECK(sum_kbps(&s) >= C_KBPS * 95 / 100);
	CHECK(s.queue_us < 2 * s.policy.cap_wait_us);
	control_free(s.control);
}

static void leaves_alone(void)
{
	struct scene s = scene_new(3);
	unsigned i;

	test("backlog_cap: uploads that wait for nothing are left alone");
	for (i = 0; i < s.n; i++)
		s.cwnd_bytes[i] = 200000;
	step(&s, SETTLE);
	CHECK_EQ(s.sets, 0);
	test("backlog_cap: one whose server's scale nobody knows is left alone, whatever waits");
	for (i = 0; i < s.n; i++)
		s.cwnd_bytes[i] = CWND_BYTES;
	s.flows[1].can_clamp = false;
	step(&s, SETTLE);
	CHECK(s.window_bytes[0] && !s.window_bytes[1] && s.window_bytes[2]);
	test("backlog_cap: caps are released after hold_us when there is nothing to hold back any more");
	s.cwnd_bytes[0] = s.cwnd_bytes[1] = s.cwnd_bytes[2] = 10000;
	step(&s, SETTLE);
	CHECK(!s.window_bytes[0] && !s.window_bytes[2]);
	control_free(s.control);
	s = scene_new(7);
	s.shadow = true;
	begin(&s);
	test("backlog_cap: in shadow windows are worked out anew at each step, and few rows say so");
	step(&s, SETTLE);
	CHECK(s.window_bytes[0] > 10 * MSS && s.rows < 7 * 20);
	control_free(s.control);
}

static void in_time(void)
{
	struct scene s = scene_new(7);
	unsigned sets;

	test("backlog_cap: caps are renewed within their time to live, and none is below the floor");
	begin(&s);
	step(&s, SETTLE);
	sets = s.sets;
	step(&s, s.policy.ttl_us / STEP_US);
	CHECK(s.sets >= sets + 2 * s.n);
	s.policy.cap_wait_us = 1000;
	s.policy.floor_mss = 50;
	control_policy(s.control, &s.policy);
	step(&s, SETTLE);
	CHECK(s.window_bytes[0] >= 50 * MSS);
	control_free(s.control);
}

/* --- the published table */

static struct scene paper(unsigned flows)
{
	struct scene s = scene_new(flows);

	s.policy.cap_period_us = 10000000;
	control_policy(s.control, &s.policy);
	begin(&s);
	return s;
}

/* Round trip so many times the least, by what is on the way; nobody obeys. */
static void at_ratio(struct scene *s, unsigned permille)
{
	unsigned i;

	s->shadow = true;
	for (i = 0; i < s->n; i++)
		s->cwnd_bytes[i] = (uint32_t)((uint64_t)C_KBPS * BASE_US / 8000 * permille / 1000 / s->n + 1);
}

static void the_table(void)
{
	/* Of 20 Mbit/s and 256 ms a lone terminal has 426 segments: more than the table ever leaves. */
	static const struct { unsigned permille, pkts; } at[] = {
		{1100, 330}, {1990, 330}, {2010, 150}, {3010, 100}, {4010, 50}, {5010, 10}, {9900, 10}, {12000, 10},
	};
	unsigned i;

	test("backlog_cap: the published table: segments by the ratio of round trips, rounded down");
	for (i = 0; i < sizeof at / sizeof at[0]; i++) {
		struct scene s = paper(1);

		at_ratio(&s, at[i].permille);
		step(&s, 600); /* a period and more */
		CHECK_EQ(s.window_bytes[0] >> 7, at[i].pkts * MSS >> 7); /* in the scale's units: shadow says what an
									    ACK would */
		control_free(s.control);
	}
}

static void no_more_than_the_share(void)
{
	struct scene s = paper(7);

	test("backlog_cap: and no more than a terminal's part of what is delivered takes at the least round trip");
	at_ratio(&s, 1500);
	step(&s, 600);
	CHECK(s.window_bytes[0] >= 58 * MSS && s.window_bytes[0] <= 61 * MSS); /* 426/7 */
	test("backlog_cap: flows of a terminal share its segments");
	s.flows[6].station = 5;
	step(&s, 600);
	CHECK(s.window_bytes[5] <= 36 * MSS && s.window_bytes[6] <= 36 * MSS);
	CHECK(s.window_bytes[0] >= 69 * MSS); /* 426/6 */
	control_free(s.control);
}

static void each_period(void)
{
	struct scene s = paper(1);
	uint32_t before;

	test("backlog_cap: the table is looked at anew once a period");
	at_ratio(&s, 2500);
	step(&s, 600);
	before = s.window_bytes[0];
	CHECK_EQ(before >> 7, 150 * MSS >> 7);
	s.policy.cap_period_us = 60000000;
	control_policy(s.control, &s.policy);
	at_ratio(&s, 4500);
	step(&s, 600);
	CHECK_EQ(s.window_bytes[0], before);
	s.policy.cap_period_us = 10000000;
	control_policy(s.control, &s.policy);
	step(&s, 100);
	CHECK_EQ(s.window_bytes[0] >> 7, 50 * MSS >> 7);
	test("backlog_cap: never less than four segments");
	s.policy.cap_ratio4_pkts = 1;
	s.policy.cap_ratio5_pkts = 1;
	control_policy(s.control, &s.policy);
	step(&s, 600);
	CHECK(s.window_bytes[0] >= 4 * MSS - 127 && s.window_bytes[0] <= 4 * MSS + 128);
	control_free(s.control);
}

int main(void)
{
	CHECK(law_find("backlog_cap") == &law_backlog_cap);
	holds_the_wait();
	leaves_alone();
	in_time();
	the_table();
	no_more_than_the_share();
	each_period();
	return done();
}
