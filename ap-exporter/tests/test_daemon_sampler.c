/*
 * Samplers: what a driver may do to them, and that the tick thread never waits for it. A kernel of our own answers from
 * memory, late, with errors or never; the pipeline only takes notes. Both stand in for the daemon's (the linker takes
 * the first definition). Nothing here depends on how long anything takes: what is waited for comes in the end.
 */
#include "base/clock.h"
#include "check.h"
#include "collectors.h"
#include "netlink/netlink.h"
#include "packet/interface.h"
#include "pipeline/pipeline.h"
#include "sample/budget.h"
#include "sample/rest.h"
#include "sample/sampler.h"

#include <errno.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/nl80211.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

/* --- the kernel */
static pthread_t main_thread;
static atomic_uint on_main, answers, closed; /* calls on the tick thread; answers; sockets closed */
static atomic_int failure; /* each dump ends with this */
static atomic_uint burn_us; /* of the processor, for each dump */
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER; /* held: the driver does not answer */
static atomic_bool waiting; /* a request stands at the gate */

struct netlink {
	int unused;
};

int netlink_open(struct netlink **out, int protocol)
{
	*out = calloc(1, sizeof **out);
	return 0;
}

void netlink_close(struct netlink *nl)
{
	free(nl);
	closed++;
}

int netlink_family(struct netlink *nl, const char *name)
{
	return 28;
}

static void answer(uint8_t command, netlink_cb cb, void *ctx)
{
	const struct nlmsghdr h = { 0 };
	uint8_t msg[GENL_HDRLEN + 64] = { 0 };
	const uint16_t mac[5] = { 10, NL80211_ATTR_MAC, 0x0002, 0, 0x0100 }, info[2] = { 4, NL80211_ATTR_STA_INFO };

	if (command != NL80211_CMD_GET_STATION)
		return;
	memcpy(msg + GENL_HDRLEN, mac, sizeof mac);
	memcpy(msg + GENL_HDRLEN + 12, info, sizeof info);
	cb(ctx, &h, msg, GENL_HDRLEN + 16);
}

static int ask(uint8_t command, netlink_cb cb, void *ctx, struct netlink_result *result)
{
	const uint64_t began = clock_monotonic_us();

	*result = (struct netlink_result){ 0 };
	if (pthread_equal(pthread_self(), main_thread))
		on_main++;
	waiting = true;
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
	waiting = false;
	while (clock_monotonic_us() - began < burn_us)
		;
	answers++;
	if (failure)
		return failure;
	answer(command, cb, ctx);
	result->took_us = (uint32_t)(clock_monotonic_us() - began);
	return 0;
}

int netlink_dump(struct netlink *nl, struct netlink_request *r, netlink_cb cb, void *ctx, struct netlink_result *result)
{
	return ask(r->bytes[NLMSG_HDRLEN], cb, ctx, result);
}

int netlink_get(struct netlink *nl, struct netlink_request *const *requests, unsigned n, netlink_cb cb, void *ctx,
		struct netlink_result *result)
{
	return n ? ask(requests[0]->bytes[NLMSG_HDRLEN], cb, ctx, result) : 0;
}

bool interface_update(struct interface *i)
{
	const unsigned before = i->index;

	i->index = 7;
	return i->index != before;
}

/* --- the pipeline */
static unsigned rows[OAL_N_TABLES], gone[OAL_N_TABLES], unseen;
static uint64_t since_us, row_bytes;
static bool has_flow, in_order;
static char kind[32];
static uint64_t address_of;

void pipeline_row(struct pipeline *p, enum oal_table_id t, const void *row)
{
	rows[t]++;
	if (t == OAL_QUEUE) {
		const uint64_t bytes = ((const struct oal_queue_row *)row)->bytes;

		in_order &= bytes == row_bytes + 1;
		row_bytes = bytes;
	}
}

void pipeline_gone(struct pipeline *p, enum oal_table_id t, const void *row)
{
	gone[t]++;
}

