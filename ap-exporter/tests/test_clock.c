/* Time: what a look at the clock means, how missed ticks are counted, and that the loop ticks and serves. */
#include "check.h"
#include "base/clock.h"
#include "base/loop.h"

#include <unistd.h>

struct served {
	struct loop *loop;
	unsigned calls;
};

static void on_readable(void *ctx, int fd)
{
	struct served *s = ctx;
	char c;

	s->calls += read(fd, &c, 1) == 1;
	loop_stop(s->loop);
}

static void on_byte(void *ctx, int fd)
{
	char c;

	((struct served *)ctx)->calls += read(fd, &c, 1) == 1;
}

int main(void)
{
	struct clock_quality q = { 0 };
	struct served s = { 0 };
	struct tick t;
	uint64_t last = 0;
	int p[2];

	test("the first look knows no step");
	clock_judge(&q, 1700000000000000, true, false, 25);
	CHECK_EQ(q.state, CLOCK_SYNCHRONISED);
	CHECK_EQ(q.error_us, 25);
	CHECK_EQ(q.steps, 0);
	test("the noise of reading is left alone");
	clock_judge(&q, 1700000000000000 + 400, true, true, 25);
	CHECK_EQ(q.state, CLOCK_UNSYNCHRONISED);
	CHECK_EQ(q.offset_us, 1700000000000000);
	test("a little correction is followed, and can not make a tick's time go back");
	clock_judge(&q, 1700000000000000 - 1900, true, true, 25);
	CHECK_EQ(q.state, CLOCK_UNSYNCHRONISED);
	CHECK_EQ(q.offset_us, 1700000000000000 - 1900);
	test("a jump back or forth is a step, for one look");
	clock_judge(&q, 1700000000000000 - 3600000000, true, false, 25);
	CHECK_EQ(q.state, CLOCK_STEPPED);
	clock_judge(&q, 1700000000000000 - 3600000000, true, false, 25);
	CHECK_EQ(q.state, CLOCK_SYNCHRONISED);
	clock_judge(&q, 1700000000000000, true, false, 25);
	CHECK_EQ(q.state, CLOCK_STEPPED);
	CHECK_EQ(q.steps, 2);
	test("an unknown clock says so, and its error fits the column");
	clock_judge(&q, 1700000000000000, false, false, INT64_MAX);
	CHECK_EQ(q.state, CLOCK_UNKNOWN);
	CHECK_EQ(q.error_us, UINT32_MAX);
	clock_judge(&q, 1700000000000000, true, false, -5);
	CHECK_EQ(q.error_us, 0);
	test("this machine's clock can be looked at");
	q = (struct clock_quality){ 0 };
	clock_read(&q);
	CHECK(q.offset_us > 0);

	test("a tick in time is neither late nor preceded by missed ones");
	t = loop_account(1000000, 1, 4000, 1004000);
	CHECK_EQ(t.due_us, 1004000);
	CHECK_EQ(t.missed, 0);
	CHECK_EQ(t.late_us, 0);
	test("ticks that went by are counted, and the last one's due time is kept");
	t = loop_account(1000000, 3, 4000, 1013500);
	CHECK_EQ(t.due_us, 1012000);
	CHECK_EQ(t.missed, 2);
	CHECK_EQ(t.late_us, 1500);

	test("the loop's ticks are due at whole periods, none unaccounted for");
	s.loop = loop_new(4000);
	CHECK(s.loop != NULL);
	for (int i = 0; i < 5; i++) {
		CHECK_EQ(loop_wait(s.loop, &t), 1);
		if (last)
			CHECK_EQ(t.due_us, last + (t.missed + 1u) * UINT64_C(4000));
		/* Never later than now. */
		CHECK_EQ(t.late_us, clock_monotonic_us() - t.due_us < t.late_us ? 0 : t.late_us);
		last = t.due_us;
	}
	test("after a rest every tick that was due in it is served, none missed; of very many those of long ago are");
	t = loop_account_rest(1000000, 25, 4000);
	CHECK_EQ(t.due_us, 1004000);
	CHECK_EQ(t.missed, 0);
	CHECK_EQ(t.more, 24);
	t = loop_account_rest(1000000, LOOP_OWED + 7, 4000);
	CHECK_EQ(t.due_us, 1000000 + 8 * 4000);
	CHECK_EQ(t.missed, 7);
	CHECK_EQ(t.more, LOOP_OWED - 1);
	test("the loop rests as long as it is told, and its ticks come one after the other");
	loop_rest(s.loop, 10);
	for (unsigned i = 0, more = 0; i < 10; i++) {
		CHECK_EQ(loop_wait(s.loop, &t), 1);
		CHECK_EQ(t.due_us, last + (t.missed + 1u) * UINT64_C(4000));
		if (!i)
			CHECK(t.more >= 9); /* not before the tenth was due */
		else
			CHECK_EQ(t.more, more - 1);
		more = t.more;
		last = t.due_us;
		CHECK(clock_monotonic_us() >= last + more * UINT64_C(4000));
	}
	while (t.more) { /* this machine was busy */
		CHECK_EQ(loop_wait(s.loop, &t), 1);
		last = t.due_us;
	}
	test("a descriptor ends a rest: what is due is served at once");
	loop_rest(s.loop, 1000000);
	CHECK_EQ(pipe(p), 0);
	CHECK_EQ(write(p[1], "x", 1), 1);
	CHECK_EQ(loop_add(s.loop, p[0], on_byte, &s), 0);
	while (clock_monotonic_us() < last + 3 * 4000)
		;
	CHECK_EQ(loop_wait(s.loop, &t), 1);
	CHECK(t.more >= 2);
	CHECK_EQ(t.due_us, last + (t.missed + 1u) * UINT64_C(4000));
	CHECK_EQ(s.calls, 1);
	loop_remove(s.loop, p[0]);
	loop_rest(s.loop, 1);
	while (t.more)
		CHECK_EQ(loop_wait(s.loop, &t), 1);
	s.calls = 0;
	test("a descriptor is served, and the loop ends when told to");
	CHECK_EQ(pipe(p), 0);
	CHECK_EQ(loop_add(s.loop, p[0], on_readable, &s), 0);
	CHECK_EQ(write(p[1], "x", 1), 1);
	while (loop_wait(s.loop, &t) > 0)
		;
	CHECK_EQ(s.calls, 1);
	loop_remove(s.loop, p[0]);
	loop_free(s.loop);
	return done();
}
