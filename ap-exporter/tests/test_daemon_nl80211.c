/*
 * What the nl80211 collector asks for and what it makes of the answers: a kernel of our own answers from memory, and
 * the pipeline only takes notes. Both stand in for the daemon's (the linker takes the first definition).
 */
#include "check.h"
#include "base/clock.h"
#include "collect/collector.h"
#include "packet/interface.h"
#include "netlink/netlink.h"
#include "pipeline/pipeline.h"

#include <errno.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/nl80211.h>

#define MOST 8

/* --- the kernel */
static struct {
	uint64_t mac;
	uint32_t tx_pkts, backlog;
	bool there, skipped_by_dump;
} stations[MOST];
static unsigned dumps, gets, surveys;
static int dump_error, survey_error;
static bool interrupted;
static unsigned renewed; /* ticks after which the driver renews its survey; 0: never */
static struct collector_tick now;
static uint32_t frequency = 2412;
static unsigned ifindex = 7;

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
}

int netlink_family(struct netlink *nl, const char *name)
{
	return 28;
}

static uint32_t put(uint8_t *p, uint16_t type, const void *data, uint16_t len)
{
	uint16_t head[2] = { (uint16_t)(len + 4), type };

	memset(p, 0, (len + 7u) & ~3u);
	memcpy(p, head, 4);
	memcpy(p + 4, data, len);
	return (len + 7u) & ~3u;
}

static void answer_station(unsigned i, netlink_cb cb, void *ctx)
{
	const struct nlmsghdr h = { 0 };
	uint8_t txq[64], tid[96], tids[128], info[256], msg[512] = { 0 }, mac[6];
	uint32_t n, len = GENL_HDRLEN;

	for (int k = 0; k < 6; k++)
		mac[k] = (uint8_t)(stations[i].mac >> (40 - 8 * k));
	n = put(txq, NL80211_TXQ_STATS_BACKLOG_PACKETS, &stations[i].backlog, 4);
	n += put(txq + n, NL80211_TXQ_STATS_TX_PACKETS, &stations[i].tx_pkts, 4);
	n = put(tid, NL80211_TID_STATS_TXQ_STATS, txq, (uint16_t)n);
	n = put(tids, 1, tid, (uint16_t)n);
	n = put(info, NL80211_STA_INFO_TID_STATS, tids, (uint16_t)n);
	n += put(info + n, NL80211_STA_INFO_TX_PACKETS, &stations[i].tx_pkts, 4);
	len += put(msg + len, NL80211_ATTR_MAC, mac, 6);
	len += put(msg + len, NL80211_ATTR_STA_INFO, info, (uint16_t)n);
	cb(ctx, &h, msg, len);
}

int netlink_dump(struct netlink *nl, struct netlink_request *r, netlink_cb cb, void *ctx, struct netlink_result *result)
{
	const struct nlmsghdr h = { 0 };
	uint8_t info[64], msg[128] = { 0 };
	uint64_t active = 5 + (renewed ? now.number / renewed * 50 : 0); /* less than what may pass between two looks */
	uint32_t n;

	*result = (struct netlink_result){ .interrupted = interrupted };
	if (r->bytes[NLMSG_HDRLEN] == NL80211_CMD_GET_SURVEY) {
		surveys++;
		if (survey_error)
			return survey_error;
		n = put(info, NL80211_SURVEY_INFO_FREQUENCY, &frequency, 4);
		n += put(info + n, NL80211_SURVEY_INFO_IN_USE, "", 0);
		n += put(info + n, NL80211_SURVEY_INFO_TIME, &active, 8);
		n = put(msg + GENL_HDRLEN, NL80211_ATTR_SURVEY_INFO, info, (uint16_t)n);
		cb(ctx, &h, msg, GENL_HDRLEN + n);
		return 0;
	}
	dumps++;
	if (dump_error)
		return dump_error;
	for (unsigned i = 0; i < MOST; i++)
		if (stations[i].there && !stations[i].skipped_by_dump)
			answer_station(i, cb, ctx);
	return 0;
}

int netlink_get(struct netlink *nl, struct netlink_request *const *requests, unsigned n, netlink_cb cb, void *ctx,
		struct netlink_result *result)
{
	const struct nlmsghdr h = { 0 };

