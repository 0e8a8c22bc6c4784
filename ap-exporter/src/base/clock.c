#include "base/clock.h"

#include <stdlib.h>
#include <sys/timex.h>
#include <time.h>

static uint64_t now_us(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

uint64_t clock_monotonic_us(void)
{
	return now_us(CLOCK_MONOTONIC);
}

uint64_t clock_monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t clock_realtime_us(void)
{
	return now_us(CLOCK_REALTIME);
}

void clock_judge(struct clock_quality *q, int64_t offset_us, bool known, bool unsynchronised, int64_t error_us)
{
	bool first = q->offset_us == 0;

	q->state = !known ? CLOCK_UNKNOWN : unsynchronised ? CLOCK_UNSYNCHRONISED : CLOCK_SYNCHRONISED;
	if (!first && llabs(offset_us - q->offset_us) > CLOCK_STEP_US) {
		q->state = CLOCK_STEPPED;
		q->steps++;
	}
	if (first || llabs(offset_us - q->offset_us) > CLOCK_NOISE_US)
		q->offset_us = offset_us;
	q->error_us = error_us < 0 ? 0 : error_us > UINT32_MAX ? UINT32_MAX : (uint32_t)error_us;
}

void clock_read(struct clock_quality *q)
{
	struct timex t = { .modes = 0 }; /* read only: needs no privilege */
	int64_t offset = 0, width = INT64_MAX;
	int ret;

	/* The reading between the closest monotonic stamps: preemption between the calls is no step. */
	for (int i = 0; i < 20 && width > 50; i++) {
		int64_t a = (int64_t)clock_monotonic_us(), r = (int64_t)clock_realtime_us(),
			b = (int64_t)clock_monotonic_us();

		if (b - a < width) {
			width = b - a;
			offset = r - (a + b) / 2;
		}
	}
	if (width > CLOCK_NOISE_US && q->offset_us)
		offset = q->offset_us; /* too busy to tell */
	ret = adjtimex(&t);
	clock_judge(q, offset, ret >= 0, ret == TIME_ERROR || (t.status & STA_UNSYNC), t.esterror);
}
