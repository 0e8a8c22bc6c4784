/*
 * The collector of a tap with a pipeline, over a tap of our own that stands in for the kernel's (the linker takes the
 * first definition), and stations as the nl80211 collector hands them over: whose bytes are compared, and what comes of
 * it.
 */
#include "check.h"
#include "base/json.h"
#include "collect/collector.h"
#include "oal_features.h"
#include "pipeline/pipeline.h"
#include "tap/tap.h"

#include <errno.h>

enum { STATIONS = 4, SECOND = 1000000, TICK_US = 4000 };
static const uint64_t START_US = UINT64_C(1800000000000000);

/* --- the tap */
static struct {
	uint64_t mac;
	struct tap_station bytes;
} counted[STATIONS];
static bool open_fails;
static const char *opened;
static struct tap_stats totals;
static struct tap_frame frames[4];
static unsigned n_frames, reads_of_bytes;

static int check_tap(const struct tap_config *c, char *err, size_t err_size)
{
	return 0;
}

static int open_bpf(void **self, const struct tap_config *c, char *err, size_t err_size)
{
	CHECK(!strcmp(c->interface, "phy0-ap0") && c->max_stations == STATIONS);
	if (open_fails)
		snprintf(err, err_size, "no programs today");
	opened = "bpf";
	return open_fails ? -EPERM : 0;
}

static int open_packet(void **self, const struct tap_config *c, char *err, size_t err_size)
{
	opened = "packet";
	return 0;
}

static void read_tap(void *self, int64_t to_realtime_us, tap_frame_cb cb, void *ctx)
{
	CHECK_EQ(to_realtime_us, 77);
	while (n_frames)
		cb(ctx, &frames[--n_frames]);
}

static void second_of(void *self)
{
}

static void stats_of(void *self, struct tap_stats *s)
{
	*s = totals;
}

static int station(void *self, uint64_t mac, bool wanted)
{
	for (unsigned i = 0; i < STATIONS; i++) {
		if (counted[i].mac != (wanted ? 0 : mac))
			continue;
		counted[i].mac = wanted ? mac : 0;
		counted[i].bytes = (struct tap_station){ 0 };
		return 0;
	}
	return -E2BIG;
}

static tap_station_cb told;
static void *told_ctx;
static bool tells_late; /* as while the helper runs: late() tells */
static struct {
	uint64_t mac;
	struct tap_station bytes;
} untold[STATIONS];
static unsigned n_untold;

static void on_station_bytes(void *self, tap_station_cb cb, void *ctx)
{
	told = cb;
	told_ctx = ctx;
}

static int station_bytes(void *self, uint64_t mac)
{
	reads_of_bytes++;
	for (unsigned i = 0; i < STATIONS; i++) {
		if (counted[i].mac != mac)
			continue;
		if (tells_late) {
			untold[n_untold].mac = mac;
			untold[n_untold++].bytes = counted[i].bytes;
		} else {
			told(told_ctx, mac, &counted[i].bytes);
		}
		return 0;
	}
	return -ENOENT;
}

static void late(void)
{
	for (unsigned i = 0; i < n_untold; i++)
		told(told_ctx, untold[i].mac, &untold[i].bytes);
	n_untold = 0;
}

static void close_of(void *self)
{
	opened = NULL;
}

const struct tap_ops tap_bpf = {
	"bpf", check_tap, open_bpf, read_tap, second_of, stats_of, station, on_station_bytes, station_bytes,
	close_of,
};
const struct tap_ops tap_packet = {
	"packet", check_tap, open_packet, read_tap, second_of, stats_of, NULL, NULL, NULL, close_of,
};

/* --- the access point */
static struct pipeline *pipeline;
static struct collector_counts counts;
static struct config config;
static void *self;
static uint64_t due_us = START_US;
static struct oal_station_row rows[STATIONS];

static void emit(void *ctx, const struct batch_out *b)
{
}

/* What the nl80211 collector hands over. */
static void stations(void)
{
	due_us += TICK_US;
	pipeline_tick(pipeline, due_us, 0, 0);
	for (unsigned i = 0; i < STATIONS; i++)
		if (rows[i].mac)
			pipeline_row(pipeline, OAL_STATION, &rows[i]);
}

