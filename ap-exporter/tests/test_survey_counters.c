/* The channel survey's times, of drivers that keep them as they should and of those that do not. */
#include "check.h"
#include "collect/survey_counters.h"

static struct survey_counters counters;
static uint64_t now_ms, left_out;

/* The busy time that is reported for one that the driver says, whose time on the channel grows as time does. */
static uint64_t busy(uint64_t said, uint64_t elapsed_ms)
{
	struct oal_channel_row row = { .active_ms = now_ms += elapsed_ms, .busy_ms = said };

	left_out = survey_counters_mend(&counters, &row, elapsed_ms);
	CHECK_EQ(row.active_ms, now_ms);
	return row.busy_ms;
}

/* What is reported by a driver that clears both times when they are read. */
static uint64_t read_and_cleared(uint64_t active, uint64_t said, uint64_t elapsed_ms, uint64_t expected_active)
{
	struct oal_channel_row row = { .active_ms = active, .busy_ms = said };

	left_out = survey_counters_mend(&counters, &row, elapsed_ms);
	CHECK_EQ(row.active_ms, expected_active);
	CHECK_EQ(left_out, 0);
	return row.busy_ms;
}

int main(void)
{
	const uint64_t wrapped = UINT64_MAX / 1000; /* 2^64 µs, ms */

	now_ms = 90000;
	test("times that grow are as the driver says, the first as it stands");
	CHECK_EQ(busy(5000, 100), 5000);
	CHECK_EQ(busy(5060, 100), 5060);
	CHECK_EQ(busy(5060, 100), 5060);
	CHECK_EQ(busy(5200, 100), 5200); /* more than has passed, by the slack of two clocks */
	CHECK_EQ(left_out, 0);

	test("one that runs backwards stands still, and goes on from there");
	CHECK_EQ(busy(5150, 100), 5200);
	CHECK_EQ(left_out, 1);
	CHECK_EQ(busy(5200, 100), 5250);
	CHECK_EQ(left_out, 0);

	test("mt7915: 2^64 us too many for good; what it grows by is right all the same");
	CHECK_EQ(busy(wrapped + 5210, 100), 5250);
	CHECK_EQ(left_out, 1);
	CHECK_EQ(busy(wrapped + 5270, 100), 5310);
	CHECK_EQ(left_out, 0);
	CHECK_EQ(busy(5330, 100), 5310); /* the driver was mended, or wrapped once more */
	CHECK_EQ(left_out, 1);

	test("one that jumps stands still for once");
	CHECK_EQ(busy(900000, 100), 5310);
	CHECK_EQ(busy(900050, 100), 5360);

	test("what is impossible is not taken at the first time either (values of mt76's issue 1135)");
	counters = (struct survey_counters){ 0 };
	CHECK_EQ(busy(14986490482870210, 100), 0);
	CHECK_EQ(left_out, 1);
	CHECK_EQ(busy(14986490482870240, 100), 30);

	test("ath10k: what is cleared at each read adds up");
	counters = (struct survey_counters){ 0 };
	CHECK_EQ(read_and_cleared(98, 40, 100, 98), 40);
	CHECK_EQ(read_and_cleared(103, 70, 100, 201), 110);
	CHECK_EQ(read_and_cleared(100, 20, 100, 301), 130);
	CHECK_EQ(read_and_cleared(990, 900, 1000, 1291), 1030);
	CHECK_EQ(read_and_cleared(101, 0, 100, 1392), 1030);

	test("a radio that starts anew goes on from what it had");
	counters = (struct survey_counters){ 0 };
	now_ms = 500000;
	CHECK_EQ(busy(70000, 100), 70000);
	CHECK_EQ(read_and_cleared(60, 25, 100, 500160), 70025);
	CHECK_EQ(read_and_cleared(160, 75, 100, 500260), 70075);
	return done();
}
