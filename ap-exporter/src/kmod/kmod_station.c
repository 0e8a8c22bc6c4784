#include "kmod/kmod_station.h"

#include "netlink/station_absent.h"

#include <linux/nl80211.h>
#include <stdbool.h>
#include <string.h>

uint64_t kmod_mac(const uint8_t *octets)
{
	uint64_t mac = 0;

	for (int i = 0; i < 6; i++)
		mac = mac << 8 | octets[i];
	return mac;
}

static bool has(const struct oal_sampler_station *s, unsigned info)
{
	return s->has >> info & 1;
}

static uint32_t kbps(const struct oal_sampler_rate *r)
{
	return r->kbps100 > UINT32_MAX / 100 ? UINT32_MAX : r->kbps100 * 100;
}

/* Bytes: 64 bits of them, or 32 from a driver that counts no more. */
static uint64_t bytes(const struct oal_sampler_station *s, uint64_t value, unsigned info64, unsigned info32)
{
	if (has(s, info64))
		return value & INT64_MAX; /* columns travel as sint64 */
	return has(s, info32) ? (uint32_t)value : 0;
}

static uint64_t count64(const struct oal_sampler_station *s, uint64_t value, unsigned info)
{
	return has(s, info) ? value & INT64_MAX : 0;
}

static uint32_t count32(const struct oal_sampler_station *s, uint32_t value, unsigned info)
{
	return has(s, info) ? value : 0;
}

static int8_t dbm(const struct oal_sampler_station *s, int8_t value, unsigned info)
{
	return has(s, info) ? value : 0;
}

static void set_row(struct oal_station_row *r, const struct oal_sampler_station *s)
{
	r->absent = station_absent(s->has);
	r->interval_ticks = s->interval_ticks;
	r->rx_bytes = bytes(s, s->rx_bytes, NL80211_STA_INFO_RX_BYTES64, NL80211_STA_INFO_RX_BYTES);
	r->tx_bytes = bytes(s, s->tx_bytes, NL80211_STA_INFO_TX_BYTES64, NL80211_STA_INFO_TX_BYTES);
	r->rx_pkts = count32(s, s->rx_pkts, NL80211_STA_INFO_RX_PACKETS);
	r->tx_pkts = count32(s, s->tx_pkts, NL80211_STA_INFO_TX_PACKETS);
	r->tx_retries = count32(s, s->tx_retries, NL80211_STA_INFO_TX_RETRIES);
	r->tx_failed = count32(s, s->tx_failed, NL80211_STA_INFO_TX_FAILED);
	r->rx_drop_misc = count64(s, s->rx_drop_misc, NL80211_STA_INFO_RX_DROP_MISC);
	r->beacon_loss = count32(s, s->beacon_loss, NL80211_STA_INFO_BEACON_LOSS);
	r->signal_dbm = dbm(s, s->signal_dbm, NL80211_STA_INFO_SIGNAL);
	r->signal_avg_dbm = dbm(s, s->signal_avg_dbm, NL80211_STA_INFO_SIGNAL_AVG);
	r->ack_signal_dbm = dbm(s, s->ack_signal_dbm, NL80211_STA_INFO_ACK_SIGNAL);
	r->expected_throughput_kbps =
		count32(s, s->expected_throughput_kbps, NL80211_STA_INFO_EXPECTED_THROUGHPUT);
	r->tx_airtime_us = count64(s, s->tx_airtime_us, NL80211_STA_INFO_TX_DURATION);
	r->rx_airtime_us = count64(s, s->rx_airtime_us, NL80211_STA_INFO_RX_DURATION);
	r->inactive_ms = count32(s, s->inactive_ms, NL80211_STA_INFO_INACTIVE_TIME);
	r->airtime_weight = has(s, NL80211_STA_INFO_AIRTIME_WEIGHT) ? s->airtime_weight : 0;
	if (has(s, NL80211_STA_INFO_TX_BITRATE)) { /* else as last told */
		r->tx_bitrate_kbps = kbps(&s->tx_rate);
		r->tx_mcs = s->tx_rate.mcs;
		r->tx_nss = s->tx_rate.nss;
		r->tx_width_mhz = s->tx_rate.width_mhz;
		r->tx_gi_ns = s->tx_rate.gi_ns;
	}
	if (has(s, NL80211_STA_INFO_RX_BITRATE)) {
		r->rx_bitrate_kbps = kbps(&s->rx_rate);
		r->rx_mcs = s->rx_rate.mcs;
		r->rx_nss = s->rx_rate.nss;
		r->rx_width_mhz = s->rx_rate.width_mhz;
		r->rx_gi_ns = s->rx_rate.gi_ns;
	}
}

static uint32_t ac_absent(const struct oal_sampler_ac *a)
{
	return (a->has & OAL_SAMPLER_AC_MSDU_PKTS ? 0 : OAL_STATION_AC_ABSENT_MSDU_PKTS) |
	       (a->has & OAL_SAMPLER_AC_MSDU_RETRIES ? 0 : OAL_STATION_AC_ABSENT_MSDU_RETRIES) |
	       (a->has & OAL_SAMPLER_AC_MSDU_FAILED ? 0 : OAL_STATION_AC_ABSENT_MSDU_FAILED) |
	       (a->has & OAL_SAMPLER_AC_TXQ ? 0 : STATION_AC_TXQ);
}

static void set_ac(struct oal_station_ac_row *r, const struct oal_sampler_ac *a)
{
	r->msdu_pkts = a->msdu_pkts & INT64_MAX;
	r->msdu_retries = a->msdu_retries & INT64_MAX;
	r->msdu_failed = a->msdu_failed & INT64_MAX;
	r->backlog_bytes = a->backlog_bytes;
	r->backlog_pkts = a->backlog_pkts;
	r->flows = a->flows;
	r->drops = a->drops;
	r->ecn_marks = a->ecn_marks;
	r->overlimit = a->overlimit;
	r->collisions = a->collisions;
	r->tx_bytes = a->tx_bytes;
	r->tx_pkts = a->tx_pkts;
}

/* A row that is now as `now` says; whole structs are compared, and begin as all zero. */
static void note(struct kmod_station *k, unsigned a, const struct oal_station_ac_row *now)
{
	if (!memcmp(&k->acs[a], now, sizeof *now))
		return;
	k->acs[a] = *now;
	k->changed |= (uint8_t)(1u << a);
	k->used |= (uint8_t)(1u << a);
}

void kmod_station_counters(struct kmod_station *k, const struct oal_sampler_station *s)
{
	const struct oal_sampler_ac none = { 0 }, *next = s->ac;

	k->changed = 0;
	set_row(&k->row, s);
	for (unsigned a = 0; a < OAL_SAMPLER_ACS; a++) {
		struct oal_station_ac_row now;

		memcpy(&now, &k->acs[a], sizeof now); /* padding too */
		if (s->acs >> a & 1)
			now.absent = ac_absent(next);
		set_ac(&now, s->acs >> a & 1 ? next++ : &none);
		note(k, a, &now);
	}
}

void kmod_station_depth(struct kmod_station *k, const struct oal_sampler_depth *d)
{
	k->changed = 0;
	for (unsigned a = 0; a < OAL_SAMPLER_ACS; a++) {
		struct oal_station_ac_row now;

		memcpy(&now, &k->acs[a], sizeof now);
		now.backlog_bytes = d->backlog_bytes[a];
		now.backlog_pkts = d->backlog_pkts[a];
		note(k, a, &now);
	}
}
