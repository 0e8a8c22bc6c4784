/*
 * Who samples the stations, module or nl80211, and how they hand over: a module of our own fills a ring in memory, the
 * pipeline only takes notes. Both stand in for the daemon's (the linker takes the first definition).
 */
#include "check.h"
#include "base/json.h"
#include "kmod/kmod_ring.h"
#include "kmod/kmod_source.h"
#include "pipeline/pipeline.h"
#include "sample/rest.h"

#include <errno.h>

/* --- the module */
static uint8_t memory[OAL_SAMPLER_RING_AT + OAL_SAMPLER_RING_MAX] __attribute__((aligned(8)));
static struct oal_sampler_header *const header = (void *)memory;
static struct oal_sampler_reader *const reader = (void *)(memory + OAL_SAMPLER_READER_AT);
static int open_error, start_error;
static unsigned opens, starts;
static struct oal_sampler_start started;

int kmod_ring_open(struct kmod_ring *r, const char *device)
{
	opens++;
	*r = (struct kmod_ring){ .fd = open_error ? -1 : 1000 };
	return open_error;
}

int kmod_ring_start(struct kmod_ring *r, const struct oal_sampler_start *start)
{
	starts++;
	started = *start;
	if (start_error)
		return start_error;
	memset(memory, 0, sizeof memory);
	*header = (struct oal_sampler_header){ .magic = OAL_SAMPLER_MAGIC,
					       .version = OAL_SAMPLER_VERSION,
					       .ring_bytes = start->ring_bytes,
					       .state = OAL_SAMPLER_RUNNING };
	return kmod_ring_lay(r, memory, OAL_SAMPLER_RING_AT + start->ring_bytes);
}

void kmod_ring_close(struct kmod_ring *r)
{
	r->fd = -1;
}

static uint32_t tick_now(uint64_t monotonic_us)
{
	return (uint32_t)((monotonic_us * 1000 - started.first_ns) / started.tick_ns);
}

static void put(void *record, uint16_t kind, uint16_t bytes, uint32_t tick)
{
	*(struct oal_sampler_record *)record = (struct oal_sampler_record){ kind, bytes, tick };
	memcpy(memory + OAL_SAMPLER_RING_AT + header->head % started.ring_bytes, record, bytes);
	header->head += bytes;
}

static void station(uint8_t last, uint32_t rx_pkts, bool active, uint32_t tick)
{
	struct oal_sampler_station s = { .mac = { 2, 0, 0, 0, 0, last }, .active = active, .rx_pkts = rx_pkts,
					 .has = UINT64_C(1) << 9 /* NL80211_STA_INFO_RX_PACKETS */ };

	put(&s, OAL_SAMPLER_STATION, sizeof s, tick);
}

/* --- the pipeline */
static unsigned rows, gone;
static struct oal_station_row last;
static struct oal_counter_refresh_row period;
static bool flow_active;

void pipeline_row(struct pipeline *p, enum oal_table_id t, const void *row)
{
	rows++;
	if (t == OAL_COUNTER_REFRESH)
		period = *(const struct oal_counter_refresh_row *)row;
	if (t == OAL_STATION)
		last = *(const struct oal_station_row *)row;
}

void pipeline_gone(struct pipeline *p, enum oal_table_id t, const void *row)
{
	gone++;
}

bool pipeline_station_active(const struct pipeline *p, uint64_t mac, uint64_t since_us)
{
	return flow_active;
}

/* One whose signal has changed. */
static void loud_station(int8_t signal_dbm, uint32_t rx_pkts, uint32_t tick)
{
	struct oal_sampler_station s = { .mac = { 2, 0, 0, 0, 0, 1 }, .active = true, .rx_pkts = rx_pkts,
					 .signal_dbm = signal_dbm,
					 .has = UINT64_C(1) << 9 | UINT64_C(1) << 7 /* NL80211_STA_INFO_SIGNAL */ };

	put(&s, OAL_SAMPLER_STATION, sizeof s, tick);
}

