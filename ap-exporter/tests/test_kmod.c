/*
 * The kernel module's ring and records, without the module: a ring in memory that this test fills as the module does.
 * Golden: a record and nl80211's answer about the same station make the same rows.
 */
#include "check.h"
#include "collect/nl80211_station.h"
#include "kmod/kmod_ring.h"
#include "kmod/kmod_station.h"

#include <errno.h>
#include <linux/nl80211.h>

enum { RING = 1 << 14, MEMORY = OAL_SAMPLER_RING_AT + RING };

static uint8_t memory[MEMORY] __attribute__((aligned(8)));
static struct oal_sampler_header *const header = (void *)memory;
static struct oal_sampler_reader *const reader = (void *)(memory + OAL_SAMPLER_READER_AT);
static struct kmod_ring ring;

static void lay(void)
{
	memset(memory, 0, sizeof memory);
	*header = (struct oal_sampler_header){
		.magic = OAL_SAMPLER_MAGIC,
		.version = OAL_SAMPLER_VERSION,
		.ring_bytes = RING,
		.state = OAL_SAMPLER_RUNNING,
	};
	CHECK(kmod_ring_lay(&ring, memory, sizeof memory) == 0);
}

/* As the module's ring_put(). False: no room. */
static bool put(void *record, uint16_t kind, uint16_t bytes, uint32_t tick)
{
	struct oal_sampler_record *r = record;
	const uint32_t at = header->head % RING, rest = RING - at, skipped = rest < bytes ? rest : 0;

	*r = (struct oal_sampler_record){ kind, bytes, tick };
	if (RING - (header->head - reader->tail) < skipped + bytes)
		return false;
	if (skipped) {
		const struct oal_sampler_record wrap = { OAL_SAMPLER_WRAP, sizeof wrap, tick };

		memcpy(memory + OAL_SAMPLER_RING_AT + at, &wrap, sizeof wrap);
		header->head += skipped;
	}
	memcpy(memory + OAL_SAMPLER_RING_AT + header->head % RING, record, bytes);
	header->head += bytes;
	return true;
}

static void another_ring_is_refused(void)
{
	lay();
	header->version++;
	CHECK(kmod_ring_lay(&ring, memory, sizeof memory) == -EPROTO);
	lay();
	header->magic = 0;
	CHECK(kmod_ring_lay(&ring, memory, sizeof memory) == -EPROTO);
	lay();
	header->ring_bytes = RING * 2;
	CHECK(kmod_ring_lay(&ring, memory, sizeof memory) == -EPROTO);
	header->ring_bytes = RING - 8;
	CHECK(kmod_ring_lay(&ring, memory, sizeof memory) == -EPROTO);
}

static void records_come_in_order_past_the_end(void)
{
	struct oal_sampler_left left = { 0 };
	struct oal_sampler_depth depth = { 0 };
	uint32_t written = 0, taken = 0;
	int broken;

	lay();
	while (taken < 2000) {
		const struct oal_sampler_record *r;

		/* Lengths of 24 and 48 bytes, so that they do not fit the ring's. */
		while (written < taken + 300) {
			const bool small = written % 3;

			if (!(small ? put(&left, OAL_SAMPLER_LEFT, sizeof left, written)
				    : put(&depth, OAL_SAMPLER_DEPTH, sizeof depth, written)))
				break;
			written++;
		}
		CHECK(written > taken);
		CHECK(kmod_ring_next(&ring, taken - 1, &broken) == NULL && !broken); /* of a later tick */
		while ((r = kmod_ring_next(&ring, taken + 10, &broken))) {
			if (r->tick != taken || r->kind != (taken % 3 ? OAL_SAMPLER_LEFT : OAL_SAMPLER_DEPTH))
				break;
			taken++;
			kmod_ring_release(&ring, r);
		}
		CHECK(!r && !broken);
	}
	CHECK(header->head > 3 * RING && reader->tail <= header->head);
}

static void a_full_ring_takes_no_more(void)
{
	struct oal_sampler_left left = { 0 };
	uint32_t written = 0, taken = 0;
	const struct oal_sampler_record *r;
	int broken;

	lay();
	while (put(&left, OAL_SAMPLER_LEFT, sizeof left, written))
		written++;
	while ((r = kmod_ring_next(&ring, written, &broken))) {
		CHECK(r->tick == taken++);
		kmod_ring_release(&ring, r);
	}
	CHECK(taken == written && !broken && written >= RING / sizeof left - 1);
}

static void check_broken(const struct oal_sampler_record *first, uint32_t head)
{
	int broken = 0;

	lay();
	memcpy(memory + OAL_SAMPLER_RING_AT, first, sizeof *first);
	header->head = head;
	CHECK(kmod_ring_next(&ring, 0, &broken) == NULL && broken == -EPROTO);
}

