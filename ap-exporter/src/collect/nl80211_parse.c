#include "collect/nl80211_parse.h"

#include <linux/nl80211.h>

/* Access category of a TID (IEEE 802.1D, as the kernel's ieee802_1d_to_ac); frames without QoS go as best effort. */
static uint8_t ac_of(unsigned tid)
{
	static const uint8_t map[8] = { 2, 3, 3, 2, 1, 1, 0, 0 };

	return tid < 16 ? map[tid & 7] : 2;
}

bool nl80211_find_station(const uint8_t *attrs, uint32_t len, uint64_t *mac, struct nl_attr *info)
{
	struct nl_iter it = nl_iter(attrs, len);
	bool has_mac = false, has_info = false;
	struct nl_attr a;

	while (nl_next(&it, &a)) {
		if (a.type == NL80211_ATTR_MAC && a.len >= 6) {
			*mac = nl_mac(&a);
			has_mac = true;
		} else if (a.type == NL80211_ATTR_STA_INFO) {
			*info = a;
			has_info = true;
		}
	}
	return has_mac && has_info;
}

static void parse_txq(const struct nl_attr *nest, struct nl80211_txq *q)
{
	struct nl_iter it = nl_nested(nest);
	struct nl_attr a;

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
		default: break;
		}
	}
}