	*result = (struct netlink_result){ 0 };
	for (unsigned k = 0; k < n; k++) {
		/* The last attribute: six bytes and two of padding. */
		const uint8_t *mac = requests[k]->bytes + requests[k]->len - 8;
		uint64_t wanted = 0;
		bool found = false;
		uint8_t msg[GENL_HDRLEN + 16] = { 0 };

		if (requests[k]->bytes[NLMSG_HDRLEN] == NL80211_CMD_GET_INTERFACE) {
			cb(ctx, &h, msg, GENL_HDRLEN);
			continue;
		}
		gets++;
		for (int i = 0; i < 6; i++)
			wanted = wanted << 8 | mac[i];
		for (unsigned i = 0; i < MOST; i++) {
			if (stations[i].there && stations[i].mac == wanted) {
				answer_station(i, cb, ctx);
				found = true;
			}
		}
		if (!found) {
			result->failed++;
			result->error = -ENOENT;
		}
	}
	return 0;
}

bool interface_update(struct interface *i)
{
	unsigned before = i->index;

	i->index = ifindex;
	return i->index != before;
}

/* --- what goes to the tick thread */
static unsigned rows[OAL_N_TABLES], gone[OAL_N_TABLES];
static struct oal_counter_refresh_row period;
static struct oal_station_row last[MOST];
static bool has_flow;
static uint64_t asked[64];
static unsigned n_asked;
static struct collector_counts counts;

void samples_row(struct samples *s, enum oal_table_id t, const void *row)
{
	rows[t]++;
	if (t == OAL_COUNTER_REFRESH)
		period = *(const struct oal_counter_refresh_row *)row;
	if (t == OAL_STATION)
		last[((const struct oal_station_row *)row)->mac & 7] = *(const struct oal_station_row *)row;
}

void samples_gone(struct samples *s, enum oal_table_id t, const void *row)
{
	gone[t]++;
}

void samples_count(struct samples *s, const struct collector_counts *c)
{
	counts.netlink_errors += c->netlink_errors;
	counts.dumps_interrupted += c->dumps_interrupted;
	counts.interface_losses += c->interface_losses;
	counts.counters_mended += c->counters_mended;
}

void samples_query(struct samples *s, uint64_t mac, uint64_t hold_us)
{
	if (has_flow && n_asked < 64)
		asked[n_asked++] = mac;
}

bool samples_wanted(struct samples *s, uint64_t *mac)
{
	if (!n_asked)
		return false;
	*mac = asked[--n_asked];
	return true;
}

uint16_t pipeline_name(struct pipeline *p, const char *name)
{
	return 0;
}

/* --- */
static void *self;

static void ticks(unsigned n)
{
	memset(rows, 0, sizeof rows);
	memset(gone, 0, sizeof gone);
	dumps = gets = surveys = 0;
	while (n--) {
		now.number++;
		now.due_us += 4000;
		collect_nl80211.tick(self, &now);
	}
}

static void set(unsigned i, bool there)
{
	stations[i].mac = 0x020000000100u + i;
	stations[i].there = there;
}

