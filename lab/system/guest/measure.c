#include "air.h"
#include "mark.h"
#include "request.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LOOPS = 10000000, CALLS = 100000, IDLE_S = 1 };

static uint64_t nanoseconds(clockid_t clock)
{
	struct timespec t;

	if (clock_gettime(clock, &t) < 0)
		die(errno, "the clock");
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void rest(unsigned seconds)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += (time_t)seconds;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

void air_window(unsigned seconds, int pid)
{
	clockid_t of = CLOCK_MONOTONIC;
	uint64_t cpu, began;

	if (pid && clock_getcpuclockid(pid, &of))
		die(0, "there is no process %d", pid);
	cpu = pid ? nanoseconds(of) : 0;
	began = nanoseconds(CLOCK_MONOTONIC);
	MARK(MARK_BEGIN);
	rest(seconds);
	MARK(MARK_END);
	began = nanoseconds(CLOCK_MONOTONIC) - began;
	cpu = pid ? nanoseconds(of) - cpu : 0;
	printf("window elapsed_ns=%" PRIu64 " cpu_ns=%" PRIu64 "\n", began, cpu);
}

/* So many rounds of instructions that are counted by looking at them. Returns how many a round is. */
static unsigned loop(uint32_t rounds)
{
#if defined(__mips__)
	__asm__ volatile(".set push\n.set noreorder\n1: addiu %0, %0, -1\nbnez %0, 1b\nnop\n.set pop" : "+r"(rounds));
	return 3;
#else
	__asm__ volatile("1: decl %0\njnz 1b" : "+r"(rounds));
	return 2;
#endif
}

void air_known(void)
{
	uint64_t began = nanoseconds(CLOCK_MONOTONIC);
	unsigned each;

	MARK(MARK_BEGIN);
	each = loop(LOOPS);
	MARK(MARK_END);
	printf("known loop elapsed_ns=%" PRIu64 " user=%" PRIu64 "\n", nanoseconds(CLOCK_MONOTONIC) - began,
	       (uint64_t)each * LOOPS);
	began = nanoseconds(CLOCK_MONOTONIC);
	MARK(MARK_BEGIN);
	for (unsigned i = 0; i < CALLS; i++)
		syscall(SYS_getppid);
	MARK(MARK_END);
	printf("known calls elapsed_ns=%" PRIu64 " calls=%d\n", nanoseconds(CLOCK_MONOTONIC) - began, CALLS);
	began = nanoseconds(CLOCK_MONOTONIC);
	MARK(MARK_BEGIN);
	rest(IDLE_S);
	MARK(MARK_END);
	printf("known idle elapsed_ns=%" PRIu64 "\n", nanoseconds(CLOCK_MONOTONIC) - began);
}