/* --- */
static struct kmod_source *source;
static struct collector_tick t;
static uint32_t index_now = 7;

static void begin(void)
{
	const struct kmod_source_config c = { .device = "stand-in", .interface = "wlan0", .max_stations = 8,
					      .idle_interval_ticks = 25, .active_hold_ticks = 250 };

	open_error = start_error = 0;
	opens = starts = rows = gone = 0;
	flow_active = false;
	t = (struct collector_tick){ .number = 1, .monotonic_us = 1000000000, .due_us = 5000000000 };
	CHECK(kmod_source_new(&source, &c) == 0);
}

static void end(void)
{
	kmod_source_free(source);
	source = NULL;
}

/* The next tick, on both threads. True: the module samples; *over: it was handed over. */
static bool tick(unsigned ticks, bool *over)
{
	bool handed_over = false, reads;

	t.number += ticks;
	t.monotonic_us += ticks * 4000u;
	t.due_us += ticks * 4000u;
	reads = kmod_source_samples(source, index_now, &t, &handed_over);
	if (header->state)
		header->tick = tick_now(t.monotonic_us);
	kmod_source_tick(source, &t);
	if (over)
		*over = handed_over;
	return reads;
}

static bool says(const char *what)
{
	char text[1024];
	struct json j = { .buf = text, .size = sizeof text };

	kmod_source_json(source, &j);
	return strstr(text, what) != NULL;
}

