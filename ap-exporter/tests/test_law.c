/* The laws behind law.h, and what the frame does for each of them. The law fair_window has test_control.c. */
#include "check.h"
#include "control/control.h"
#include "control/law.h"

enum {
	MSS = 1448,
	STEP_US = 20000,
	LONG_AGO_US = 1000000000, /* where time begins */
	RATE_BYTES = 20000, /* a flow delivers so much in a step: 8 Mbit/s */
};

struct scene {
	struct control *control;
	struct oal_policy policy;
	struct control_flow flows[3];
	uint64_t t_us;
	uint8_t class;
	bool predicts;
	const struct control_action *actions;
	unsigned n;
};

/* Three flows: two may be clamped, the scale of the third is not known. */
static struct scene scene_new(const int64_t values[LAW_VALUES])
{
	struct scene s = {.t_us = LONG_AGO_US, .predicts = true};
	unsigned i;

	CHECK_EQ(control_new(&s.control, 8, 4), 0);
	oal_policy_defaults(&s.policy);
	control_policy(s.control, &s.policy);
	control_law(s.control, &law_direct, values, LAW_VALUES);
	for (i = 0; i < 3; i++)
		s.flows[i] = (struct control_flow){
			.id = i + 1,
			.place = (uint16_t)i,
			.station = CONTROL_NO_STATION,
			.mss_bytes = MSS,
			.can_clamp = i < 2,
		};
	return s;
}

static void step(struct scene *s, unsigned steps)
{
	while (steps--) {
		struct control_input in = {.flows = s->flows, .n_flows = 3, .class = s->class};
		unsigned i;

		s->t_us += STEP_US;
		for (i = 0; i < 3; i++)
			s->flows[i].delivered_bytes += RATE_BYTES;
		in.t_us = s->t_us;
		in.predicted_us = s->predicts ? s->t_us : 0;
		s->n = control_step(s->control, &in, &s->actions);
	}
}

static unsigned clamps(const struct scene *s)
{
	struct control_stats stats;

	control_stats(s->control, &stats);
	return stats.clamps;
}

static void one_value_a_class(void)
{
	const int64_t values[LAW_VALUES] = {0, 0, 60000, 30000};
	struct scene s = scene_new(values);

	test("direct: a class without a value clamps nothing");
	s.class = 1;
	step(&s, 20);
	CHECK_EQ(s.n, 0);
	test("direct: a class with one gives it to every flow that may be clamped, and says why");
	s.class = 2;
	step(&s, 1);
	CHECK_EQ(s.n, 2);
	CHECK_EQ(clamps(&s), 2);
	CHECK_EQ(s.actions[0].window_bytes, 60000);
	CHECK_EQ(s.actions[1].window_bytes, 60000);
	CHECK_EQ(s.actions[0].reason, OAL_REWRITE_REASON_CLASS);
	CHECK(s.actions[0].report && s.actions[0].id == 1 && s.actions[1].id == 2);
	test("direct: another class changes the value at once");
	s.class = 3;
	step(&s, 1);
	CHECK_EQ(s.n, 2);
	CHECK_EQ(s.actions[0].window_bytes, 30000);
	control_free(s.control);
}

static void renewed(void)
{
	const int64_t values[LAW_VALUES] = {0, 0, 0, 30000};
	struct scene s = scene_new(values);
	unsigned i, sets = 0, rows = 0, at = 0, longest = 0;

	test("direct: a clamp is renewed well within its time to live, with one row");
	s.class = 3;
	for (i = 0; i < 200; i++) {
		step(&s, 1);
		if (s.n) {
			longest = sets && i - at > longest ? i - at : longest;
			at = i;
			sets += s.n;
			rows += s.actions[0].report;
		}
	}
	CHECK(sets >= 2 * 200 * STEP_US / s.policy.ttl_us);
	CHECK(longest * STEP_US <= s.policy.ttl_us / 2);
	CHECK_EQ(rows, 1);
	control_free(s.control);
}