static void what_is_no_record_is_not_read(void)
{
	const struct oal_sampler_record good = { OAL_SAMPLER_LEFT, sizeof(struct oal_sampler_left), 0 };
	const struct oal_sampler_record kind = { 99, 24, 0 }, none = { OAL_SAMPLER_LEFT, 0, 0 };
	const struct oal_sampler_record length = { OAL_SAMPLER_DEPTH, 24, 0 }, wrap = { OAL_SAMPLER_WRAP, 8, 0 };
	const struct oal_sampler_record station = { OAL_SAMPLER_STATION, sizeof(struct oal_sampler_station) + 64, 0 };

	check_broken(&kind, 24);
	check_broken(&none, 24);
	check_broken(&length, 24);
	check_broken(&good, 8); /* longer than what is there */
	check_broken(&good, 25); /* no whole record */
	check_broken(&good, RING + 24); /* more than the ring holds */
	check_broken(&wrap, 24); /* an end that is not there */
	check_broken(&station, 192); /* with a category that `acs` does not have */
}

/* --- golden */

static uint32_t put_attr(uint8_t *p, uint16_t type, const void *data, uint16_t len)
{
	const uint16_t head[2] = { (uint16_t)(len + 4), type };

	memset(p, 0, (len + 7u) & ~3u);
	memcpy(p, head, 4);
	memcpy(p + 4, data, len);
	return (len + 7u) & ~3u;
}

#define U(width, type, value) n += put_attr(info + n, NL80211_##type, &(uint##width##_t){ value }, width / 8)

static uint32_t rate_nest(uint8_t *info, const struct oal_sampler_rate *r, bool vht)
{
	uint32_t n = 0;

	U(32, RATE_INFO_BITRATE32, r->kbps100);
	U(16, RATE_INFO_BITRATE, (uint16_t)(r->kbps100 < 65536 ? r->kbps100 : 0));
	if (r->width_mhz == 80)
		n += put_attr(info + n, NL80211_RATE_INFO_80_MHZ_WIDTH, "", 0);
	if (vht) {
		U(8, RATE_INFO_VHT_MCS, r->mcs);
		U(8, RATE_INFO_VHT_NSS, r->nss);
	} else {
		U(8, RATE_INFO_MCS, r->mcs);
	}
	if (r->gi_ns == 400)
		n += put_attr(info + n, NL80211_RATE_INFO_SHORT_GI, "", 0);
	return n;
}

static uint32_t tid_nest(uint8_t *info, const struct oal_sampler_ac *a)
{
	uint8_t txq[128];
	uint32_t n = 0, len = 0;

#define Q(type, value) len += put_attr(txq + len, NL80211_TXQ_STATS_##type, &(uint32_t){ value }, 4)
	Q(BACKLOG_BYTES, a->backlog_bytes);
	Q(BACKLOG_PACKETS, a->backlog_pkts);
	Q(FLOWS, a->flows);
	Q(DROPS, a->drops);
	Q(ECN_MARKS, a->ecn_marks);
	Q(OVERLIMIT, a->overlimit);
	Q(COLLISIONS, a->collisions);
	Q(TX_BYTES, a->tx_bytes);
	Q(TX_PACKETS, a->tx_pkts);
	U(64, TID_STATS_TX_MSDU, a->msdu_pkts);
	if (a->has & OAL_SAMPLER_AC_MSDU_RETRIES)
		U(64, TID_STATS_TX_MSDU_RETRIES, a->msdu_retries);
	if (a->has & OAL_SAMPLER_AC_MSDU_FAILED)
		U(64, TID_STATS_TX_MSDU_FAILED, a->msdu_failed);
	if (a->has & OAL_SAMPLER_AC_TXQ)
		n += put_attr(info + n, NL80211_TID_STATS_TXQ_STATS, txq, (uint16_t)len);
	return n;
}

