/* How good this machine's clock is, and where realtime stands relative to the monotonic clock that ticks follow. */
#ifndef OAL_CLOCK_H
#define OAL_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

enum clock_state { CLOCK_UNKNOWN = 0, CLOCK_SYNCHRONISED = 1, CLOCK_UNSYNCHRONISED = 2, CLOCK_STEPPED = 3 };

/*
 * (realtime − monotonic) changes only when realtime is set: NTP slews both clocks alike. A change up to NOISE is how
 * well two clocks can be read one after the other and is left alone; one above STEP is a step. STEP is less than a
 * tick, so that the times of ticks go back only when a step is flagged.
 */
#define CLOCK_NOISE_US 500
#define CLOCK_STEP_US 2000

struct clock_quality {
	int64_t offset_us;       /* realtime − monotonic */
	enum clock_state state;  /* CLOCK_STEPPED right after a step, until the next look */
	uint32_t error_us;       /* kernel's estimate of the clock's error (adjtimex esterror) */
	uint64_t steps;          /* steps seen since the start */
};

uint64_t clock_monotonic_us(void);
uint64_t clock_monotonic_ns(void);
uint64_t clock_realtime_us(void);

/* Looks at the clock: at the start, then once a second. */
void clock_read(struct clock_quality *q);

/* The pure part, for tests: what a look that found `offset_us` and adjtimex's `unsynchronised`, `error_us` means. */
void clock_judge(struct clock_quality *q, int64_t offset_us, bool known, bool unsynchronised, int64_t error_us);

#endif