static void begin(const char *tap)
{
	const struct pipeline_config c = {
		.ap_id = "ap-1", .boot_id = 1, .max_stations = STATIONS, .program = &oal_feature_congestion,
		.emit = emit,
	};
	const struct collector_env env = { .config = &config, .counts = &counts, .pipeline = NULL };
	struct collector_env with = env;
	char err[256] = "";

	memset(rows, 0, sizeof rows);
	memset(counted, 0, sizeof counted);
	memset(&totals, 0, sizeof totals);
	memset(&counts, 0, sizeof counts);
	config = (struct config){ .exporter.max_stations = STATIONS, .n_tap = 1 };
	config.tap[0] = (struct config_tap){ true, "phy0-ap0", "", 256 };
	snprintf(config.tap[0].tap, sizeof config.tap[0].tap, "%s", tap);
	CHECK_EQ(pipeline_new(&pipeline, &c), 0);
	with.pipeline = pipeline;
	CHECK_EQ(collect_tap.sections(&config), 1);
	CHECK_EQ(collect_tap.start(&self, &with, err, sizeof err), 0);
}

static void end(void)
{
	collect_tap.stop(self);
	CHECK(!opened);
	pipeline_free(pipeline);
}

static void come(unsigned i, const char *device)
{
	rows[i] = (struct oal_station_row){
		.mac = 0x020000000100u + i, .device = pipeline_name(pipeline, device), .interval_ticks = 1,
		.tx_bytes = 5000000, .rx_bytes = 100000,
	};
}

/* A second in which a station's counter grew, and what the tap saw of it. */
static void second(unsigned i, uint64_t grew, uint64_t seen)
{
	rows[i].tx_bytes += grew;
	for (unsigned k = 0; k < STATIONS; k++)
		if (counted[k].mac == rows[i].mac)
			counted[k].bytes.down_bytes += seen;
	stations();
	collect_tap.second(self);
}

static bool bypassed(unsigned i)
{
	return pipeline_station_bypassed(pipeline, 0x020000000100u + i);
}

static const char *status(void)
{
	static char text[4096];
	struct json j = { text, sizeof text, 0 };

	collect_tap.json(self, &j);
	text[json_len(&j)] = '\0';
	return text;
}

static const char *alarm_of(void)
{
	static char text[512];

	CHECK_EQ(collect_tap.alarm(self, text, sizeof text), strlen(text));
	return text;
}

static void which_tap(void)
{
	open_fails = false;
	begin("auto");
	CHECK(!strcmp(opened, "bpf"));
	CHECK(strstr(status(), "\"tap\": \"bpf\"") && strstr(status(), "\"instead\": \"\""));
	end();
	begin("packet");
	CHECK(!strcmp(opened, "packet"));
	CHECK(strstr(status(), "\"instead\": \"\"") != NULL);
	end();
	open_fails = true;
	begin("auto");
	CHECK(!strcmp(opened, "packet"));
	CHECK(strstr(status(), "\"tap\": \"packet\"") && strstr(status(), "\"instead\": \"no programs today\""));
	come(0, "phy0-ap0");
	for (unsigned i = 0; i < 9; i++)
		second(0, SECOND, 0); /* a packet socket counts no bytes: nothing is known, so nothing is said */
	CHECK(!bypassed(0) && !alarm_of()[0]);
	CHECK(strstr(status(), "\"stations_compared\": 0") != NULL);
	end();
	open_fails = false;
}

static void counted_losses(void)
{
	const struct collector_tick t = { .number = 1, .due_us = START_US + 77, .monotonic_us = START_US };

	begin("bpf");
	collect_tap.before_tick(self, &t);
	totals = (struct tap_stats){ .overruns = 5, .losses = 2, .frames = 900, .packets = 800, .attached = true };
	collect_tap.before_tick(self, &t);
	collect_tap.before_tick(self, &t);
	CHECK_EQ(counts.ring_drops, 5);
	CHECK_EQ(counts.interface_losses, 2);
	totals.overruns = 7;
	collect_tap.before_tick(self, &t);
	CHECK_EQ(counts.ring_drops, 7);
	CHECK(strstr(status(), "\"attached\": true, \"frames\": 900, \"packets\": 800, \"overruns\": 7, "
			       "\"losses\": 2"));
	end();
}

