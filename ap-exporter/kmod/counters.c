// SPDX-License-Identifier: GPL-2.0-only
/* counters.c: what a driver has to be asked for, and may sleep over: in a worker, one station after another, by
 * cfg80211's own call. What there is of it, and in which words, is as nl80211 gives it to everybody. */
#include <linux/etherdevice.h>
#include <net/cfg80211.h>

#include "sampler.h"

#define ACTIVE_PKTS 4 /* between two reads make an idle station an active one: more than keep-alives and ARP */

#define HAS(x) BIT_ULL(NL80211_STA_INFO_##x)

/* With all categories: what a station's record takes at the most. */
struct full {
	struct oal_sampler_station station;
	struct oal_sampler_ac ac[OAL_SAMPLER_ACS];
};

static u16 width_mhz(const struct rate_info *r)
{
	switch (r->bw) {
	case RATE_INFO_BW_5: return 5;
	case RATE_INFO_BW_10: return 10;
	case RATE_INFO_BW_40: return 40;
	case RATE_INFO_BW_80: return 80;
	case RATE_INFO_BW_160: return 160;
	case RATE_INFO_BW_320: return 320;
	default: return 20; /* parts of a channel too */
	}
}

static u16 guard_ns(u8 gi)
{
	return gi == NL80211_RATE_INFO_HE_GI_0_8 ? 800 : gi == NL80211_RATE_INFO_HE_GI_1_6 ? 1600 : 3200;
}

static void fill_rate(struct oal_sampler_rate *to, struct rate_info *r)
{
	*to = (struct oal_sampler_rate){
		.kbps100 = cfg80211_calculate_bitrate(r),
		.width_mhz = width_mhz(r),
		.gi_ns = 800,
		.mcs = 255,
		.nss = 1,
	};
	if (r->flags & RATE_INFO_FLAGS_MCS) { /* 802.11n: the index holds the streams */
		to->mcs = r->mcs;
		to->nss = r->mcs / 8 + 1;
	} else if (r->flags & (RATE_INFO_FLAGS_VHT_MCS | RATE_INFO_FLAGS_HE_MCS | RATE_INFO_FLAGS_EHT_MCS)) {
		to->mcs = r->mcs;
		to->nss = r->nss;
	}
	if (r->flags & RATE_INFO_FLAGS_HE_MCS)
		to->gi_ns = guard_ns(r->he_gi);
	else if (r->flags & RATE_INFO_FLAGS_EHT_MCS)
		to->gi_ns = guard_ns(r->eht_gi);
	else if (r->flags & (RATE_INFO_FLAGS_MCS | RATE_INFO_FLAGS_VHT_MCS) && r->flags & RATE_INFO_FLAGS_SHORT_GI)
		to->gi_ns = 400;
}

/* IEEE 802.1D; frames without QoS go as best effort. */
static unsigned int ac_of(unsigned int tid)
{
	static const u8 map[8] = { 2, 3, 3, 2, 1, 1, 0, 0 };

	return tid < IEEE80211_NUM_TIDS ? map[tid & 7] : 2;
}

static void add_tid(struct oal_sampler_ac *ac, const struct cfg80211_tid_stats *t)
{
	const struct cfg80211_txq_stats *q = &t->txq_stats;

	if (t->filled & BIT(NL80211_TID_STATS_TX_MSDU))
		ac->msdu_pkts += t->tx_msdu, ac->has |= OAL_SAMPLER_AC_MSDU_PKTS;
	if (t->filled & BIT(NL80211_TID_STATS_TX_MSDU_RETRIES))
		ac->msdu_retries += t->tx_msdu_retries, ac->has |= OAL_SAMPLER_AC_MSDU_RETRIES;
	if (t->filled & BIT(NL80211_TID_STATS_TX_MSDU_FAILED))
		ac->msdu_failed += t->tx_msdu_failed, ac->has |= OAL_SAMPLER_AC_MSDU_FAILED;
	if (!(t->filled & BIT(NL80211_TID_STATS_TXQ_STATS)))
		return;
	ac->has |= OAL_SAMPLER_AC_TXQ;
	ac->backlog_bytes += q->backlog_bytes;
	ac->backlog_pkts += q->backlog_packets;
	ac->flows += q->flows;
	ac->drops += q->drops;
	ac->ecn_marks += q->ecn_marks;
	ac->overlimit += q->overlimit;
	ac->collisions += q->collisions;
	ac->tx_bytes += q->tx_bytes;
	ac->tx_pkts += q->tx_packets;
}

/* Categories into the record's tail. `slot` learns what waits. */
static void fill_acs(struct full *f, const struct station_info *i, struct slot *slot)
{
	struct oal_sampler_ac acs[OAL_SAMPLER_ACS] = { };
	unsigned int tid, a, n = 0;

	for (tid = 0; i->pertid && tid < IEEE80211_NUM_TIDS + 1; tid++)
		add_tid(&acs[ac_of(tid)], &i->pertid[tid]);
	for (a = 0; a < OAL_SAMPLER_ACS; a++) {
		slot->bytes[a] = acs[a].backlog_bytes;
		slot->frames[a] = acs[a].backlog_pkts;
		if (!memchr_inv(&acs[a], 0, offsetof(struct oal_sampler_ac, has))) /* no counter moved yet */
			continue;
		f->ac[n++] = acs[a];
		f->station.acs |= BIT(a);
	}
}

