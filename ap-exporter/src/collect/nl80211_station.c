#include "collect/nl80211_station.h"

#include "netlink/station_absent.h"

#include <linux/nl80211.h>

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
		case NL80211_RATE_INFO_BITRATE32:
			r->kbps = nl_u32(&a) > UINT32_MAX / 100 ? UINT32_MAX : nl_u32(&a) * 100;
			break;
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
	return field < NL80211_F_64   ? 8
	       : field < NL80211_F_32 ? 4
	       : field < NL80211_F_16 ? 2
	       : field < NL80211_F_8  ? 1
				      : 0;
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
	uint64_t has = 0;

	memset(l, 0, sizeof *l);
	l->len = info->len;
	while (nl_next(&it, &a)) {
		uint32_t offset = (uint32_t)(a.data - info->data);
		int field = field_of(a.type);

		if (field >= 0 && a.len >= size_of(field)) {
			l->at[field] = (uint16_t)offset;
			has |= UINT64_C(1) << a.type;
		}
		if (l->n < NL80211_LAYOUT_MAX) {
			l->attrs[l->n].offset = offset - 4;
			l->attrs[l->n].head = load32(a.data - 4);
		}
		l->n++;
	}
	l->absent = station_absent(has);
	if (l->n > NL80211_LAYOUT_MAX)
		l->n = 0; /* more than any kernel reports: laid out anew every time */
}

static uint64_t read64(const struct nl80211_layout *l, const uint8_t *base, int field)
{
	uint64_t v = 0;

	if (l->at[field])
		memcpy(&v, base + l->at[field], sizeof v);
	return v & INT64_MAX; /* columns travel as sint64 */
}

static uint32_t read32(const struct nl80211_layout *l, const uint8_t *base, int field)
{
	return l->at[field] ? load32(base + l->at[field]) : 0;
}

static int8_t read8(const struct nl80211_layout *l, const uint8_t *base, int field)
{
	return l->at[field] ? (int8_t)base[l->at[field]] : 0;
}

/* A nest that the layout knows; its length stands before it. */
static bool read_nest(const struct nl80211_layout *l, const uint8_t *base, int field, struct nl_attr *nest)
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
	s->acs.changed = 0;
	if (read_nest(l, base, NL80211_F_TIDS, &nest))
		nl80211_parse_tids(&s->acs, &nest);
	if (read_nest(l, base, NL80211_F_TX_RATE, &nest))
		parse_rate(&s->tx_rate, &nest);
	if (read_nest(l, base, NL80211_F_RX_RATE, &nest))
		parse_rate(&s->rx_rate, &nest);
	r->absent = l->absent;
	r->rx_bytes = l->at[NL80211_F_RX_BYTES] ? read64(l, base, NL80211_F_RX_BYTES)
						: read32(l, base, NL80211_F_RX_BYTES32);
	r->tx_bytes = l->at[NL80211_F_TX_BYTES] ? read64(l, base, NL80211_F_TX_BYTES)
						: read32(l, base, NL80211_F_TX_BYTES32);
	r->rx_pkts = read32(l, base, NL80211_F_RX_PKTS);
	r->tx_pkts = read32(l, base, NL80211_F_TX_PKTS);
	r->tx_retries = read32(l, base, NL80211_F_TX_RETRIES);
	r->tx_failed = read32(l, base, NL80211_F_TX_FAILED);
	r->rx_drop_misc = read64(l, base, NL80211_F_RX_DROP_MISC);
	r->beacon_loss = read32(l, base, NL80211_F_BEACON_LOSS);
	r->signal_dbm = read8(l, base, NL80211_F_SIGNAL);
	r->signal_avg_dbm = read8(l, base, NL80211_F_SIGNAL_AVG);
	r->ack_signal_dbm = read8(l, base, NL80211_F_ACK_SIGNAL);
	r->expected_throughput_kbps = read32(l, base, NL80211_F_EXPECTED);
	r->tx_airtime_us = read64(l, base, NL80211_F_TX_AIRTIME);
	r->rx_airtime_us = read64(l, base, NL80211_F_RX_AIRTIME);
	r->inactive_ms = read32(l, base, NL80211_F_INACTIVE);
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
