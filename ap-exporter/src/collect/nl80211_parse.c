#include "collect/nl80211_parse.h"

#include "netlink/nl_attr.h"

#include <linux/nl80211.h>

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
			case NL80211_SURVEY_INFO_FREQUENCY:
				row->frequency_mhz = nl_u32(&i) > UINT16_MAX ? 0 : (uint16_t)nl_u32(&i);
				break;
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
			nl80211_parse_txq(&a, &i->txq);
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

	*row = (struct oal_beacon_row){ .absent = OAL_BEACON_ABSENT_LOAD_STATIONS |
						  OAL_BEACON_ABSENT_LOAD_UTILIZATION };
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
			case NL80211_BSS_FREQUENCY:
				row->frequency_mhz = nl_u32(&i) > UINT16_MAX ? 0 : (uint16_t)nl_u32(&i);
				break;
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
