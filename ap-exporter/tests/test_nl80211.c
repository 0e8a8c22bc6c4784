/* The netlink parsers on what a real kernel sent (ten stations under load), and on what no kernel should send. */
#include "check.h"
#include "netlink/netlink.h"
#include "netlink/same_bytes.h"
#include "netlink/station_absent.h"
#include "collect/nl80211_parse.h"
#include "collect/nl80211_station.h"
#include "nl_sample.h"
#include "collect/rtnetlink_parse.h"

#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/nl80211.h>

#define MOST 16

struct seen {
	unsigned kind, stations, in_use, interfaces, bss, own, qdiscs, fq_codel, addresses;
	struct nl80211_station station[MOST], again;
	uint64_t mac[MOST];
	unsigned n;
	struct oal_channel_row channel, first_channel;
	struct oal_beacon_row beacon;
	struct nl80211_interface interface;
	struct oal_queue_row queue;
	unsigned parsed_twice_differs, changed;
};

static void on_message(void *ctx, const struct nlmsghdr *h, const uint8_t *payload, uint32_t len)
{
	struct seen *s = ctx;
	struct oal_queue_row queue;
	struct oal_channel_row channel;
	struct oal_beacon_row beacon;
	struct address_entry entry;
	char kind[QDISC_KIND];
	struct nl_attr info;
	int ifindex;
	uint64_t mac;
	bool own;
	unsigned i;

	(void)h;
	switch (s->kind) {
	case NL_STATION:
		if (!nl80211_find_station(payload + GENL_HDRLEN, len - GENL_HDRLEN, &mac, &info))
			return;
		s->stations++;
		for (i = 0; i < s->n && s->mac[i] != mac; i++)
			;
		if (i == MOST)
			return;
		if (i == s->n)
			s->mac[s->n++] = mac;
		nl80211_parse_station(&s->station[i], &info);
		s->changed += (unsigned)__builtin_popcount(s->station[i].acs.changed);
		/* Parsing from nothing must give what parsing of differences gives. */
		memset(&s->again, 0, sizeof s->again);
		nl80211_parse_station(&s->again, &info);
		if (memcmp(&s->again.row, &s->station[i].row, sizeof s->again.row) ||
		    memcmp(s->again.acs.row, s->station[i].acs.row, sizeof s->again.acs.row) ||
		    memcmp(s->again.acs.tids, s->station[i].acs.tids, sizeof s->again.acs.tids))
			s->parsed_twice_differs++;
		break;
	case NL_SURVEY:
		if (nl80211_parse_survey(payload + GENL_HDRLEN, len - GENL_HDRLEN, &channel)) {
			if (!s->in_use++)
				s->first_channel = channel;
			s->channel = channel;
		}
		break;
	case NL_INTERFACE:
		nl80211_parse_interface(payload + GENL_HDRLEN, len - GENL_HDRLEN, &s->interface);
		s->interfaces++;
		break;
	case NL_SCAN:
		if (nl80211_parse_bss(payload + GENL_HDRLEN, len - GENL_HDRLEN, &beacon, &own)) {
			s->bss++;
			s->own += own;
			s->beacon = beacon;
		}
		break;
	case NL_QDISC:
		if (qdisc_parse(payload, len, &queue, &ifindex, kind)) {
			s->qdiscs++;
			if (!strcmp(kind, "fq_codel") && queue.pkts > s->queue.pkts) {
				s->fq_codel++;
				s->queue = queue;
			}
		}
		break;
	case NL_NEIGH: s->addresses += address_entry_parse(payload, len, &entry); break;
	default: break;
	}
}

static bool walk(struct seen *s, const uint8_t *bytes, size_t len, bool dump, struct netlink_result *result)
{
	struct netlink_walk w = {
		.seq_last = UINT32_MAX, .pending = 1, .dump = dump, .cb = on_message, .ctx = s, .result = result,
	};

	*result = (struct netlink_result){ 0 };
	return netlink_walk(&w, bytes, len);
}