static void ends(void)
{
	const int64_t values[LAW_VALUES] = {0, 0, 0, 30000};
	struct scene s = scene_new(values);

	test("direct: without a reason clamps stay for hold_us and no longer, also if they bind");
	s.class = 3;
	step(&s, 5);
	s.class = 0;
	step(&s, s.policy.hold_us / STEP_US - 1);
	CHECK_EQ(clamps(&s), 2);
	step(&s, 2);
	CHECK_EQ(clamps(&s), 0);
	test("direct: a prediction that is too old is no reason");
	s.class = 3;
	step(&s, 5);
	CHECK_EQ(clamps(&s), 2);
	s.predicts = false;
	step(&s, s.policy.hold_us / STEP_US + 1);
	CHECK_EQ(clamps(&s), 0);
	control_free(s.control);
}

static void frame_protects(void)
{
	const int64_t values[LAW_VALUES] = {0, 0, 0, 100};
	struct scene s = scene_new(values);

	test("direct: no value goes below the floor");
	s.class = 3;
	step(&s, 2); /* the first one knows no rates yet */
	CHECK_EQ(s.actions[0].window_bytes, s.policy.floor_mss * MSS);
	test("direct: at most max_flows are clamped");
	s.policy.max_flows = 1;
	control_policy(s.control, &s.policy);
	step(&s, 1);
	CHECK_EQ(clamps(&s), 1);
	test("all clamps can be given up at once, with the reason");
	s.n = control_release_all(s.control, OAL_REWRITE_REASON_KILLED, &s.actions);
	CHECK_EQ(s.n, 1);
	CHECK_EQ(s.actions[0].window_bytes, 0);
	CHECK_EQ(s.actions[0].reason, OAL_REWRITE_REASON_KILLED);
	control_free(s.control);
}

/* The clamps bind, the queue is empty, and two thirds of the throughput are gone. */
static void guarded(void)
{
	const int64_t values[LAW_VALUES] = {0, 0, 0, 8000};
	struct scene s = scene_new(values);
	struct control_stats stats;
	unsigned i, k;

	test("direct: the guard takes clamps back that cost throughput");
	s.class = 0;
	step(&s, 500);
	s.class = 3;
	for (i = 0; i < 1000; i++) {
		step(&s, 1);
		for (k = 0; k < 3; k++) {
			s.flows[k].delivered_bytes -= RATE_BYTES * 2 / 3;
			s.flows[k].unacked_bytes = 8000;
		}
		control_stats(s.control, &stats);
		if (stats.guard_reverts)
			break;
	}
	CHECK_EQ(stats.guard_reverts, 1);
	CHECK_EQ(stats.clamps, 0);
	CHECK_EQ(s.n, 2);
	CHECK_EQ(s.actions[0].reason, OAL_REWRITE_REASON_GUARD);
	control_free(s.control);
}

static void names(void)
{
	const int64_t negative[LAW_VALUES] = {-1, INT64_MIN, INT64_MAX, 0};
	struct scene s = scene_new(negative);

	test("laws are found by the names that bundles use");
	CHECK(law_find("fair_window") == &law_fair_window);
	CHECK(law_find("direct") == &law_direct);
	CHECK(law_find("mark") == &law_mark);
	CHECK(!law_find("") && !law_find("backlog"));
	test("direct: values out of range clamp nothing, or to the largest window that TCP has");
	s.class = 0;
	step(&s, 1);
	CHECK_EQ(s.n, 0);
	s.class = 1;
	step(&s, 1);
	CHECK_EQ(s.n, 0);
	s.class = 2;
	step(&s, 1);
	CHECK_EQ(s.n, 2);
	CHECK_EQ(s.actions[0].window_bytes, 1 << 30);
	s.class = CONTROL_NO_CLASS;
	step(&s, 1);
	CHECK_EQ(clamps(&s), 2);
	control_free(s.control);
}

int main(void)
{
	one_value_a_class();
	renewed();
	ends();
	frame_protects();
	guarded();
	names();
	return done();
}