int main(void)
{
	bool over;

	test("what the module samples become rows, at their tick and not before");
	begin();
	CHECK(tick(1, &over) && over && starts == 1);
	CHECK(started.ifindex == 7 && started.version == OAL_SAMPLER_VERSION);
	station(1, 10, true, tick_now(t.monotonic_us) + 1);
	station(2, 20, true, tick_now(t.monotonic_us) + 2);
	CHECK(tick(1, &over) && !over);
	CHECK_EQ(rows, 1);
	CHECK_EQ(last.mac, 0x020000000001);
	tick(1, NULL);
	CHECK_EQ(rows, 2);
	CHECK_EQ(last.rx_pkts, 20);
	CHECK(says("\"source\": \"module\"") && says("\"records\": 2"));

	test("a station that leaves is gone");
	{
		struct oal_sampler_left left = { .mac = { 2, 0, 0, 0, 0, 1 } };

		put(&left, OAL_SAMPLER_LEFT, sizeof left, tick_now(t.monotonic_us) + 1);
	}
	tick(1, NULL);
	CHECK_EQ(gone, 1);

	test("for a station without traffic whose flows have packets more is asked for");
	station(2, 20, false, tick_now(t.monotonic_us) + 1);
	tick(1, NULL);
	CHECK_EQ(reader->wanted, 0);
	flow_active = true;
	station(2, 20, false, tick_now(t.monotonic_us) + 1);
	tick(1, NULL);
	CHECK(reader->wanted == 1 && reader->wanted_mac[0][5] == 2);

	test("the pace slows stations without traffic first");
	CHECK(reader->active_interval_ticks == 1 && reader->idle_interval_ticks == 25);
	t.pace = 1;
	tick(1, NULL);
	CHECK(reader->active_interval_ticks == 1 && reader->idle_interval_ticks == 50);
	t.pace = 4;
	tick(1, NULL);
	CHECK(reader->active_interval_ticks == 4 && reader->idle_interval_ticks == 100);
	t.pace = 0;

	test("a slow driver is asked half of the time at the most");
	header->longest_us = 40000;
	tick(1, NULL);
	CHECK_EQ(reader->active_interval_ticks, 10);
	header->longest_us = 0;

	test("ticks that the module missed are told, also over its next start");
	header->ticks_missed = 2;
	tick(1, NULL);
	CHECK(says("\"ticks_missed\": 2"));

	test("a rest ends before the ring is more than a quarter full; without the module it is short");
	kmod_source_rest(source, 25);
	CHECK_EQ(kmod_source_rest(source, 25), REST_MOST); /* nothing since */
	for (unsigned i = 0; i < 40; i++)
		station(2, 20 + i, true, tick_now(t.monotonic_us) + 1);
	tick(1, NULL);
	CHECK_EQ(kmod_source_rest(source, 5),
		 started.ring_bytes / 4 * 5 / (40 * (uint32_t)sizeof(struct oal_sampler_station)));

	test("a ring that overran is counted, nl80211 goes on, and the module is taken again later");
	header->records_lost = 3;
	tick(1, NULL); /* the tick thread sees it and leaves */
	CHECK_EQ(gone, 2);
	CHECK(!tick(1, &over) && over);
	CHECK_EQ(kmod_source_rest(source, 25), REST_FLOOD);
	CHECK(says("\"source\": \"nl80211\"") && says("overran") && says("\"records_lost\": 3"));
	CHECK(!tick(100, &over) && !over && starts == 1);
	CHECK(tick(2500, &over) && over && starts == 2);
	CHECK(says("\"source\": \"module\"") && says("\"records_lost\": 3"));
	header->ticks_missed = 1;
	tick(1, NULL);
	CHECK(says("\"ticks_missed\": 3"));

	test("a module that stops is left");
	station(3, 1, true, tick_now(t.monotonic_us) + 1);
	tick(1, NULL);
	for (int i = 0; i < 3; i++) {
		t.monotonic_us += 500000; /* its tick stands still */
		kmod_source_tick(source, &t);
	}
	CHECK_EQ(gone, 3);
	CHECK(!tick(1, NULL) && says("stopped"));

	test("an interface that goes away and comes back is taken up at once");
	CHECK(tick(2500, NULL));
	kmod_source_end(source);
	tick(1, NULL);
	index_now = 0;
	CHECK(!tick(1, &over) && over && says("interface"));
	CHECK(!tick(1, NULL));
	index_now = 9;
	CHECK(tick(1, NULL) && started.ifindex == 9);

	test("and so is one that the module misses first");
	header->state = OAL_SAMPLER_GONE;
	kmod_source_tick(source, &t);
	CHECK(tick(1, &over) && over);

	test("how often the driver renews a counter is told, once a second");
	end();
	begin();
	tick(1, NULL);
	for (uint32_t i = 0; i < 20; i++) {
		loud_station((int8_t)(-60 + (i & 1)), 10 * i, tick_now(t.monotonic_us) + 1);
		tick(1, NULL);
	}
	CHECK_EQ(period.period_us, 0);
	loud_station(-50, 1000, tick_now(t.monotonic_us) + 250);
	tick(250, NULL);
	CHECK_EQ(period.period_us, OAL_SETTING_TICK_US);
	CHECK_EQ(period.of_field, oal_tables[OAL_STATION].columns[OAL_STATION_SIGNAL_DBM].field);

	test("a ring that makes no sense is left");
	{
		struct oal_sampler_left left = { .mac = { 2 } };

		put(&left, 77, sizeof left, tick_now(t.monotonic_us));
	}
	tick(1, NULL);
	CHECK(!tick(1, NULL) && says("cannot be read"));
	end();

	test("without the module, or with one of another version, nl80211 goes on, and it is looked for again");
	begin();
	end();
	open_error = -ENOENT;
	{
		const struct kmod_source_config c = { .device = "stand-in", .interface = "wlan0", .max_stations = 8,
						      .idle_interval_ticks = 25, .active_hold_ticks = 250 };

		opens = starts = 0;
		CHECK(kmod_source_new(&source, &c) == 0);
	}
	CHECK(!tick(1, NULL) && says("not loaded") && starts == 0);
	open_error = 0;
	start_error = -EPROTO;
	CHECK(!tick(2500, NULL) && starts == 1 && says(strerror(EPROTO)));
	start_error = -ENODEV; /* the interface went away a moment ago */
	CHECK(!tick(2500, NULL) && starts == 2 && says("interface went away"));
	start_error = 0;
	CHECK(!tick(100, NULL) && starts == 2);
	CHECK(tick(2500, NULL) && starts == 3);
	end();
	return done();
}