void pipeline_gone_before(struct pipeline *p, enum oal_table_id t, uint16_t device, uint64_t since)
{
	unseen++;
	since_us = since;
}

bool pipeline_station_active(const struct pipeline *p, uint64_t mac, uint64_t since)
{
	since_us = since;
	return has_flow;
}

void pipeline_station_addr(struct pipeline *p, const uint8_t *ip, int ip_len, uint64_t mac)
{
	address_of = ip_len == 4 && ip[3] == 9 ? mac : 0;
}

uint16_t pipeline_name(struct pipeline *p, const char *name)
{
	snprintf(kind, sizeof kind, "%s", name);
	return 5;
}

/* --- the daemon */
static struct collectors collectors;
static struct collector_counts counts;
static struct collector_tick now;
static uint64_t began_us;

/* The tick that is due by now, if there is one. */
static void tick(void)
{
	const struct timespec moment = { .tv_nsec = 500000 };
	const uint64_t number = (clock_monotonic_us() - began_us) / OAL_SETTING_TICK_US;

	nanosleep(&moment, NULL);
	if (number == now.number)
		return;
	if (number / 250 != now.number / 250)
		collectors_second(&collectors);
	now.number = number;
	now.monotonic_us = began_us + number * OAL_SETTING_TICK_US;
	now.due_us = 1700000000000000 + number * OAL_SETTING_TICK_US;
	collectors_tick(&collectors, &now);
}

#define UNTIL(condition)                                                                \
	do                                                                              \
		for (uint64_t limit_ = clock_monotonic_us() + 60000000; !(condition);) { \
			CHECK(clock_monotonic_us() < limit_);                           \
			if (clock_monotonic_us() >= limit_)                             \
				break;                                                  \
			tick();                                                         \
		}                                                                       \
	while (0)

static void start(uint32_t cpu_percent)
{
	static struct config c;
	struct collector_env env = { .config = &c, .counts = &counts };
	char err[256] = "";

	c.exporter.max_stations = 4;
	c.exporter.sampling_cpu_percent = cpu_percent;
	c.n_nl80211 = c.n_qdisc = 1;
	c.nl80211[0] = (struct config_nl80211){ true, "wlan0", 25, 250, 25, 5 };
	c.qdisc[0] = (struct config_qdisc){ true, "eth0", 1 };
	memset(&collectors, 0, sizeof collectors);
	began_us = clock_monotonic_us();
	now.number = 0;
	CHECK_EQ(collectors_start(&collectors, &env, err, sizeof err), 0);
	on_main = 0; /* from here on; starting may ask */
}

static struct sampler_stats stats_of(const char *name)
{
	struct sampler_stats s = { 0 };

	for (unsigned i = 0; i < collectors.n_samplers; i++)
		if (!strcmp(sampler_name(collectors.samplers[i]), name))
			sampler_stats(collectors.samplers[i], &s);
	return s;
}

/* --- the ring alone */
enum { MANY = 200000 };

static struct collector_tick *at(uint64_t due_us)
{
	static struct collector_tick t;

	t = (struct collector_tick){ .due_us = due_us };
	return &t;
}

static void *write_many(void *samples)
{
	for (uint64_t i = 1; i <= MANY; i++)
		samples_queue(samples, &(struct oal_queue_row){ .bytes = i }, "fq_codel");
	return NULL;
}