static void on_recording(void)
{
	static struct seen s;
	struct netlink_result result;
	struct nl_record r;
	size_t size, at = 0;
	uint8_t *data = check_file("tests/data/nl/sample.nl", &size);
	unsigned walks = 0, ended = 0, moved = 0;

	while (nl_sample_next(data, size, &at, &r)) {
		s.kind = r.kind;
		walks++;
		ended += walk(&s, r.bytes, r.len, r.kind != NL_INTERFACE, &result);
	}
	test("every reply of the recording is walked to its end");
	CHECK(walks > 70);
	CHECK_EQ(ended, walks);
	test("ten stations are found in every dump, each with its row");
	CHECK_EQ(s.n, 10);
	CHECK_EQ(s.stations % 10, 0);
	for (unsigned i = 0; i < s.n; i++) {
		const struct oal_station_row *row = &s.station[i].row;

		CHECK(row->signal_dbm < -20 && row->signal_dbm > -95);
		CHECK(row->tx_bytes > 0 && row->tx_pkts > 0 && row->rx_pkts > 0);
		CHECK(row->tx_bitrate_kbps >= 1000);
		CHECK(row->tx_width_mhz == 20 && row->tx_nss >= 1);
		CHECK(row->tx_airtime_us > 0);
		moved += s.station[i].acs.row[2].tx_pkts > 0;
	}
	test("queue figures of access categories are found, and change under load");
	CHECK_EQ(moved, 10);
	CHECK(s.changed > s.stations / 4);
	test("parsing what changed gives what parsing everything gives");
	CHECK_EQ(s.parsed_twice_differs, 0);
	test("the survey names one channel in use, whose busy time grows but not faster than its time");
	CHECK(s.in_use >= 20);
	CHECK(s.channel.frequency_mhz > 2400);
	CHECK(s.channel.active_ms > s.first_channel.active_ms);
	CHECK(s.channel.busy_ms - s.first_channel.busy_ms <= s.channel.active_ms - s.first_channel.active_ms + 1);
	CHECK(!(s.channel.absent & OAL_CHANNEL_ABSENT_NOISE_DBM) && s.channel.noise_dbm < -80);
	test("the interface has a width and a transmit queue");
	CHECK_EQ(s.interface.width_mhz, 20);
	CHECK(s.interface.has_txq);
	test("twenty BSSs around are found");
	CHECK(s.bss >= 20);
	CHECK(s.beacon.bssid != 0 && s.beacon.frequency_mhz > 2400 && s.beacon.signal_dbm < 0);
	test("fq_codel is found with its counters and ECN marks");
	CHECK(s.qdiscs >= 25);
	CHECK(s.queue.bytes > 0 && s.queue.pkts > 0);
	CHECK_EQ(s.queue.absent, 0);
	test("the bridge's table, which has no addresses, gives no address");
	CHECK_EQ(s.addresses, 0);
	free(data);
}

/* Every prefix of every kind of reply, each in a heap block of its own, so that ASan sees one byte too far. */
static void on_truncation(void)
{
	static struct seen s;
	struct netlink_result result;
	struct nl_record r;
	size_t size, at = 0;
	uint8_t *data = check_file("tests/data/nl/sample.nl", &size);
	unsigned kinds = 0, ends = 0;

	test("a reply cut off anywhere, and one with any length field spoilt, is read within its bounds");
	while (nl_sample_next(data, size, &at, &r)) {
		if (kinds >> r.kind & 1)
			continue;
		kinds |= 1u << r.kind;
		s.kind = r.kind;
		for (uint32_t len = 0; len < r.len; len += len < 6000 ? 1 : 61) {
			uint8_t *copy = malloc(len + 1);

			memcpy(copy, r.bytes, len);
			ends += walk(&s, copy, len, true, &result);
			free(copy);
		}
		for (uint32_t i = 0; i + 1 < r.len; i += i < 6000 ? 1 : 61) {
			uint8_t *copy = malloc(r.len);

			memcpy(copy, r.bytes, r.len);
			copy[i] ^= 0xff;
			copy[i + 1] ^= 0x5a;
			walk(&s, copy, r.len, true, &result);
			free(copy);
		}
	}
	CHECK(kinds >> NL_STATION & kinds >> NL_QDISC & kinds >> NL_SCAN & 1);
	CHECK_EQ(ends, 0); /* a reply without its end never counts as complete */
	free(data);
}

static uint8_t message[512];
static uint32_t message_len;

static void begin(uint16_t type, uint16_t flags, uint32_t seq)
{
	struct nlmsghdr h = { .nlmsg_type = type, .nlmsg_flags = flags, .nlmsg_seq = seq, .nlmsg_len = NLMSG_HDRLEN };

	memcpy(message + message_len, &h, sizeof h);
}