/* What nl80211 would leave out is not there. */
static u64 present(const struct wiphy *w, u64 filled)
{
	if (!wiphy_ext_feature_isset((struct wiphy *)w, NL80211_EXT_FEATURE_AIRTIME_FAIRNESS))
		filled &= ~HAS(AIRTIME_WEIGHT);
	if (!wiphy_ext_feature_isset((struct wiphy *)w, NL80211_EXT_FEATURE_ACK_SIGNAL_SUPPORT))
		filled &= ~HAS(ACK_SIGNAL);
	if (w->signal_type != CFG80211_SIGNAL_TYPE_MBM)
		filled &= ~(HAS(SIGNAL) | HAS(SIGNAL_AVG));
	return filled;
}

static void fill(struct oal_sampler_station *r, const struct wiphy *w, struct station_info *i)
{
	r->has = present(w, i->filled);
	r->rx_bytes = i->rx_bytes;
	r->tx_bytes = i->tx_bytes;
	r->rx_drop_misc = i->rx_dropped_misc;
	r->tx_airtime_us = i->tx_duration;
	r->rx_airtime_us = i->rx_duration;
	r->inactive_ms = i->inactive_time;
	r->rx_pkts = i->rx_packets;
	r->tx_pkts = i->tx_packets;
	r->tx_retries = i->tx_retries;
	r->tx_failed = i->tx_failed;
	r->beacon_loss = i->beacon_loss_count;
	r->expected_throughput_kbps = i->expected_throughput;
	r->airtime_weight = i->airtime_weight;
	r->signal_dbm = i->signal;
	r->signal_avg_dbm = i->signal_avg;
	r->ack_signal_dbm = i->ack_signal;
	if (r->has & HAS(TX_BITRATE))
		fill_rate(&r->tx_rate, &i->txrate);
	if (r->has & HAS(RX_BITRATE))
		fill_rate(&r->rx_rate, &i->rxrate);
}

static void update_activity(struct sampler *s, struct slot *slot, u32 pkts)
{
	const u32 moved = pkts - slot->pkts;
	bool traffic = slot->active ? moved > 0 : moved >= ACTIVE_PKTS;
	unsigned int a;

	if (!slot->read) /* one that has just come is about to have some */
		traffic = true;
	for (a = 0; a < OAL_SAMPLER_ACS; a++)
		traffic |= slot->frames[a] > 0;
	if (traffic) {
		slot->traffic = s->tick;
		slot->active = true;
	} else if (slot->active && s->tick - slot->traffic >= s->want.active_hold_ticks) {
		slot->active = false;
	}
	slot->pkts = pkts;
	slot->read = true;
}

/* What was read becomes a record, unless the station has left meanwhile. */
static void put(struct sampler *s, const u8 *mac, struct net_device *dev)
{
	struct slot *slot = stations_find(s, mac);
	struct full f = { };

	if (!slot)
		return;
	fill(&f.station, dev->ieee80211_ptr->wiphy, s->info);
	fill_acs(&f, s->info, slot);
	update_activity(s, slot, f.station.rx_pkts + f.station.tx_pkts);
	ether_addr_copy(f.station.mac, mac);
	f.station.active = slot->active;
	f.station.interval_ticks = slot->active ? s->active_interval : s->idle_interval;
	ring_put(s, &f.station.record, OAL_SAMPLER_STATION,
		 sizeof(f.station) + hweight8(f.station.acs) * sizeof(f.ac[0]));
}

/* The next that is due, from slot `i` on. False: none. */
static bool next_due(struct sampler *s, u32 *i, u8 *mac)
{
	bool found;

	spin_lock_bh(&s->lock);
	*i = find_next_bit(s->due, s->want.max_stations, *i);
	found = *i < s->want.max_stations;
	if (found) {
		__clear_bit(*i, s->due);
		ether_addr_copy(mac, s->slots[*i].mac);
	}
	spin_unlock_bh(&s->lock);
	return found;
}

/* It goes before everything else that runs, and a kernel may not take the processor from it. So a round is followed by
 * a rest as long: else many stations leave a small processor no time for their reader, whose ring then overruns. */
void counters_work(struct work_struct *work)
{
	struct sampler *s = container_of(work, struct sampler, work);
	struct net_device *dev = dev_get_by_index(s->net, s->want.ifindex);
	const u64 round = ktime_get_ns();
	u8 mac[ETH_ALEN] __aligned(2);
	u64 longest = 0, now;
	u32 i;

	for (i = 0; dev && next_due(s, &i, mac); i++) {
		const u64 began = ktime_get_ns();
		const int ret = tick_is_mac80211(dev) ? cfg80211_get_station(dev, mac, s->info) : -ENODEV;
		const u64 took = ktime_get_ns() - began;

		longest = max(longest, took);
		spin_lock_bh(&s->lock);
		s->counters_ns += took;
		if (!ret)
			put(s, mac, dev);
		spin_unlock_bh(&s->lock);
		if (!ret)
			cfg80211_sinfo_release_content(s->info);
		cond_resched();
	}
	dev_put(dev);
	spin_lock_bh(&s->lock);
	now = ktime_get_ns();
	s->rest_until = now + (now - round);
	s->reading = false;
	spin_unlock_bh(&s->lock);
	WRITE_ONCE(s->header->longest_us, (u32)div_u64(longest, NSEC_PER_USEC));
}
