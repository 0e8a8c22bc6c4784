#include "collect/nl80211_tids.h"

#include "netlink/same_bytes.h"
#include "netlink/station_absent.h"

#include <linux/nl80211.h>
#include <stdbool.h>
#include <stddef.h>

/* Access category of a TID (IEEE 802.1D, as the kernel's ieee802_1d_to_ac); frames without QoS go as best effort. */
static uint8_t ac_of(unsigned tid)
{
	static const uint8_t map[8] = { 2, 3, 3, 2, 1, 1, 0, 0 };

	return tid < 16 ? map[tid & 7] : 2;
}

uint32_t nl80211_parse_txq(const struct nl_attr *nest, struct nl80211_txq *q)
{
	static const uint32_t bit[NL80211_TXQ_STATS_MAX + 1] = {
		[NL80211_TXQ_STATS_BACKLOG_BYTES] = OAL_STATION_AC_ABSENT_BACKLOG_BYTES,
		[NL80211_TXQ_STATS_BACKLOG_PACKETS] = OAL_STATION_AC_ABSENT_BACKLOG_PKTS,
		[NL80211_TXQ_STATS_FLOWS] = OAL_STATION_AC_ABSENT_FLOWS,
		[NL80211_TXQ_STATS_DROPS] = OAL_STATION_AC_ABSENT_DROPS,
		[NL80211_TXQ_STATS_ECN_MARKS] = OAL_STATION_AC_ABSENT_ECN_MARKS,
		[NL80211_TXQ_STATS_OVERLIMIT] = OAL_STATION_AC_ABSENT_OVERLIMIT,
		[NL80211_TXQ_STATS_COLLISIONS] = OAL_STATION_AC_ABSENT_COLLISIONS,
		[NL80211_TXQ_STATS_TX_BYTES] = OAL_STATION_AC_ABSENT_TX_BYTES,
		[NL80211_TXQ_STATS_TX_PACKETS] = OAL_STATION_AC_ABSENT_TX_PKTS,
	};
	struct nl_iter it = nl_nested(nest);
	struct nl_attr a;
	uint32_t seen = 0;

	while (nl_next(&it, &a)) {
		uint32_t v = nl_u32(&a);

		switch (a.type) {
		case NL80211_TXQ_STATS_BACKLOG_BYTES: q->backlog_bytes = v; break;
		case NL80211_TXQ_STATS_BACKLOG_PACKETS: q->backlog_pkts = v; break;
		case NL80211_TXQ_STATS_FLOWS: q->flows = v; break;
		case NL80211_TXQ_STATS_DROPS: q->drops = v; break;
		case NL80211_TXQ_STATS_ECN_MARKS: q->ecn_marks = v; break;
		case NL80211_TXQ_STATS_OVERLIMIT: q->overlimit = v; break;
		case NL80211_TXQ_STATS_COLLISIONS: q->collisions = v; break;
		case NL80211_TXQ_STATS_TX_BYTES: q->tx_bytes = v; break;
		case NL80211_TXQ_STATS_TX_PACKETS: q->tx_pkts = v; break;
		default: continue;
		}
		seen |= bit[a.type];
	}
	return seen;
}

static void parse_tid(const struct nl_attr *nest, struct nl80211_tid *t)
{
	struct nl_iter it = nl_nested(nest);
	struct nl_attr a;

	memset(t, 0, sizeof *t); /* padding too: whole structs are compared */
	while (nl_next(&it, &a)) {
		switch (a.type) {
		case NL80211_TID_STATS_TX_MSDU:
			t->msdu_pkts = nl_count(&a), t->seen |= OAL_STATION_AC_ABSENT_MSDU_PKTS;
			break;
		case NL80211_TID_STATS_TX_MSDU_RETRIES:
			t->msdu_retries = nl_count(&a), t->seen |= OAL_STATION_AC_ABSENT_MSDU_RETRIES;
			break;
		case NL80211_TID_STATS_TX_MSDU_FAILED:
			t->msdu_failed = nl_count(&a), t->seen |= OAL_STATION_AC_ABSENT_MSDU_FAILED;
			break;
		case NL80211_TID_STATS_TXQ_STATS: t->seen |= nl80211_parse_txq(&a, &t->txq); break;
		default: break;
		}
	}
}