static void ring(void)
{
	const uint8_t ip[4] = { 192, 0, 2, 9 };
	struct samples *s;
	pthread_t writer;
	uint64_t mac;

	test("what is written by one thread is read by the other, all of it, in its order, however small the ring");
	CHECK_EQ(samples_new(&s, 1), 0);
	in_order = true;
	pthread_create(&writer, NULL, write_many, s);
	while (rows[OAL_QUEUE] < MANY)
		samples_drain(s, NULL, &counts, at(1));
	pthread_join(writer, NULL);
	CHECK(in_order);
	CHECK_EQ(rows[OAL_QUEUE], MANY);
	CHECK(!strcmp(kind, "fq_codel"));

	test("while more ticks are due a tick takes what belongs to it, and the last one takes what is there");
	rows[OAL_QUEUE] = 0;
	for (uint64_t n = 65534; n < 65540; n++) { /* its low bits go over */
		samples_tick(s, n);
		samples_queue(s, &(struct oal_queue_row){ .bytes = MANY + n }, "fq_codel");
	}
	samples_drain(s, NULL, &counts, &(struct collector_tick){ .number = 65533, .more = true });
	CHECK_EQ(rows[OAL_QUEUE], 0);
	samples_drain(s, NULL, &counts, &(struct collector_tick){ .number = 65536, .more = true });
	CHECK_EQ(rows[OAL_QUEUE], 3);
	samples_drain(s, NULL, &counts, &(struct collector_tick){ .number = 65537 });
	CHECK_EQ(rows[OAL_QUEUE], 6);

	test("a rest ends before the ring is more than a quarter full, if it goes on as it did");
	CHECK_EQ(rest_for(0, 4096, 25), REST_MOST);
	CHECK_EQ(rest_for(1000, 4096, 25), 25);
	CHECK_EQ(rest_for(1024, 4096, 5), 5);
	CHECK_EQ(rest_for(4096, 4096, 20), 5);
	CHECK_EQ(rest_for(1 << 20, 4096, 1), 1);
	CHECK_EQ(rest_for(1 << 22, 1 << 24, UINT32_MAX), REST_MOST);

	test("a writer whose reader has gone does not wait for it");
	samples_close(s);
	write_many(s);
	samples_free(s);

	test("rounds, addresses, counts and questions arrive as what they are");
	CHECK_EQ(samples_new(&s, 1), 0);
	samples_round(s);
	samples_drain(s, NULL, &counts, at(1000));
	samples_unseen_gone(s, OAL_BEACON, 3);
	samples_drain(s, NULL, &counts, at(2000));
	CHECK_EQ(unseen, 1);
	CHECK_EQ(since_us, 1000);
	samples_all_gone(s, OAL_BEACON, 3);
	samples_address(s, ip, 4, 77);
	samples_count(s, &(struct collector_counts){ .netlink_errors = 2, .counters_mended = 1 });
	samples_queue_gone(s, &(struct oal_queue_row){ 0 }, "htb");
	has_flow = false;
	samples_query(s, 42, 500);
	samples_drain(s, NULL, &counts, at(3000));
	CHECK_EQ(address_of, 77);
	CHECK_EQ(counts.netlink_errors, 2);
	CHECK_EQ(counts.counters_mended, 1);
	CHECK_EQ(gone[OAL_QUEUE], 1);
	CHECK_EQ(since_us, 2500);
	CHECK(!samples_wanted(s, &mac));
	has_flow = true;
	samples_query(s, 42, 500);
	samples_drain(s, NULL, &counts, at(4000));
	CHECK(samples_wanted(s, &mac));
	CHECK_EQ(mac, 42);
	CHECK(!samples_wanted(s, &mac));
	has_flow = false;
	samples_free(s);
}