static void end(const void *payload, uint32_t len)
{
	uint32_t total = NLMSG_HDRLEN + len;

	memcpy(message + message_len, &total, sizeof total);
	memcpy(message + message_len + NLMSG_HDRLEN, payload, len);
	message_len += NLMSG_ALIGN(total);
}

static void count_message(void *ctx, const struct nlmsghdr *h, const uint8_t *payload, uint32_t len)
{
	(void)h, (void)payload, (void)len;
	++*(unsigned *)ctx;
}

static void on_walk(void)
{
	struct netlink_result r = { 0 };
	unsigned calls = 0;
	struct netlink_walk w = {
		.seq_first = 7, .seq_last = 9, .pending = 3, .cb = count_message, .ctx = &calls, .result = &r,
	};
	int32_t gone = -2, ok = 0;

	test("answers to several requests end the exchange when all are there, errors among them");
	begin(100, 0, 7), end("abcd", 4);
	begin(NLMSG_ERROR, 0, 8), end(&gone, 4);
	begin(100, 0, 3), end("old!", 4); /* of an exchange before */
	CHECK(!netlink_walk(&w, message, message_len));
	CHECK_EQ(calls, 1);
	CHECK_EQ(r.failed, 1);
	CHECK_EQ(r.error, -2);
	message_len = 0;
	begin(100, 0, 9), end("abc", 3);
	CHECK(netlink_walk(&w, message, message_len));
	CHECK_EQ(r.replies, 2);

	test("an interrupted dump is used and said to be interrupted");
	message_len = 0;
	r = (struct netlink_result){ 0 };
	w = (struct netlink_walk){
		.seq_first = 1, .seq_last = 1, .pending = 1, .dump = true, .cb = count_message, .ctx = &calls,
		.result = &r,
	};
	begin(100, NLM_F_MULTI | NLM_F_DUMP_INTR, 1), end("abcd", 4);
	begin(NLMSG_DONE, NLM_F_MULTI, 1), end(&ok, 4);
	CHECK(netlink_walk(&w, message, message_len));
	CHECK(r.interrupted);
	CHECK_EQ(r.replies, 1);
	CHECK_EQ(r.error, 0);

	test("a dump that ends with an error says which");
	message_len = 0;
	r = (struct netlink_result){ 0 };
	w.pending = 1;
	gone = -19;
	begin(NLMSG_DONE, NLM_F_MULTI, 1), end(&gone, 4);
	CHECK(netlink_walk(&w, message, message_len));
	CHECK_EQ(r.error, -19);
}

/* Attributes of one TID, and a station that has it; in this machine's byte order. */
static uint32_t put(uint8_t *p, uint16_t type, const void *data, uint16_t len)
{
	uint16_t head[2] = { (uint16_t)(len + 4), type };

	memset(p, 0, (len + 7u) & ~3u);
	memcpy(p, head, 4);
	memcpy(p + 4, data, len);
	return (len + 7u) & ~3u;
}

static struct nl_attr station_info(uint8_t *buf, unsigned first_tid, unsigned n_tids, uint64_t msdu, uint32_t backlog)
{
	uint8_t tids[1024], tid[128], txq[64];
	uint32_t n = 0, len = 0;
	uint32_t pkts = 5;

	for (unsigned t = first_tid; t < first_tid + n_tids; t++) {
		uint32_t m = 0, q = put(txq, NL80211_TXQ_STATS_BACKLOG_BYTES, &backlog, 4);

		m = put(tid, NL80211_TID_STATS_TX_MSDU, &msdu, 8);
		m += put(tid + m, NL80211_TID_STATS_TXQ_STATS, txq, (uint16_t)q);
		n += put(tids + n, (uint16_t)(t + 1), tid, (uint16_t)m);
	}
	len = put(buf, NL80211_STA_INFO_TX_PACKETS, &pkts, 4);
	len += put(buf + len, NL80211_STA_INFO_TID_STATS, tids, (uint16_t)n);
	return (struct nl_attr){ .data = buf, .len = (uint16_t)len };
}