/* nl80211's answer about the station of the record; best effort is TID 0, voice TID 6. */
static uint32_t answer(uint8_t *info, const struct oal_sampler_station *s)
{
	uint8_t nest[512], tids[1024];
	const struct oal_sampler_ac *ac = s->ac;
	uint32_t n = 0, len = 0;

#define HAS(x) (s->has >> NL80211_STA_INFO_##x & 1)
#define MAYBE(width, x, value) \
	if (HAS(x)) \
	U(width, STA_INFO_##x, value)
	MAYBE(32, INACTIVE_TIME, s->inactive_ms);
	if (HAS(RX_BYTES64) || HAS(RX_BYTES))
		U(32, STA_INFO_RX_BYTES, (uint32_t)s->rx_bytes);
	if (HAS(TX_BYTES64) || HAS(TX_BYTES))
		U(32, STA_INFO_TX_BYTES, (uint32_t)s->tx_bytes);
	MAYBE(64, RX_BYTES64, s->rx_bytes);
	MAYBE(64, TX_BYTES64, s->tx_bytes);
	MAYBE(64, RX_DURATION, s->rx_airtime_us);
	MAYBE(64, TX_DURATION, s->tx_airtime_us);
	MAYBE(16, AIRTIME_WEIGHT, s->airtime_weight);
	MAYBE(8, SIGNAL, (uint8_t)s->signal_dbm);
	MAYBE(8, SIGNAL_AVG, (uint8_t)s->signal_avg_dbm);
	if (HAS(TX_BITRATE))
		n += put_attr(info + n, NL80211_STA_INFO_TX_BITRATE, nest,
			      (uint16_t)rate_nest(nest, &s->tx_rate, true));
	if (HAS(RX_BITRATE))
		n += put_attr(info + n, NL80211_STA_INFO_RX_BITRATE, nest,
			      (uint16_t)rate_nest(nest, &s->rx_rate, false));
	MAYBE(32, RX_PACKETS, s->rx_pkts);
	MAYBE(32, TX_PACKETS, s->tx_pkts);
	MAYBE(32, TX_RETRIES, s->tx_retries);
	MAYBE(32, TX_FAILED, s->tx_failed);
	MAYBE(32, EXPECTED_THROUGHPUT, s->expected_throughput_kbps);
	MAYBE(32, BEACON_LOSS, s->beacon_loss);
	MAYBE(64, RX_DROP_MISC, s->rx_drop_misc);
	MAYBE(8, ACK_SIGNAL, (uint8_t)s->ack_signal_dbm);
	if (s->acs & 1)
		len += put_attr(tids + len, 7, nest, (uint16_t)tid_nest(nest, ac++));
	if (s->acs & 4)
		len += put_attr(tids + len, 1, nest, (uint16_t)tid_nest(nest, ac));
	n += put_attr(info + n, NL80211_STA_INFO_TID_STATS, tids, (uint16_t)len);
	return n;
}

static const uint8_t known[] = {
	NL80211_STA_INFO_INACTIVE_TIME, NL80211_STA_INFO_RX_BYTES,   NL80211_STA_INFO_TX_BYTES,
	NL80211_STA_INFO_RX_BYTES64,	NL80211_STA_INFO_TX_BYTES64, NL80211_STA_INFO_RX_DURATION,
	NL80211_STA_INFO_TX_DURATION,	NL80211_STA_INFO_SIGNAL,     NL80211_STA_INFO_SIGNAL_AVG,
	NL80211_STA_INFO_TX_BITRATE,	NL80211_STA_INFO_RX_BITRATE, NL80211_STA_INFO_RX_PACKETS,
	NL80211_STA_INFO_TX_PACKETS,	NL80211_STA_INFO_TX_RETRIES, NL80211_STA_INFO_TX_FAILED,
	NL80211_STA_INFO_BEACON_LOSS,	NL80211_STA_INFO_ACK_SIGNAL, NL80211_STA_INFO_EXPECTED_THROUGHPUT,
	NL80211_STA_INFO_AIRTIME_WEIGHT, NL80211_STA_INFO_RX_DROP_MISC,
};

static uint64_t next_random(void)
{
	static uint64_t x = 88172645463325252u;

	x ^= x << 13;
	x ^= x >> 7;
	return x ^= x << 17;
}

static void make_up(struct oal_sampler_station *s)
{
	const unsigned mcs = (unsigned)(next_random() % 10);
	static uint8_t acs;

	memset(s, 0, sizeof *s + 2 * sizeof s->ac[0]);
	for (unsigned i = 0; i < sizeof known; i++)
		if (next_random() % 4)
			s->has |= UINT64_C(1) << known[i];
	s->rx_bytes = next_random();
	s->tx_bytes = next_random();
	s->rx_drop_misc = (uint32_t)next_random();
	s->tx_airtime_us = next_random() >> 1;
	s->rx_airtime_us = next_random() >> 1;
	s->inactive_ms = (uint32_t)next_random();
	s->rx_pkts = (uint32_t)next_random();
	s->tx_pkts = (uint32_t)next_random();
	s->tx_retries = (uint32_t)next_random();
	s->tx_failed = (uint32_t)next_random();
	s->beacon_loss = (uint32_t)next_random();
	s->expected_throughput_kbps = (uint32_t)next_random();
	s->airtime_weight = (uint16_t)next_random();
	s->interval_ticks = 1;
	s->signal_dbm = (int8_t)next_random();
	s->signal_avg_dbm = (int8_t)next_random();
	s->ack_signal_dbm = (int8_t)next_random();
	s->tx_rate = (struct oal_sampler_rate){ (uint32_t)next_random() >> 12, 80, 400, (uint8_t)mcs, 2, 0 };
	s->rx_rate = (struct oal_sampler_rate){ 650, 20, 800, (uint8_t)(8 + mcs % 8), 2, 0 };
	s->acs = acs |= next_random() % 8 ? 4 : 5; /* a category that has counted once goes on */
	for (int a = 0; a < (s->acs == 5 ? 2 : 1); a++) {
		const uint32_t has = (uint32_t)next_random() % 16 | OAL_SAMPLER_AC_MSDU_PKTS;
		struct oal_sampler_ac *ac = &s->ac[a];

		*ac = (struct oal_sampler_ac){ .msdu_pkts = next_random() >> 2, .has = has };
		if (has & OAL_SAMPLER_AC_MSDU_RETRIES)
			ac->msdu_retries = next_random() >> 40;
		if (has & OAL_SAMPLER_AC_MSDU_FAILED)
			ac->msdu_failed = next_random() >> 50;
		if (has & OAL_SAMPLER_AC_TXQ) {
			ac->backlog_bytes = (uint32_t)next_random();
			ac->backlog_pkts = (uint32_t)next_random() >> 8;
			ac->flows = 3, ac->drops = (uint32_t)next_random(), ac->ecn_marks = 5;
			ac->overlimit = 6, ac->collisions = 7, ac->tx_bytes = (uint32_t)next_random(), ac->tx_pkts = 8;
		}
	}
}

static void the_same_rows_as_nl80211(void)
{
	static struct nl80211_station by_nl80211;
	static struct kmod_station by_module;
	union {
		struct oal_sampler_station station;
		uint8_t room[sizeof(struct oal_sampler_station) + 2 * sizeof(struct oal_sampler_ac)];
	} u;
	unsigned differ = 0;

	for (int round = 0; round < 2000; round++) {
		uint8_t info[2048];
		struct nl_attr attr;

		make_up(&u.station);
		attr = (struct nl_attr){ .data = info, .len = (uint16_t)answer(info, &u.station) };
		nl80211_parse_station(&by_nl80211, &attr);
		by_nl80211.row.interval_ticks = 1; /* the collector's */
		kmod_station_counters(&by_module, &u.station);
		differ += memcmp(&by_nl80211.row, &by_module.row, sizeof by_module.row) != 0;
		differ += memcmp(by_nl80211.acs.row, by_module.acs, sizeof by_module.acs) != 0;
		differ += by_nl80211.acs.used != by_module.used || by_nl80211.acs.changed != by_module.changed;
	}
	CHECK(differ == 0);
	CHECK(by_module.used == 5 && by_module.row.tx_width_mhz == 80);
}

static void depth_changes_the_backlog_alone(void)
{
	struct kmod_station k = { 0 };
	struct oal_sampler_depth d = { .backlog_bytes = { 0, 0, 1500 }, .backlog_pkts = { 0, 0, 1 } };

	k.acs[2].tx_bytes = 77;
	kmod_station_depth(&k, &d);
	CHECK(k.changed == 4 && k.used == 4 && k.acs[2].backlog_bytes == 1500 && k.acs[2].backlog_pkts == 1);
	CHECK(k.acs[2].tx_bytes == 77);
	kmod_station_depth(&k, &d);
	CHECK(k.changed == 0 && k.used == 4);
	d.backlog_pkts[2] = d.backlog_bytes[2] = 0;
	kmod_station_depth(&k, &d);
	CHECK(k.changed == 4 && k.acs[2].backlog_bytes == 0);
}

static void an_address_as_a_number(void)
{
	CHECK(kmod_mac((const uint8_t[]){ 2, 0, 0, 7, 1, 255 }) == 0x0200000701ffu);
}

int main(void)
{
	test("a ring of another kind, version or size is refused");
	another_ring_is_refused();
	test("records come in order, past the ring's end, and none before its tick");
	records_come_in_order_past_the_end();
	test("a full ring takes no more, and all that it took comes out");
	a_full_ring_takes_no_more();
	test("what is no record is not read");
	what_is_no_record_is_not_read();
	test("golden: the module's records and nl80211's answers make the same rows");
	the_same_rows_as_nl80211();
	test("a depth changes the backlog alone");
	depth_changes_the_backlog_alone();
	test("an address as a number");
	an_address_as_a_number();
	return done();
}
