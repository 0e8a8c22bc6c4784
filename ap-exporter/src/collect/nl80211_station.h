/* nl80211_station.h: nl80211's answer about a station as rows of the contract. Pure: buffers in, rows out; a buffer may
 * be cut off or wrong anywhere. Source: the kernel's include/uapi/linux/nl80211.h; counters as net/mac80211/sta_info.c
 * fills them. */
#ifndef OAL_NL80211_STATION_H
#define OAL_NL80211_STATION_H

#include "collect/nl80211_tids.h"
#include "netlink/nl_attr.h"
#include "oal_schema.h"

#include <stdbool.h>
#include <stdint.h>

enum { NL80211_RATE_RAW = 64 }; /* bytes of a rate's nest: the kernel's take up to 48 */

struct nl80211_rate {
	uint8_t raw[NL80211_RATE_RAW]; /* as last seen: an unchanged one is not parsed */
	uint8_t raw_len;
	uint8_t mcs, nss;
	uint16_t width_mhz, gi_ns;
	uint32_t kbps;
};

/* The attributes that become columns; those of 64 bits first. */
enum nl80211_field {
	NL80211_F_RX_BYTES,
	NL80211_F_TX_BYTES,
	NL80211_F_RX_DROP_MISC,
	NL80211_F_TX_AIRTIME,
	NL80211_F_RX_AIRTIME,
	NL80211_F_64,
	NL80211_F_INACTIVE = NL80211_F_64,
	NL80211_F_RX_BYTES32,
	NL80211_F_TX_BYTES32,
	NL80211_F_RX_PKTS,
	NL80211_F_TX_PKTS,
	NL80211_F_TX_RETRIES,
	NL80211_F_TX_FAILED,
	NL80211_F_BEACON_LOSS,
	NL80211_F_EXPECTED,
	NL80211_F_32,
	NL80211_F_WEIGHT = NL80211_F_32,
	NL80211_F_16,
	NL80211_F_SIGNAL = NL80211_F_16,
	NL80211_F_SIGNAL_AVG,
	NL80211_F_ACK_SIGNAL,
	NL80211_F_8,
	NL80211_F_TX_RATE = NL80211_F_8,
	NL80211_F_RX_RATE,
	NL80211_F_TIDS,
	NL80211_FIELDS
};

/*
 * Where the attributes of a station stand. A driver reports the same ones in the same order every time: while all their
 * headers are where they were, values are read in place.
 */
enum { NL80211_LAYOUT_MAX = 48 }; /* attributes: more than any kernel reports */
struct nl80211_layout {
	uint16_t n;                   /* attributes; 0: not known */
	uint16_t len;                 /* of the whole */
	uint32_t absent;              /* columns that are not in it, as in a row */
	uint16_t at[NL80211_FIELDS];  /* offset of the payload, 0: absent; the TIDs' nest and the rates' included */
	struct {
		uint32_t offset, head; /* length and type as they stand there */
	} attrs[NL80211_LAYOUT_MAX];
};

/* A station, with what it takes to parse only what changed. `mac` and `device` of all rows are the caller's. */
struct nl80211_station {
	struct oal_station_row row;
	struct nl80211_layout layout;
	struct nl80211_acs acs;
	struct nl80211_rate tx_rate, rx_rate;
};

/* Address, interface and NL80211_ATTR_STA_INFO of a station message (the bytes after genlmsghdr). False: not a station.
 */
bool nl80211_find_station(const uint8_t *attrs, uint32_t len, uint64_t *mac, struct nl_attr *info);
/* Brings `s` up to date from NL80211_ATTR_STA_INFO. */
void nl80211_parse_station(struct nl80211_station *s, const struct nl_attr *info);

#endif
