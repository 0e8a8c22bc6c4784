/*
 * What a step of control costs: 20 flows of 10 stations, all clamped, their rates and queues drawn anew at each step.
 *
 *   bench_control STEPS [FLOWS [LINK_FOLLOW_PERMILLE]]    prints the mean CPU time of a step in ns
 *
 * Under callgrind, --toggle-collect=measured_step counts the step alone. Under qemu, what is executed between
 * mark_begin() and mark_end() is the step.
 */
#include "check.h"
#include "control/control.h"

#include <time.h>

enum { STATIONS = 10, MOST = 1024 };

#define NOINLINE __attribute__((noinline, noclone))
void mark_begin(void);
void mark_end(void);
unsigned measured_step(struct control *, const struct control_input *);

NOINLINE void mark_begin(void)
{
	__asm__ volatile("");
}

NOINLINE void mark_end(void)
{
	__asm__ volatile("");
}

NOINLINE unsigned measured_step(struct control *c, const struct control_input *in)
{
	const struct control_action *actions;

	return control_step(c, in, &actions);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

int main(int argc, char **argv)
{
	const unsigned steps = argc > 1 ? (unsigned)atoi(argv[1]) : 1000, n = argc > 2 ? (unsigned)atoi(argv[2]) : 20;
	static struct control_station stations[STATIONS];
	static struct control_flow flows[MOST];
	struct control_input in = {
		.stations = stations, .n_stations = STATIONS, .flows = flows, .n_flows = n, .class = 3,
	};
	struct oal_policy policy;
	struct control_stats stats;
	struct control *c;
	uint64_t spent_ns = 0, sets = 0;
	unsigned i, k;

	oal_policy_defaults(&policy);
	if (argc > 3)
		policy.link_follow_permille = (unsigned)atoi(argv[3]);
	if (n > MOST || control_new(&c, MOST, STATIONS))
		return 2;
	control_policy(c, &policy);
	srand(1);
	for (i = 0; i < steps; i++) {
		in.t_us = in.predicted_us = UINT64_C(1000000000) + i * policy.step_us;
		for (k = 0; k < STATIONS; k++) {
			stations[k].mac = k + 1;
			stations[k].place = (uint16_t)k;
			stations[k].airtime_us += 500 + (unsigned)rand() % 1500;
			stations[k].link_kbps = 20000 + (unsigned)rand() % 40000;
			stations[k].backlog_bytes = (unsigned)rand() % 40000;
		}
		for (k = 0; k < n; k++) {
			flows[k].id = k + 1;
			flows[k].place = (uint16_t)k;
			flows[k].station = (uint16_t)(k % STATIONS);
			flows[k].mss_bytes = 1448;
			flows[k].can_clamp = true;
			flows[k].rtt_up_us = 20000;
			flows[k].rtt_down_us = 20000 + (unsigned)rand() % 30000;
			flows[k].delivered_bytes += (unsigned)rand() % 10000;
			flows[k].unacked_bytes = 10000 + (unsigned)rand() % 20000;
		}
		{
			const uint64_t start_ns = now_ns();

			mark_begin();
			sets += measured_step(c, &in);
			mark_end();
			spent_ns += now_ns() - start_ns;
		}
	}
	control_stats(c, &stats);
	printf("step_ns %" PRIu64 " sets_per_step %.2f clamps %u\n", spent_ns / steps, (double)sets / steps,
	       stats.clamps);
	control_free(c);
	return stats.clamps == n ? 0 : 1;
}