static void past_the_tap(void)
{
	unsigned i;

	begin("bpf");
	come(0, "phy0-ap0");
	come(1, "phy0-ap0");
	come(2, "phy1-ap0"); /* another port's: not for this tap to judge */
	second(0, 0, 0);
	CHECK(counted[0].mac && counted[1].mac && !counted[2].mac);
	for (i = 0; i < 3; i++) {
		CHECK(!bypassed(1));
		rows[0].tx_bytes += SECOND;
		counted[0].bytes.down_bytes += SECOND;
		rows[2].tx_bytes += SECOND;
		second(1, SECOND, 20000);
	}
	CHECK(bypassed(1) && !bypassed(0) && !bypassed(2));
	CHECK(strstr(status(), "\"stations_compared\": 2, \"stations_bypassed\": 1, \"control_off\": [{\"mac\": "
			       "\"02:00:00:00:01:01\", \"reason\": \"of the last 1000000 bytes to "
			       "02:00:00:00:01:01 the tap saw 20000: hardware flow offload"));
	CHECK(strstr(alarm_of(), "control is off for 1 of the stations of phy0-ap0") != NULL);
	reads_of_bytes = 0;
	for (i = 0; i < 50; i++)
		second(1, 100, 0); /* idle: nothing is read, nothing changes */
	CHECK(bypassed(1) && !reads_of_bytes);
	second(1, SECOND, SECOND);
	second(1, SECOND, SECOND);
	CHECK(!bypassed(1) && !alarm_of()[0]);
	CHECK(strstr(status(), "\"stations_bypassed\": 0, \"control_off\": []") != NULL);
	end();
}

static void leaves(void)
{
	struct oal_station_row gone;
	unsigned i;

	begin("bpf");
	come(0, "phy0-ap0");
	second(0, 0, 0);
	for (i = 0; i < 3; i++)
		second(0, SECOND, 0);
	CHECK(bypassed(0));
	gone = rows[0];
	rows[0].mac = 0;
	pipeline_gone(pipeline, OAL_STATION, &gone);
	for (i = 0; i < 100; i++)
		stations();
	collect_tap.second(self);
	CHECK(!bypassed(0) && !counted[0].mac && !alarm_of()[0]);
	for (i = 0; i < STATIONS; i++)
		come(i, "phy0-ap0");
	second(0, 0, 0);
	CHECK(!bypassed(0)); /* it begins anew */
	for (i = 0; i < STATIONS; i++)
		CHECK(counted[i].mac != 0);
	second(0, SECOND, 0);
	second(0, SECOND, 0);
	CHECK(!bypassed(0));
	second(0, SECOND, 0);
	CHECK(bypassed(0));
	end();
}

static void told_late(void)
{
	struct oal_station_row gone;

	begin("bpf");
	come(0, "phy0-ap0");
	come(1, "phy0-ap0");
	second(0, 0, 0);
	tells_late = true;
	for (unsigned i = 0; i < 3; i++) {
		CHECK(!bypassed(0));
		second(0, SECOND, 0);
		rows[0].tx_bytes += SECOND; /* after the question: none of this look's */
		late();
	}
	CHECK(bypassed(0) && !bypassed(1));
	CHECK(strstr(alarm_of(), "of the last 2000000 bytes to 02:00:00:00:01:00 the tap saw 0") != NULL);
	second(1, SECOND, 0);
	gone = rows[1];
	rows[1].mac = 0;
	pipeline_gone(pipeline, OAL_STATION, &gone);
	for (unsigned i = 0; i < 100; i++)
		stations();
	collect_tap.second(self);
	late(); /* of a station that has left: nobody's */
	CHECK(!bypassed(1));
	tells_late = false;
	end();
	CHECK(!told && !counted[0].mac && !counted[1].mac); /* nothing stays counted for a tap that goes on */
}

int main(void)
{
	test("auto takes the programs, else a packet socket and says why; what is named is taken");
	which_tap();
	test("overruns and losses of the port are counted once");
	counted_losses();
	test("a station whose counters grow and whose packets the tap does not see is not controlled, with the reason; "
	     "seen again it is");
	past_the_tap();
	test("what the tap tells later is compared with what the station had when it was asked; nobody is told at the "
	     "end");
	told_late();
	test("a station that leaves and comes back begins anew");
	leaves();
	return done();
}