static void parse_tid(const struct nl_attr *nest, struct nl80211_tid *t)
{
	struct nl_iter it = nl_nested(nest);
	struct nl_attr a;

	memset(t, 0, sizeof *t); /* padding too: whole structs are compared */
	while (nl_next(&it, &a)) {
		switch (a.type) {
		case NL80211_TID_STATS_TX_MSDU: t->msdu_pkts = nl_count(&a); break;
		case NL80211_TID_STATS_TX_MSDU_RETRIES: t->msdu_retries = nl_count(&a); break;
		case NL80211_TID_STATS_TX_MSDU_FAILED: t->msdu_failed = nl_count(&a); break;
		case NL80211_TID_STATS_TXQ_STATS: parse_txq(&a, &t->txq); break;
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

static bool nothing_in(const struct nl80211_tid *t)
{
	const struct nl80211_tid none = { 0 };

	return !memcmp(t, &none, sizeof none);
}

static void update_tid(struct nl80211_station *s, const struct nl_attr *nest)
{
	unsigned tid = nest->type - 1u, ac;
	struct nl80211_tid now;

	if (tid >= NL80211_TIDS)
		return;
	parse_tid(nest, &now);
	if (!memcmp(&now, &s->tids[tid], sizeof now))
		return;
	ac = ac_of(tid);
	resum(&s->ac[ac], &s->tids[tid], &now);
	s->tids[tid] = now;
	s->ac_changed |= (uint8_t)(1u << ac);
	s->ac_used |= (uint8_t)(1u << ac);
}

/* Another shape than before: a TID that is not in it any more must not linger in the sums. */
static void forget_tids(struct nl80211_station *s)
{
	for (unsigned t = 0; t < NL80211_TIDS; t++) {
		const struct nl80211_tid none = { 0 };

		if (nothing_in(&s->tids[t]))
			continue;
		resum(&s->ac[ac_of(t)], &s->tids[t], &none);
		s->tids[t] = none;
		s->ac_changed |= (uint8_t)(1u << ac_of(t));
	}
}

/*
 * 17 nests of some 140 bytes each, of which mostly one changed since the last tick, and that the same as last time: the others are
 * told by their bytes and not parsed. They stand at the same offsets as long as the driver reports the same attributes.
 */
static void parse_tids(struct nl80211_station *s, const struct nl_attr *nest)
{
	bool alike = nest->len == s->raw_len;
	struct nl_iter it = nl_nested(nest);
	unsigned changed = 0;
	struct nl_attr a;
	uint32_t at;

	if (alike) {
		uint32_t after = s->hot_at + (uint32_t)s->hot_len;

		if (!memcmp(s->raw + after, nest->data + after, nest->len - after) && !memcmp(s->raw, nest->data, s->hot_at)) {
			it.at = s->hot_at;
			if (memcmp(s->raw + it.at, nest->data + it.at, s->hot_len) && nl_next(&it, &a))
				update_tid(s, &a);
			memcpy(s->raw + s->hot_at, nest->data + s->hot_at, s->hot_len);
			return;
		}
	} else {
		forget_tids(s);
	}
	for (at = it.at; nl_next(&it, &a); at = it.at) {
		uint32_t size = (it.at < it.len ? it.at : it.len) - at;

		if (alike && !memcmp(s->raw + at, nest->data + at, size))
			continue;
		update_tid(s, &a);
		s->hot_at = (uint16_t)at;
		s->hot_len = (uint16_t)size;
		changed++;
	}
	s->raw_len = nest->len <= sizeof s->raw ? nest->len : 0; /* a larger nest is parsed every time */
	memcpy(s->raw, nest->data, s->raw_len);
	if (changed != 1 || !s->raw_len)
		s->hot_at = s->hot_len = 0;
}

static uint16_t gi_ns(uint8_t gi)
{
	return gi == 0 ? 800 : gi == 1 ? 1600 : 3200; /* NL80211_RATE_INFO_HE_GI_*, EHT likewise */
}

static void parse_rate(struct nl80211_rate *r, const struct nl_attr *nest)
{
	struct nl_iter it = nl_nested(nest);
	struct nl_attr a;
	uint32_t kbps16 = 0;

	if (r->raw_len == nest->len && r->raw_len && !memcmp(r->raw, nest->data, nest->len))
		return;
	r->raw_len = nest->len <= sizeof r->raw ? (uint8_t)nest->len : 0;
	memcpy(r->raw, nest->data, r->raw_len);
	r->kbps = 0;
	r->mcs = 255;
	r->nss = 1;
	r->width_mhz = 20;
	r->gi_ns = 800;
	while (nl_next(&it, &a)) {
		switch (a.type) {
		case NL80211_RATE_INFO_BITRATE: kbps16 = nl_u16(&a) * 100u; break; /* 100 kbit/s; 0 above 6.5 Gbit/s */
		case NL80211_RATE_INFO_BITRATE32: r->kbps = nl_u32(&a) > UINT32_MAX / 100 ? UINT32_MAX : nl_u32(&a) * 100; break;
		case NL80211_RATE_INFO_MCS: /* 802.11n: the index holds the streams */
			r->mcs = nl_u8(&a);
			r->nss = (uint8_t)(r->mcs / 8 + 1);
			break;
		case NL80211_RATE_INFO_VHT_MCS:
		case NL80211_RATE_INFO_HE_MCS:
		case NL80211_RATE_INFO_EHT_MCS: r->mcs = nl_u8(&a); break;
		case NL80211_RATE_INFO_VHT_NSS:
		case NL80211_RATE_INFO_HE_NSS:
		case NL80211_RATE_INFO_EHT_NSS: r->nss = nl_u8(&a); break;
		case NL80211_RATE_INFO_SHORT_GI: r->gi_ns = 400; break;
		case NL80211_RATE_INFO_HE_GI:
		case NL80211_RATE_INFO_EHT_GI: r->gi_ns = gi_ns(nl_u8(&a)); break;
		case NL80211_RATE_INFO_5_MHZ_WIDTH: r->width_mhz = 5; break;
		case NL80211_RATE_INFO_10_MHZ_WIDTH: r->width_mhz = 10; break;
		case NL80211_RATE_INFO_40_MHZ_WIDTH: r->width_mhz = 40; break;
		case NL80211_RATE_INFO_80_MHZ_WIDTH: r->width_mhz = 80; break;
		case NL80211_RATE_INFO_80P80_MHZ_WIDTH:
		case NL80211_RATE_INFO_160_MHZ_WIDTH: r->width_mhz = 160; break;
		case NL80211_RATE_INFO_320_MHZ_WIDTH: r->width_mhz = 320; break;
		default: break;
		}
	}
	if (!r->kbps)
		r->kbps = kbps16;
}

static int field_of(uint16_t type)
{
	switch (type) {
	case NL80211_STA_INFO_INACTIVE_TIME: return NL80211_F_INACTIVE;
	case NL80211_STA_INFO_RX_BYTES: return NL80211_F_RX_BYTES32;
	case NL80211_STA_INFO_TX_BYTES: return NL80211_F_TX_BYTES32;
	case NL80211_STA_INFO_RX_BYTES64: return NL80211_F_RX_BYTES;
	case NL80211_STA_INFO_TX_BYTES64: return NL80211_F_TX_BYTES;
	case NL80211_STA_INFO_RX_PACKETS: return NL80211_F_RX_PKTS;
	case NL80211_STA_INFO_TX_PACKETS: return NL80211_F_TX_PKTS;
	case NL80211_STA_INFO_TX_RETRIES: return NL80211_F_TX_RETRIES;
	case NL80211_STA_INFO_TX_FAILED: return NL80211_F_TX_FAILED;
	case NL80211_STA_INFO_RX_DROP_MISC: return NL80211_F_RX_DROP_MISC;
	case NL80211_STA_INFO_BEACON_LOSS: return NL80211_F_BEACON_LOSS;
	case NL80211_STA_INFO_SIGNAL: return NL80211_F_SIGNAL;
	case NL80211_STA_INFO_SIGNAL_AVG: return NL80211_F_SIGNAL_AVG;
	case NL80211_STA_INFO_ACK_SIGNAL: return NL80211_F_ACK_SIGNAL;
	case NL80211_STA_INFO_EXPECTED_THROUGHPUT: return NL80211_F_EXPECTED;
	case NL80211_STA_INFO_AIRTIME_WEIGHT: return NL80211_F_WEIGHT;
	case NL80211_STA_INFO_TX_DURATION: return NL80211_F_TX_AIRTIME;
	case NL80211_STA_INFO_RX_DURATION: return NL80211_F_RX_AIRTIME;
	case NL80211_STA_INFO_TX_BITRATE: return NL80211_F_TX_RATE;
	case NL80211_STA_INFO_RX_BITRATE: return NL80211_F_RX_RATE;
	case NL80211_STA_INFO_TID_STATS: return NL80211_F_TIDS;
	default: return -1;
	}
}

static uint16_t size_of(int field)
{
	return field < NL80211_F_64 ? 8 : field < NL80211_F_32 ? 4 : field < NL80211_F_16 ? 2 : field < NL80211_F_8 ? 1 : 0;
}

static uint32_t load32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof v);
	return v;
}

static bool layout_holds(const struct nl80211_layout *l, const struct nl_attr *info)
{
	uint32_t differs = 0;

	if (!l->n || l->len != info->len)
		return false;
	for (unsigned i = 0; i < l->n; i++)
		differs |= load32(info->data + l->attrs[i].offset) ^ l->attrs[i].head;
	return !differs;
}

/* Walks the attributes and notes where they stand. One that is too short for its type is as good as absent. */
static void lay_out(struct nl80211_layout *l, const struct nl_attr *info)
{
	struct nl_iter it = nl_nested(info);
	struct nl_attr a;

	memset(l, 0, sizeof *l);
	l->len = info->len;
	while (nl_next(&it, &a)) {
		uint32_t offset = (uint32_t)(a.data - info->data);
		int field = field_of(a.type);

		if (field >= 0 && a.len >= size_of(field))
			l->at[field] = (uint16_t)offset;
		if (l->n < NL80211_LAYOUT_MAX) {
			l->attrs[l->n].offset = offset - 4;
			l->attrs[l->n].head = load32(a.data - 4);
		}
		l->n++;
	}
	if (l->n > NL80211_LAYOUT_MAX)
		l->n = 0; /* more than any kernel reports: laid out anew every time */
}

static uint64_t get64(const struct nl80211_layout *l, const uint8_t *base, int field)
{
	uint64_t v = 0;

	if (l->at[field])
		memcpy(&v, base + l->at[field], sizeof v);
	return v & INT64_MAX; /* columns travel as sint64 */
}

static uint32_t get32(const struct nl80211_layout *l, const uint8_t *base, int field)
{
	return l->at[field] ? load32(base + l->at[field]) : 0;
}

static int8_t get8(const struct nl80211_layout *l, const uint8_t *base, int field)
{
	return l->at[field] ? (int8_t)base[l->at[field]] : 0;
}

/* A nest that the layout knows; its length stands before it. */
static bool get_nest(const struct nl80211_layout *l, const uint8_t *base, int field, struct nl_attr *nest)
{
	uint16_t len;

	if (!l->at[field])
		return false;
	memcpy(&len, base + l->at[field] - 4, sizeof len);
	*nest = (struct nl_attr){ .len = (uint16_t)(len - 4), .data = base + l->at[field] };
	return true;
}

void nl80211_parse_station(struct nl80211_station *s, const struct nl_attr *info)
{
	struct nl80211_layout *l = &s->layout;
	struct oal_station_row *r = &s->row;
	const uint8_t *base = info->data;
	struct nl_attr nest;

	if (!layout_holds(l, info))
		lay_out(l, info);
	s->ac_changed = 0;
	if (get_nest(l, base, NL80211_F_TIDS, &nest))
		parse_tids(s, &nest);
	if (get_nest(l, base, NL80211_F_TX_RATE, &nest))
		parse_rate(&s->tx_rate, &nest);
	if (get_nest(l, base, NL80211_F_RX_RATE, &nest))
		parse_rate(&s->rx_rate, &nest);
	r->absent = (l->at[NL80211_F_ACK_SIGNAL] ? 0 : OAL_STATION_ABSENT_ACK_SIGNAL_DBM) |
		    (l->at[NL80211_F_EXPECTED] ? 0 : OAL_STATION_ABSENT_EXPECTED_THROUGHPUT_KBPS) |
		    (l->at[NL80211_F_WEIGHT] ? 0 : OAL_STATION_ABSENT_AIRTIME_WEIGHT);
	r->rx_bytes = l->at[NL80211_F_RX_BYTES] ? get64(l, base, NL80211_F_RX_BYTES) : get32(l, base, NL80211_F_RX_BYTES32);
	r->tx_bytes = l->at[NL80211_F_TX_BYTES] ? get64(l, base, NL80211_F_TX_BYTES) : get32(l, base, NL80211_F_TX_BYTES32);
	r->rx_pkts = get32(l, base, NL80211_F_RX_PKTS);
	r->tx_pkts = get32(l, base, NL80211_F_TX_PKTS);
	r->tx_retries = get32(l, base, NL80211_F_TX_RETRIES);
	r->tx_failed = get32(l, base, NL80211_F_TX_FAILED);
	r->rx_drop_misc = get64(l, base, NL80211_F_RX_DROP_MISC);
	r->beacon_loss = get32(l, base, NL80211_F_BEACON_LOSS);
	r->signal_dbm = get8(l, base, NL80211_F_SIGNAL);
	r->signal_avg_dbm = get8(l, base, NL80211_F_SIGNAL_AVG);
	r->ack_signal_dbm = get8(l, base, NL80211_F_ACK_SIGNAL);
	r->expected_throughput_kbps = get32(l, base, NL80211_F_EXPECTED);
	r->tx_airtime_us = get64(l, base, NL80211_F_TX_AIRTIME);
	r->rx_airtime_us = get64(l, base, NL80211_F_RX_AIRTIME);
	r->inactive_ms = get32(l, base, NL80211_F_INACTIVE);
	r->airtime_weight = 0;
	if (l->at[NL80211_F_WEIGHT])
		memcpy(&r->airtime_weight, base + l->at[NL80211_F_WEIGHT], sizeof r->airtime_weight);
	r->tx_bitrate_kbps = s->tx_rate.kbps;
	r->tx_mcs = s->tx_rate.mcs;
	r->tx_nss = s->tx_rate.nss;
	r->tx_width_mhz = s->tx_rate.width_mhz;
	r->tx_gi_ns = s->tx_rate.gi_ns;
	r->rx_bitrate_kbps = s->rx_rate.kbps;
	r->rx_mcs = s->rx_rate.mcs;
	r->rx_nss = s->rx_rate.nss;
	r->rx_width_mhz = s->rx_rate.width_mhz;
	r->rx_gi_ns = s->rx_rate.gi_ns;
}

bool nl80211_parse_survey(const uint8_t *attrs, uint32_t len, struct oal_channel_row *row)
{
	struct nl_iter it = nl_iter(attrs, len);
	bool in_use = false;
	struct nl_attr a, i;

	*row = (struct oal_channel_row){
		.absent = OAL_CHANNEL_ABSENT_EXT_BUSY_MS | OAL_CHANNEL_ABSENT_RX_MS | OAL_CHANNEL_ABSENT_TX_MS |
			  OAL_CHANNEL_ABSENT_SCAN_MS | OAL_CHANNEL_ABSENT_NOISE_DBM,
	};
	while (nl_next(&it, &a)) {
		struct nl_iter nest = nl_nested(&a);

		if (a.type != NL80211_ATTR_SURVEY_INFO)
			continue;
		while (nl_next(&nest, &i)) {
			switch (i.type) {
			case NL80211_SURVEY_INFO_FREQUENCY: row->frequency_mhz = nl_u32(&i) > UINT16_MAX ? 0 : (uint16_t)nl_u32(&i); break;
			case NL80211_SURVEY_INFO_IN_USE: in_use = true; break;
			case NL80211_SURVEY_INFO_TIME: row->active_ms = nl_count(&i); break;
			case NL80211_SURVEY_INFO_TIME_BUSY: row->busy_ms = nl_count(&i); break;
			case NL80211_SURVEY_INFO_TIME_EXT_BUSY:
				row->ext_busy_ms = nl_count(&i);
				row->absent &= ~OAL_CHANNEL_ABSENT_EXT_BUSY_MS;
				break;
			case NL80211_SURVEY_INFO_TIME_RX:
				row->rx_ms = nl_count(&i);
				row->absent &= ~OAL_CHANNEL_ABSENT_RX_MS;
				break;
			case NL80211_SURVEY_INFO_TIME_TX:
				row->tx_ms = nl_count(&i);
				row->absent &= ~OAL_CHANNEL_ABSENT_TX_MS;
				break;
			case NL80211_SURVEY_INFO_TIME_SCAN:
				row->scan_ms = nl_count(&i);
				row->absent &= ~OAL_CHANNEL_ABSENT_SCAN_MS;
				break;
			case NL80211_SURVEY_INFO_NOISE:
				row->noise_dbm = (int8_t)nl_u8(&i);
				row->absent &= ~OAL_CHANNEL_ABSENT_NOISE_DBM;
				break;
			default: break;
			}
		}
	}
	return in_use && row->frequency_mhz;
}

static uint16_t channel_width(uint32_t width)
{
	switch (width) {
	case NL80211_CHAN_WIDTH_20_NOHT:
	case NL80211_CHAN_WIDTH_20: return 20;
	case NL80211_CHAN_WIDTH_40: return 40;
	case NL80211_CHAN_WIDTH_80: return 80;
	case NL80211_CHAN_WIDTH_80P80:
	case NL80211_CHAN_WIDTH_160: return 160;
	case NL80211_CHAN_WIDTH_320: return 320;
	case NL80211_CHAN_WIDTH_10: return 10;
	case NL80211_CHAN_WIDTH_5: return 5;
	default: return 0; /* the 1 to 16 MHz widths of 802.11ah do not fit TCP's world */
	}
}

void nl80211_parse_interface(const uint8_t *attrs, uint32_t len, struct nl80211_interface *i)
{
	struct nl_iter it = nl_iter(attrs, len);
	struct nl_attr a;

	*i = (struct nl80211_interface){ 0 };
	while (nl_next(&it, &a)) {
		if (a.type == NL80211_ATTR_CHANNEL_WIDTH) {
			i->width_mhz = channel_width(nl_u32(&a));
		} else if (a.type == NL80211_ATTR_TXQ_STATS) {
			i->has_txq = true;
			parse_txq(&a, &i->txq);
		}
	}
}

/* The BSS Load element (802.11-2020 9.4.2.27) among information elements: id, length, body. */
static void parse_load(const uint8_t *ies, uint32_t len, struct oal_beacon_row *row)
{
	const uint8_t *p = ies, *end = ies + len;

	for (; end - p >= 2 && end - p - 2 >= p[1]; p += 2 + p[1]) {
		if (p[0] != 11 || p[1] < 5)
			continue;
		row->load_stations = (uint16_t)(p[2] | p[3] << 8); /* little-endian on the air */
		row->load_utilization = p[4];
		row->absent = 0;
		return;
	}
}

bool nl80211_parse_bss(const uint8_t *attrs, uint32_t len, struct oal_beacon_row *row, bool *own)
{
	struct nl_iter it = nl_iter(attrs, len);
	struct nl_attr a, i, ies = { 0 };
	bool has_bssid = false;

	*row = (struct oal_beacon_row){ .absent = OAL_BEACON_ABSENT_LOAD_STATIONS | OAL_BEACON_ABSENT_LOAD_UTILIZATION };
	*own = false;
	while (nl_next(&it, &a)) {
		struct nl_iter nest = nl_nested(&a);

		if (a.type != NL80211_ATTR_BSS)
			continue;
		while (nl_next(&nest, &i)) {
			int32_t mbm;

			switch (i.type) {
			case NL80211_BSS_BSSID:
				row->bssid = nl_mac(&i);
				has_bssid = i.len >= 6;
				break;
			case NL80211_BSS_FREQUENCY: row->frequency_mhz = nl_u32(&i) > UINT16_MAX ? 0 : (uint16_t)nl_u32(&i); break;
			case NL80211_BSS_SIGNAL_MBM:
				mbm = (int32_t)nl_u32(&i) / 100;
				row->signal_dbm = (int8_t)(mbm < INT8_MIN ? INT8_MIN : mbm > INT8_MAX ? INT8_MAX : mbm);
				break;
			case NL80211_BSS_SEEN_MS_AGO: row->age_ms = nl_u32(&i); break;
			case NL80211_BSS_STATUS: *own = true; break;
			case NL80211_BSS_BEACON_IES: ies = i; break; /* fresher load than a probe response's */
			case NL80211_BSS_INFORMATION_ELEMENTS:
				if (!ies.data)
					ies = i;
				break;
			default: break;
			}
		}
	}
	if (ies.data)
		parse_load(ies.data, ies.len, row);
	return has_bssid;
}
