/*
 * nl80211's answers as rows of the contract. Pure: buffers in, rows out; a buffer may be cut off or wrong anywhere.
 * Source: the kernel's include/uapi/linux/nl80211.h; counters as net/mac80211/sta_info.c fills them.
 */
#ifndef OAL_NL80211_PARSE_H
#define OAL_NL80211_PARSE_H

#include "collect/nl_attr.h"
#include "oal_schema.h"

#include <stdbool.h>
#include <stdint.h>

#define NL80211_ACS 4
#define NL80211_TIDS 17       /* 16, and one for frames without QoS */
#define NL80211_TID_RAW 3072  /* the kernel's nest of 17 TIDs takes 2,380 to 2,660 bytes */
#define NL80211_RATE_RAW 64

struct nl80211_txq {
	uint32_t backlog_bytes, backlog_pkts, flows, drops, ecn_marks, overlimit, collisions, tx_bytes, tx_pkts;
};

struct nl80211_tid {
	uint64_t msdu_pkts, msdu_retries, msdu_failed;
	struct nl80211_txq txq;
};

struct nl80211_rate {
	uint8_t raw[NL80211_RATE_RAW]; /* as last seen: an unchanged one is not parsed */
	uint8_t raw_len;
	uint8_t mcs, nss;
	uint16_t width_mhz, gi_ns;
	uint32_t kbps;
};

/* The attributes that become columns; those of 64 bits first. */
enum nl80211_field {
	NL80211_F_RX_BYTES, NL80211_F_TX_BYTES, NL80211_F_RX_DROP_MISC, NL80211_F_TX_AIRTIME, NL80211_F_RX_AIRTIME, NL80211_F_64,
	NL80211_F_INACTIVE = NL80211_F_64, NL80211_F_RX_BYTES32, NL80211_F_TX_BYTES32, NL80211_F_RX_PKTS, NL80211_F_TX_PKTS,
	NL80211_F_TX_RETRIES, NL80211_F_TX_FAILED, NL80211_F_BEACON_LOSS, NL80211_F_EXPECTED, NL80211_F_32,
	NL80211_F_WEIGHT = NL80211_F_32, NL80211_F_16,
	NL80211_F_SIGNAL = NL80211_F_16, NL80211_F_SIGNAL_AVG, NL80211_F_ACK_SIGNAL, NL80211_F_8,
	NL80211_F_TX_RATE = NL80211_F_8, NL80211_F_RX_RATE, NL80211_F_TIDS, NL80211_FIELDS
};

/*
 * Where the attributes of a station stand. A driver reports the same ones in the same order every time: while all their
 * headers are where they were, values are read in place.
 */
#define NL80211_LAYOUT_MAX 48
struct nl80211_layout {
	uint16_t n;                   /* attributes; 0: not known */
	uint16_t len;                 /* of the whole */
	uint16_t at[NL80211_FIELDS];  /* offset of the payload, 0: absent; the TIDs' nest and the rates' included */
	struct {
		uint32_t offset, head; /* length and type as they stand there */
	} attrs[NL80211_LAYOUT_MAX];
};

/* A station, with what it takes to parse only what changed. `row.mac` and `row.device` are the caller's. */
struct nl80211_station {
	struct oal_station_row row;
	struct nl80211_layout layout;
	struct oal_station_ac_row ac[NL80211_ACS];
	uint8_t ac_used;    /* bit a: the category ever had something to report */
	uint8_t ac_changed; /* bit a: it differs from the parse before */
	uint16_t raw_len, hot_at, hot_len; /* where the TID stands that changed alone last time */
	uint8_t raw[NL80211_TID_RAW];      /* TID nest as last seen */
	struct nl80211_tid tids[NL80211_TIDS];
	struct nl80211_rate tx_rate, rx_rate;
};

/* Address, interface and NL80211_ATTR_STA_INFO of a station message (the bytes after genlmsghdr). False: not a station. */
bool nl80211_find_station(const uint8_t *attrs, uint32_t len, uint64_t *mac, struct nl_attr *info);
/* Brings `s` up to date from NL80211_ATTR_STA_INFO. */
void nl80211_parse_station(struct nl80211_station *s, const struct nl_attr *info);

/* A survey message. False: not the channel in use. `row->device` and `row->width_mhz` are the caller's. */
bool nl80211_parse_survey(const uint8_t *attrs, uint32_t len, struct oal_channel_row *row);

struct nl80211_interface {
	uint16_t width_mhz; /* 0: no channel */
	bool has_txq;
	struct nl80211_txq txq;
};
void nl80211_parse_interface(const uint8_t *attrs, uint32_t len, struct nl80211_interface *i);

/* A scan result. False: no BSSID. `*own` is set when the interface is itself part of this BSS. `row->device` is the caller's. */
bool nl80211_parse_bss(const uint8_t *attrs, uint32_t len, struct oal_beacon_row *row, bool *own);

#endif