int main(void)
{
	static struct config c;
	struct collector_env env = { .config = &c };
	char err[256];

	c.exporter.max_stations = 4;
	c.n_nl80211 = 1;
	c.nl80211[0] = (struct config_nl80211){ true, "wlan0", 25, 50, 1, 1000000 };
	now.due_us = 1700000000000000;
	for (unsigned i = 0; i < 4; i++)
		set(i, true);
	if (collect_nl80211.start(&self, &env, err, sizeof err) < 0) {
		printf("# %s\n", err);
		return 1;
	}
	collect_nl80211.second(self); /* finds the interface, which the real one did not */

	test("stations that have come are sampled at every tick, by a dump as long as nearly all are active");
	ticks(10);
	CHECK_EQ(rows[OAL_STATION], 40);
	CHECK_EQ(dumps, 10);
	CHECK_EQ(gets, 0);
	CHECK_EQ(last[0].interval_ticks, 1);
	CHECK_EQ(surveys, 1);
	CHECK_EQ(rows[OAL_CHANNEL], 1);

	test("a category without news gives no row");
	CHECK_EQ(rows[OAL_STATION_AC], 0);

	test("stations without traffic are looked at at the idle interval");
	ticks(100);
	ticks(100);
	CHECK_EQ(rows[OAL_STATION], 16);
	CHECK_EQ(dumps, 4);
	CHECK_EQ(last[0].interval_ticks, 25);

	test("a station with traffic is asked for alone, at every tick, the others are not");
	stations[1].tx_pkts += 100;
	ticks(25);
	stations[1].tx_pkts += 100;
	ticks(25);
	CHECK_EQ(dumps, 1);
	CHECK(gets >= 23);
	CHECK_EQ(last[1].interval_ticks, 1);
	CHECK_EQ(last[0].interval_ticks, 25);
	CHECK_EQ(rows[OAL_STATION], 4 + gets);
	CHECK(rows[OAL_STATION_AC] >= 1);

	test("keep-alives do not make a station active, a flow and a backlog do");
	ticks(150);
	stations[2].tx_pkts += 2;
	ticks(25);
	CHECK_EQ(last[2].interval_ticks, 25);
	has_flow = true;
	ticks(25);
	CHECK_EQ(last[2].interval_ticks, 1);
	has_flow = false;
	ticks(150);
	CHECK_EQ(last[3].interval_ticks, 25);
	stations[3].backlog = 3;
	ticks(25);
	CHECK_EQ(last[3].interval_ticks, 1);

	test("a station that an interrupted dump skips is asked for and stays");
	interrupted = stations[0].skipped_by_dump = true;
	ticks(25);
	CHECK_EQ(gone[OAL_STATION], 0);
	CHECK(gets > 0);
	CHECK(counts.dumps_interrupted > 0);
	CHECK_EQ(last[0].interval_ticks, 25);
	interrupted = stations[0].skipped_by_dump = false;

	test("a station that has left is gone, its categories too, and only once");
	set(3, false);
	ticks(26);
	CHECK_EQ(gone[OAL_STATION], 1);
	CHECK_EQ(gone[OAL_STATION_AC], 1);
	ticks(50);
	CHECK_EQ(gone[OAL_STATION], 0);

	test("an active station that leaves is found out at the next tick");
	stations[1].tx_pkts += 100;
	ticks(25);
	CHECK_EQ(last[1].interval_ticks, 1);
	set(1, false);
	ticks(2);
	CHECK_EQ(gone[OAL_STATION], 1);

	test("more stations than there is room for are refused, the others are not");
	for (unsigned i = 0; i < 7; i++)
		set(i, true);
	ticks(26);
	CHECK(rows[OAL_STATION] >= 4);
	CHECK_EQ(gone[OAL_STATION], 0);

	test("another channel ends the row of the one before");
	frequency = 2437;
	ticks(25);
	CHECK_EQ(gone[OAL_CHANNEL], 1);
	CHECK_EQ(rows[OAL_CHANNEL], 1);

	test("a survey that the driver renews once a second is found out, told, and asked for no faster");
	renewed = 250;
	ticks(20 * 250);
	CHECK(surveys > 150);
	ticks(0);
	collect_nl80211.second(self);
	CHECK_EQ(rows[OAL_COUNTER_REFRESH], 1);
	CHECK_EQ(period.of_table, oal_tables[OAL_CHANNEL].id);
	CHECK_EQ(period.of_field, oal_tables[OAL_CHANNEL].columns[OAL_CHANNEL_ACTIVE_MS].field);
	CHECK_EQ(period.period_us, 1000000);
	ticks(20 * 250);
	CHECK(surveys >= 20 && surveys < 2 * 20);
	renewed = 0;
	ticks(250);

	test("a driver without survey is not asked again, and that is no error");
	survey_error = -EOPNOTSUPP;
	counts.netlink_errors = 0;
	ticks(1000);
	CHECK_EQ(surveys, 1);
	CHECK_EQ(counts.netlink_errors, 0);

	test("an interface that goes away takes everything with it, and is left alone until it is back");
	dump_error = -ENODEV;
	ifindex = 0;
	ticks(26);
	CHECK_EQ(counts.interface_losses, 1);
	CHECK_EQ(gone[OAL_STATION], 4);
	CHECK_EQ(gone[OAL_CHANNEL], 1);
	collect_nl80211.second(self);
	ticks(50);
	CHECK_EQ(dumps, 0);
	test("when it is back under another index it is sampled again, its survey too");
	dump_error = survey_error = 0;
	ifindex = 9;
	collect_nl80211.second(self);
	ticks(1);
	CHECK_EQ(dumps, 1);
	CHECK_EQ(rows[OAL_STATION], 4);
	CHECK_EQ(rows[OAL_CHANNEL], 1);
	CHECK_EQ(counts.interface_losses, 1);

	test("a request that fails otherwise is counted, and tried again");
	dump_error = -ENOBUFS;
	counts.netlink_errors = 0;
	ticks(3);
	CHECK_EQ(counts.netlink_errors, 3);
	dump_error = 0;
	ticks(1);
	CHECK(rows[OAL_STATION] >= 4);
	collect_nl80211.stop(self);
	return done();
}
