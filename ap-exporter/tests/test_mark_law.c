/* The law `mark` and what the frame does for a law about stations: no flow is known in most of these scenes, since what
 * is marked need not be TCP. */
#include "check.h"
#include "control/control.h"
#include "control/law.h"
#include "mark/mark.h"

enum {
	STEP_US = 20000,
	LONG_AGO_US = 1000000000, /* where time begins */
	STATIONS = 2,
	RATE_BYTES = 50000, /* sent to a station in a step: 20 Mbit/s */
	TURN_TARGET_US = 15000, /* target_us: two stations of 4 ms take no turn that long */
	SETTLE = 200, /* steps after which what is smoothed has come to rest */
};

struct scene {
	struct control *control;
	struct oal_policy policy;
	struct control_station stations[STATIONS];
	uint64_t t_us;
	unsigned n_stations;
	uint8_t class;
	const struct control_action *actions;
	unsigned n;
	/* Over all steps, of all stations. */
	unsigned sets, releases, rows;
	uint8_t marks[STATIONS]; /* as a data path has them */
};

static struct scene scene_new(void)
{
	struct scene s = {.t_us = LONG_AGO_US, .n_stations = STATIONS, .class = CONTROL_NO_CLASS};
	unsigned i;

	CHECK_EQ(control_new(&s.control, 8, 4), 0);
	oal_policy_defaults(&s.policy);
	control_policy(s.control, &s.policy);
	control_law(s.control, &law_mark, NULL, 0);
	for (i = 0; i < STATIONS; i++)
		s.stations[i] = (struct control_station){.mac = 2 + i, .own_queues = true, .place = (uint16_t)i};
	return s;
}

static void take(struct scene *s)
{
	unsigned i;

	for (i = 0; i < s->n; i++) {
		const struct control_action *a = &s->actions[i];

		s->rows += a->report;
		if (a->row_only)
			continue;
		s->sets += a->marks != 0;
		s->releases += !a->marks;
		if (a->place < STATIONS)
			s->marks[a->place] = a->marks;
	}
}

static void step(struct scene *s, unsigned steps)
{
	while (steps--) {
		struct control_input in = {.stations = s->stations, .n_stations = s->n_stations, .class = s->class};
		unsigned i;

		s->t_us += STEP_US;
		for (i = 0; i < s->n_stations; i++)
			s->stations[i].tx_bytes += RATE_BYTES;
		in.t_us = s->t_us;
		in.predicted_us = s->t_us;
		s->n = control_step(s->control, &in, &s->actions);
		take(s);
	}
}

/* So much stands in a station's queue that it takes this time at its rate. */
static uint32_t bytes_of_wait(uint32_t us)
{
	return (uint32_t)((uint64_t)us * RATE_BYTES / STEP_US);
}

static unsigned marked(const struct scene *s)
{
	struct control_stats stats;

	control_stats(s->control, &stats);
	return stats.clamps;
}

static void by_the_wait(void)
{
	struct scene s = scene_new();

	test("mark: a station without a flow that waits is marked, the other is not");
	step(&s, SETTLE);
	CHECK_EQ(s.sets, 0);
	s.stations[0].backlog_bytes = bytes_of_wait(2 * TURN_TARGET_US);
	step(&s, SETTLE);
	CHECK_EQ(s.marks[0], MARK_ALL);
	CHECK_EQ(s.marks[1], 0);
	CHECK_EQ(marked(&s), 1);
	test("mark: ECT(1) from a share of the wanted wait on, ECT(0) from all of it on");
	s.stations[0].backlog_bytes = bytes_of_wait(TURN_TARGET_US * 3 / 4);
	step(&s, SETTLE);
	CHECK_EQ(s.marks[0], MARK_ECT1);
	s.stations[0].backlog_bytes = bytes_of_wait(TURN_TARGET_US / 4);
	step(&s, SETTLE);
	CHECK_EQ(s.marks[0], 0);
	test("mark: the share is the policy's, 0 marks no ECT(1); without an interval no ECT(0) is marked");
	s.policy.mark_step_permille = 200;
	control_policy(s.control, &s.policy);
	step(&s, 5);
	CHECK_EQ(s.marks[0], MARK_ECT1);
	s.policy.mark_step_permille = 0;
	control_policy(s.control, &s.policy);
	s.stations[0].backlog_bytes = bytes_of_wait(2 * TURN_TARGET_US);
	step(&s, SETTLE);
	CHECK_EQ(s.marks[0], MARK_ECT0);
	s.policy.mark_interval_us = 0;
	control_policy(s.control, &s.policy);
	step(&s, 5);
	CHECK_EQ(s.marks[0], 0);
	control_free(s.control);
}