static void on_station(void)
{
	static struct nl80211_station s;
	static uint8_t buf[2048];
	struct nl_attr info;

	test("TIDs add up in their access category, and only what changed is said to have changed");
	info = station_info(buf, 0, 4, 10, 100); /* TIDs 0 and 3 best effort, 1 and 2 background */
	nl80211_parse_station(&s, &info);
	CHECK_EQ(s.acs.row[2].msdu_pkts, 20);
	CHECK_EQ(s.acs.row[3].backlog_bytes, 200);
	CHECK_EQ(s.acs.changed, 1 << 2 | 1 << 3);
	CHECK_EQ(s.row.tx_pkts, 5);
	nl80211_parse_station(&s, &info);
	CHECK_EQ(s.acs.changed, 0);
	test("a queue that empties is seen");
	info = station_info(buf, 0, 4, 10, 0);
	nl80211_parse_station(&s, &info);
	CHECK_EQ(s.acs.row[2].backlog_bytes, 0);
	CHECK_EQ(s.acs.row[2].msdu_pkts, 20);
	test("a TID that is not reported any more leaves no share behind");
	info = station_info(buf, 1, 2, 11, 0);
	nl80211_parse_station(&s, &info);
	CHECK_EQ(s.acs.row[2].msdu_pkts, 0);
	CHECK_EQ(s.acs.row[3].msdu_pkts, 22);
	test("and its category is absent then, not 0");
	CHECK_EQ(s.acs.row[2].absent, STATION_AC_OPTIONAL);
	CHECK(!(s.acs.row[3].absent & OAL_STATION_AC_ABSENT_MSDU_PKTS));
	CHECK(s.acs.changed & 1 << 2);
}

static void on_absent(void)
{
	static struct nl80211_station s;
	static uint8_t buf[2048];
	const uint32_t all = OAL_STATION_ABSENT_ACK_SIGNAL_DBM | OAL_STATION_ABSENT_EXPECTED_THROUGHPUT_KBPS |
			     OAL_STATION_ABSENT_AIRTIME_WEIGHT | OAL_STATION_ABSENT_TX_RETRIES |
			     OAL_STATION_ABSENT_TX_FAILED | OAL_STATION_ABSENT_RX_DROP_MISC |
			     OAL_STATION_ABSENT_BEACON_LOSS | OAL_STATION_ABSENT_SIGNAL_DBM |
			     OAL_STATION_ABSENT_SIGNAL_AVG_DBM | OAL_STATION_ABSENT_TX_AIRTIME_US |
			     OAL_STATION_ABSENT_RX_AIRTIME_US;
	const uint32_t failed = 0;
	struct nl_attr info = station_info(buf, 0, 4, 10, 100);

	test("what the driver does not report is absent, not 0");
	nl80211_parse_station(&s, &info);
	CHECK_EQ(s.row.absent, all);
	test("a counter that is reported and is 0 is not absent");
	info.len = (uint16_t)(info.len + put(buf + info.len, NL80211_STA_INFO_TX_FAILED, &failed, 4));
	nl80211_parse_station(&s, &info);
	CHECK_EQ(s.row.absent, all & ~OAL_STATION_ABSENT_TX_FAILED);
	test("a category lacks what none of its TIDs reports; one that reports nothing is not in use");
	CHECK(!(s.acs.row[2].absent & (OAL_STATION_AC_ABSENT_MSDU_PKTS | OAL_STATION_AC_ABSENT_BACKLOG_BYTES)));
	CHECK(s.acs.row[2].absent & OAL_STATION_AC_ABSENT_MSDU_FAILED);
	CHECK(s.acs.row[2].absent & OAL_STATION_AC_ABSENT_DROPS);
	CHECK_EQ(s.acs.used, 1 << 2 | 1 << 3);
}

static void on_same_bytes(void)
{
	_Alignas(8) uint8_t a[80], b[80];

	test("bytes are compared as memcmp() does, at any place and length");
	for (unsigned i = 0; i < sizeof a; i++)
		a[i] = b[i] = (uint8_t)(i * 37);
	for (unsigned at = 0; at < 5; at++)
		for (unsigned n = 0; n + at <= 70; n++) {
			CHECK(same_bytes(a + at, b + at, n));
			for (unsigned i = 0; i < n; i++) {
				b[at + i] ^= 0x80;
				CHECK(!same_bytes(a + at, b + at, n));
				b[at + i] ^= 0x80;
			}
			b[at + n] ^= 1; /* behind the end */
			CHECK(same_bytes(a + at, b + at, n));
			b[at + n] ^= 1;
		}
}