static void rules(void)
{
	uint32_t cpu[2] = { 30, 40 };
	unsigned pace[2] = { 0, 0 };
	struct budget b = { 0 };

	test("an interval doubles with each pace; an answer slower than a tick is given rest, ten seconds at the most");
	CHECK_EQ(pace_interval(5, 0, 100, 20), 5);
	CHECK_EQ(pace_interval(5, 3, 100, 20), 40);
	CHECK_EQ(pace_interval(1, 0, 50000, 20), 250);
	CHECK_EQ(pace_interval(1, 0, 50000, 1), 12);
	CHECK_EQ(pace_interval(1, 0, 3000000, 20), 2500);
	CHECK_EQ(pace_interval(2500, 8, 3000000, 20), 640000);

	test("over the budget who uses most slows down, as far as it goes; within half of it for a while all recover");
	CHECK_EQ(budget_decide(&b, 50, cpu, pace, 2), 1);
	CHECK_EQ(pace[0] * 10 + pace[1], 1);
	cpu[1] = 20;
	CHECK_EQ(budget_decide(&b, 50, cpu, pace, 2), 0);
	cpu[1] = 21;
	CHECK_EQ(budget_decide(&b, 50, cpu, pace, 2), 1);
	CHECK_EQ(pace[0] * 10 + pace[1], 11);
	for (int i = 0; i < 100; i++)
		budget_decide(&b, 50, cpu, pace, 2);
	CHECK_EQ(pace[0], BUDGET_MOST_PACE);
	CHECK_EQ(pace[1], BUDGET_MOST_PACE);
	CHECK_EQ(budget_decide(&b, 50, cpu, pace, 2), 0);
	cpu[0] = 5;
	for (int i = 1; i < BUDGET_CALM_S; i++)
		CHECK_EQ(budget_decide(&b, 60, cpu, pace, 2), 0);
	CHECK_EQ(budget_decide(&b, 60, cpu, pace, 2), -1);
	cpu[0] = 10; /* within the budget but not within half of it: as it is */
	for (int i = 0; i < 100; i++)
		CHECK_EQ(budget_decide(&b, 60, cpu, pace, 2), 0);
	cpu[0] = 5;
	for (int i = 0; i < 100; i++)
		budget_decide(&b, 60, cpu, pace, 2);
	CHECK_EQ(pace[0] + pace[1], 0);
}

int main(void)
{
	unsigned before;

	main_thread = pthread_self();
	ring();
	rules();
	memset(rows, 0, sizeof rows);

	test("stations and queues are sampled, and the tick thread asks for nothing");
	start(100);
	UNTIL(rows[OAL_STATION] >= 20 && stats_of("kernel").rounds >= 20);
	CHECK_EQ(on_main, 0);
	CHECK_EQ(collectors.n_samplers, 2);

	test("a driver that answers after 3 s holds up no tick: it is the sampler that waits, and says so");
	pthread_mutex_lock(&gate);
	UNTIL(waiting);
	before = rows[OAL_STATION];
	UNTIL(stats_of("wlan0").skipped >= 700 && stats_of("wlan0").longest_us >= 3000000);
	CHECK(rows[OAL_STATION] <= before + 1); /* one may have been on its way */
	CHECK_EQ(on_main, 0);
	test("once it answers its rows come again");
	pthread_mutex_unlock(&gate);
	UNTIL(rows[OAL_STATION] >= before + 10);

	test("answers that are errors are counted, and the rows come again after them");
	failure = -EIO;
	before = (unsigned)counts.netlink_errors;
	UNTIL(counts.netlink_errors >= before + 10);
	failure = 0;
	before = rows[OAL_STATION];
	UNTIL(rows[OAL_STATION] >= before + 10);

	test("a collector that is stopped gives its socket back");
	before = closed;
	collectors_stop(&collectors);
	CHECK_EQ(closed, before + 2);

	test("one whose driver never answers is left to itself, and frees everything when the kernel lets it go");
	start(100);
	UNTIL(rows[OAL_STATION] > 0 && stats_of("wlan0").rounds > 0);
	pthread_mutex_lock(&gate);
	UNTIL(waiting);
	before = closed;
	collectors_stop(&collectors);
	CHECK(closed <= before + 1);
	pthread_mutex_unlock(&gate);
	for (uint64_t limit = clock_monotonic_us() + 60000000; closed < before + 2 && clock_monotonic_us() < limit;)
		nanosleep(&(struct timespec){ .tv_nsec = 500000 }, NULL);
	CHECK_EQ(closed, before + 2);

	test("sampling that takes more of the processor than it may slows down");
	burn_us = 500;
	start(1);
	UNTIL(stats_of("wlan0").pace + stats_of("kernel").pace > 0);
	CHECK_EQ(on_main, 0);
	collectors_stop(&collectors);
	return done();
}