static void soon(void)
{
	struct scene s = scene_new();
	unsigned i;

	test("mark: ECT(1) and then ECT(0) within 100 ms of a queue, none after it; a burst of a step marks no ECT(0)");
	step(&s, SETTLE);
	s.stations[0].backlog_bytes = bytes_of_wait(2 * TURN_TARGET_US - TURN_TARGET_US / 2);
	for (i = 0; i < 5 && !s.marks[0]; i++)
		step(&s, 1);
	CHECK_EQ(s.marks[0], MARK_ECT1);
	for (; i < 5 && s.marks[0] != MARK_ALL; i++)
		step(&s, 1);
	CHECK_EQ(s.marks[0], MARK_ALL);
	s.stations[0].backlog_bytes = 0;
	step(&s, 5);
	CHECK_EQ(s.marks[0], 0);
	control_free(s.control);
}

static void shared_queue(void)
{
	struct scene s = scene_new();
	struct control_input in = {.stations = s.stations, .n_stations = STATIONS, .class = CONTROL_NO_CLASS};
	unsigned i;

	test("mark: where all share a queue, all that send are marked for it");
	s.stations[0].own_queues = s.stations[1].own_queues = false;
	in.backlog_bytes = 2 * bytes_of_wait(2 * TURN_TARGET_US);
	for (i = 0; i < SETTLE; i++) {
		in.t_us = s.t_us += STEP_US;
		s.stations[0].tx_bytes += RATE_BYTES;
		s.stations[1].tx_bytes += RATE_BYTES;
		s.n = control_step(s.control, &in, &s.actions);
		take(&s);
	}
	CHECK_EQ(s.marks[0], MARK_ALL);
	CHECK_EQ(s.marks[1], MARK_ALL);
	control_free(s.control);
}

static void renewed_and_told(void)
{
	struct scene s = scene_new();
	unsigned i, at = 0, longest = 0, before;

	test("mark: a state is renewed well within its time to live, with one row");
	s.stations[0].backlog_bytes = bytes_of_wait(3 * TURN_TARGET_US);
	step(&s, SETTLE);
	s.rows = 0;
	for (i = 0; i < 200; i++) {
		before = s.sets;
		step(&s, 1);
		if (s.sets == before)
			continue;
		longest = at && i - at > longest ? i - at : longest;
		at = i;
	}
	CHECK(longest && longest * STEP_US <= s.policy.ttl_us / 2);
	CHECK_EQ(s.rows, 0);
	test("mark: a wait that swings is followed at once, and told once: when it is over for hold_us");
	for (i = 0; i < 20; i++) {
		s.stations[0].backlog_bytes = i % 2 ? bytes_of_wait(3 * TURN_TARGET_US) : 0;
		step(&s, 20);
		CHECK_EQ(s.marks[0] != 0, i % 2);
	}
	CHECK_EQ(s.rows, 0);
	s.stations[0].backlog_bytes = 0;
	s.releases = 0;
	step(&s, 25);
	CHECK_EQ(s.marks[0], 0);
	CHECK_EQ(s.releases, 1);
	CHECK_EQ(s.rows, 0);
	step(&s, s.policy.hold_us / STEP_US + 1);
	CHECK_EQ(s.rows, 1);
	CHECK_EQ(s.releases, 1); /* the row alone: nothing is carried out twice */
	CHECK_EQ(marked(&s), 0);
	control_free(s.control);
}

static void limits(void)
{
	struct scene s = scene_new();

	test("mark: at most max_flows stations, none that gets less than min_flow_kbps, none whose packets pass by");
	s.stations[0].backlog_bytes = s.stations[1].backlog_bytes = bytes_of_wait(3 * TURN_TARGET_US);
	step(&s, SETTLE);
	CHECK_EQ(marked(&s), 2);
	s.policy.max_flows = 1;
	control_policy(s.control, &s.policy);
	step(&s, SETTLE);
	CHECK_EQ(marked(&s), 1);
	s.policy.max_flows = 8;
	s.policy.min_flow_kbps = 50000;
	control_policy(s.control, &s.policy);
	step(&s, SETTLE);
	CHECK_EQ(marked(&s), 0);
	CHECK(!s.marks[0] && !s.marks[1]);
	s.policy.min_flow_kbps = 200;
	control_policy(s.control, &s.policy);
	s.stations[1].bypassed = true;
	step(&s, SETTLE);
	CHECK_EQ(s.marks[0], MARK_ALL);
	CHECK_EQ(s.marks[1], 0);
	test("mark: a longer turn wants a longer wait: what was marked for two stations is not for a busier air");
	s.policy.target_txop_permille = 10000;
	control_policy(s.control, &s.policy);
	step(&s, SETTLE);
	CHECK_EQ(s.marks[0] & MARK_ECT0, 0);
	control_free(s.control);
}