static void on_rates(void)
{
	static struct nl80211_station s;
	uint8_t rate[64], buf[128];
	uint32_t n, kbit100 = 8667, len;
	uint16_t kbit100_16 = 1300;
	uint8_t mcs = 9, nss = 2, he_gi = 1;
	struct nl_attr info = { .data = buf };

	test("a VHT rate has its index, streams, width and guard interval");
	n = put(rate, NL80211_RATE_INFO_BITRATE32, &kbit100, 4);
	n += put(rate + n, NL80211_RATE_INFO_VHT_MCS, &mcs, 1);
	n += put(rate + n, NL80211_RATE_INFO_VHT_NSS, &nss, 1);
	n += put(rate + n, NL80211_RATE_INFO_80_MHZ_WIDTH, "", 0);
	n += put(rate + n, NL80211_RATE_INFO_SHORT_GI, "", 0);
	len = put(buf, NL80211_STA_INFO_TX_BITRATE, rate, (uint16_t)n);
	mcs = 15;
	n = put(rate, NL80211_RATE_INFO_BITRATE, &kbit100_16, 2);
	n += put(rate + n, NL80211_RATE_INFO_MCS, &mcs, 1);
	n += put(rate + n, NL80211_RATE_INFO_HE_GI, &he_gi, 1);
	len += put(buf + len, NL80211_STA_INFO_RX_BITRATE, rate, (uint16_t)n);
	info.len = (uint16_t)len;
	nl80211_parse_station(&s, &info);
	CHECK_EQ(s.row.tx_bitrate_kbps, 866700);
	CHECK_EQ(s.row.tx_mcs, 9);
	CHECK_EQ(s.row.tx_nss, 2);
	CHECK_EQ(s.row.tx_width_mhz, 80);
	CHECK_EQ(s.row.tx_gi_ns, 400);
	test("an HT index holds the streams, and a rate without a width is 20 MHz wide");
	CHECK_EQ(s.row.rx_bitrate_kbps, 130000);
	CHECK_EQ(s.row.rx_mcs, 15);
	CHECK_EQ(s.row.rx_nss, 2);
	CHECK_EQ(s.row.rx_width_mhz, 20);
	CHECK_EQ(s.row.rx_gi_ns, 1600);
}

static void on_load(void)
{
	const uint8_t bssid[6] = { 2, 0, 0, 0, 9, 1 }, ies[] = { 0, 2, 'a', 'b', 11, 5, 0x2c, 0x01, 77, 0, 0 },
		      cut[] = { 11, 5, 1, 0 };
	struct oal_beacon_row row;
	uint8_t bss[64], buf[96];
	uint32_t n, len;
	bool own;

	test("the BSS Load element is found among others, little-endian");
	n = put(bss, NL80211_BSS_BSSID, bssid, 6);
	n += put(bss + n, NL80211_BSS_BEACON_IES, ies, sizeof ies);
	len = put(buf, NL80211_ATTR_BSS, bss, (uint16_t)n);
	CHECK(nl80211_parse_bss(buf, len, &row, &own));
	CHECK_EQ(row.bssid, INT64_C(0x020000000901));
	CHECK_EQ(row.load_stations, 300);
	CHECK_EQ(row.load_utilization, 77);
	CHECK_EQ(row.absent, 0);
	CHECK(!own);
	test("one that is cut off is absent, and a result without a BSSID is none");
	n = put(bss, NL80211_BSS_BSSID, bssid, 6);
	n += put(bss + n, NL80211_BSS_BEACON_IES, cut, sizeof cut);
	len = put(buf, NL80211_ATTR_BSS, bss, (uint16_t)n);
	CHECK(nl80211_parse_bss(buf, len, &row, &own));
	CHECK(row.absent != 0);
	n = put(bss, NL80211_BSS_BSSID, bssid, 4);
	len = put(buf, NL80211_ATTR_BSS, bss, (uint16_t)n);
	CHECK(!nl80211_parse_bss(buf, len, &row, &own));
}

int main(void)
{
	const uint16_t probe = 1;

	on_walk();
	on_station();
	on_absent();
	on_same_bytes();
	on_rates();
	on_load();
	if (*(const uint8_t *)&probe) { /* the recording is of a little-endian kernel */
		on_recording();
		on_truncation();
	}
	return done();
}