/* Replaces one TID's share in the sums of its category; 32-bit sums wrap as their parts do. */
static void resum(struct oal_station_ac_row *ac, const struct nl80211_tid *was, const struct nl80211_tid *is)
{
	ac->msdu_pkts = (ac->msdu_pkts + is->msdu_pkts - was->msdu_pkts) & INT64_MAX;
	ac->msdu_retries = (ac->msdu_retries + is->msdu_retries - was->msdu_retries) & INT64_MAX;
	ac->msdu_failed = (ac->msdu_failed + is->msdu_failed - was->msdu_failed) & INT64_MAX;
	ac->backlog_bytes += is->txq.backlog_bytes - was->txq.backlog_bytes;
	ac->backlog_pkts += is->txq.backlog_pkts - was->txq.backlog_pkts;
	ac->flows += is->txq.flows - was->txq.flows;
	ac->drops += is->txq.drops - was->txq.drops;
	ac->ecn_marks += is->txq.ecn_marks - was->txq.ecn_marks;
	ac->overlimit += is->txq.overlimit - was->txq.overlimit;
	ac->collisions += is->txq.collisions - was->txq.collisions;
	ac->tx_bytes += is->txq.tx_bytes - was->txq.tx_bytes;
	ac->tx_pkts += is->txq.tx_pkts - was->txq.tx_pkts;
}

enum { COUNTERS = offsetof(struct nl80211_tid, seen) }; /* bytes */

static bool nothing_in(const struct nl80211_tid *t)
{
	const struct nl80211_tid none = { 0 };

	return !memcmp(t, &none, COUNTERS);
}

/* Absent in a category is what none of its TIDs reports: frames without QoS have no queue of their own. */
static void note_absent(struct nl80211_acs *s, unsigned ac)
{
	uint32_t seen = 0;

	for (unsigned t = 0; t < NL80211_TIDS; t++)
		if (ac_of(t) == ac)
			seen |= s->tids[t].seen;
	if (s->row[ac].absent == (STATION_AC_OPTIONAL & ~seen))
		return;
	s->row[ac].absent = STATION_AC_OPTIONAL & ~seen;
	s->changed |= (uint8_t)(1u << ac);
}

static void update_tid(struct nl80211_acs *s, const struct nl_attr *nest)
{
	unsigned tid = nest->type - 1u, ac;
	struct nl80211_tid now;

	if (tid >= NL80211_TIDS)
		return;
	parse_tid(nest, &now);
	if (!memcmp(&now, &s->tids[tid], sizeof now))
		return;
	ac = ac_of(tid);
	if (memcmp(&now, &s->tids[tid], COUNTERS))
		s->used |= (uint8_t)(1u << ac);
	resum(&s->row[ac], &s->tids[tid], &now);
	s->tids[tid] = now;
	note_absent(s, ac);
	s->changed |= (uint8_t)(1u << ac);
}

/* Another shape than before: a TID that is not in it any more must not linger in the sums. */
static void forget_tids(struct nl80211_acs *s)
{
	for (unsigned t = 0; t < NL80211_TIDS; t++) {
		const struct nl80211_tid none = { 0 };

		if (nothing_in(&s->tids[t])) {
			s->tids[t].seen = 0;
			continue;
		}
		resum(&s->row[ac_of(t)], &s->tids[t], &none);
		s->tids[t] = none;
		s->changed |= (uint8_t)(1u << ac_of(t));
	}
}

/*
 * 17 nests of some 140 bytes each, of which mostly one changed since the last tick, and that the same as last time: the
 * others are recognised by their bytes and not parsed. They stand at the same offsets as long as the driver reports the
 * same attributes.
 */
void nl80211_parse_tids(struct nl80211_acs *s, const struct nl_attr *nest)
{
	bool alike = nest->len == s->raw_len;
	struct nl_iter it = nl_nested(nest);
	unsigned changed = 0;
	struct nl_attr a;
	uint32_t at;

	if (alike) {
		uint32_t after = s->hot_at + (uint32_t)s->hot_len;

		if (same_bytes(s->raw + after, nest->data + after, nest->len - after) &&
		    same_bytes(s->raw, nest->data, s->hot_at)) {
			it.at = s->hot_at;
			if (!same_bytes(s->raw + it.at, nest->data + it.at, s->hot_len) && nl_next(&it, &a))
				update_tid(s, &a);
			memcpy(s->raw + s->hot_at, nest->data + s->hot_at, s->hot_len);
			return;
		}
	} else {
		forget_tids(s);
	}
	for (at = it.at; nl_next(&it, &a); at = it.at) {
		uint32_t size = (it.at < it.len ? it.at : it.len) - at;

		if (alike && same_bytes(s->raw + at, nest->data + at, size))
			continue;
		update_tid(s, &a);
		s->hot_at = (uint16_t)at;
		s->hot_len = (uint16_t)size;
		changed++;
	}
	s->raw_len = nest->len <= sizeof s->raw ? nest->len : 0; /* a larger nest is parsed every time */
	memcpy(s->raw, nest->data, s->raw_len);
	for (unsigned ac = 0; !alike && ac < NL80211_ACS; ac++) /* what is not reported any more is absent */
		if (s->used >> ac & 1)
			note_absent(s, ac);
	if (changed != 1 || !s->raw_len)
		s->hot_at = s->hot_len = 0;
}