static void ahead(void)
{
	struct scene s = scene_new();

	test("mark: a predicted class marks nothing unless the policy says so");
	s.class = 3;
	step(&s, SETTLE);
	CHECK_EQ(s.sets, 0);
	test("mark: with mark_ahead it marks before a queue stands, and says why");
	s.policy.mark_ahead = 1;
	control_policy(s.control, &s.policy);
	step(&s, 1);
	CHECK_EQ(s.n, 2);
	CHECK_EQ(s.actions[0].reason, OAL_REWRITE_REASON_CLASS);
	CHECK_EQ(s.marks[0], MARK_ALL);
	s.class = 1;
	step(&s, 1);
	CHECK_EQ(s.marks[0], 0);
	control_free(s.control);
}

static void given_up(void)
{
	struct scene s = scene_new();

	test("mark: all marks can be given up at once, with the reason; then they may come back");
	s.stations[0].backlog_bytes = bytes_of_wait(3 * TURN_TARGET_US);
	step(&s, SETTLE);
	s.n = control_release_all(s.control, OAL_REWRITE_REASON_KILLED, &s.actions);
	CHECK_EQ(s.n, 1);
	CHECK_EQ(s.actions[0].marks, 0);
	CHECK_EQ(s.actions[0].reason, OAL_REWRITE_REASON_KILLED);
	CHECK_EQ(s.actions[0].mac, 2);
	CHECK(s.actions[0].report && !s.actions[0].row_only);
	step(&s, 1);
	CHECK_EQ(s.marks[0], MARK_ALL);
	test("mark: a station that went, or whose place another has, is released");
	s.stations[0].mac = 9;
	s.stations[0].backlog_bytes = 0;
	step(&s, 1);
	CHECK(s.n >= 1 && s.actions[0].mac == 2 && !s.actions[0].marks && s.actions[0].report);
	s.stations[1].backlog_bytes = bytes_of_wait(3 * TURN_TARGET_US);
	step(&s, SETTLE);
	CHECK_EQ(s.marks[1], MARK_ALL);
	s.n_stations = 1;
	step(&s, 1);
	CHECK_EQ(s.marks[1], 0);
	test("mark: a clock that was set back releases what it marked, and begins anew");
	s.n_stations = 2;
	step(&s, SETTLE);
	CHECK_EQ(s.marks[1], MARK_ALL);
	s.t_us = LONG_AGO_US / 2;
	step(&s, 1);
	CHECK_EQ(s.marks[1], 0);
	step(&s, SETTLE);
	CHECK_EQ(s.marks[1], MARK_ALL);
	control_free(s.control);
}

/* Marks, an empty queue, and two thirds of the throughput and the air gone. */
static void guarded(void)
{
	struct scene s = scene_new();
	struct control_stats stats = { 0 };
	unsigned i;

	test("mark: the guard takes marks back that cost throughput, and none are set while it holds");
	s.policy.mark_ahead = 1;
	control_policy(s.control, &s.policy);
	s.class = 0;
	step(&s, 500);
	s.class = 3;
	for (i = 0; i < 1000 && !stats.guard_reverts; i++) {
		step(&s, 1);
		s.stations[0].tx_bytes -= RATE_BYTES * 2 / 3;
		s.stations[1].tx_bytes -= RATE_BYTES * 2 / 3;
		control_stats(s.control, &stats);
	}
	CHECK_EQ(stats.guard_reverts, 1);
	CHECK_EQ(s.marks[0], 0);
	CHECK_EQ(s.actions[0].reason, OAL_REWRITE_REASON_GUARD);
	s.sets = 0;
	step(&s, 5);
	CHECK_EQ(s.sets, 0);
	control_free(s.control);
}

int main(void)
{
	by_the_wait();
	soon();
	shared_queue();
	renewed_and_told();
	limits();
	ahead();
	given_up();
	guarded();
	return done();
}
