/* nl80211_tids.h: what nl80211 says of a station's traffic identifiers (TIDs), summed by access category. Pure.
 * Source: the kernel's include/uapi/linux/nl80211.h; counters as net/mac80211/sta_info.c fills them. */
#ifndef OAL_NL80211_TIDS_H
#define OAL_NL80211_TIDS_H

#include "netlink/nl_attr.h"
#include "oal_schema.h"

#include <stdint.h>

enum {
	NL80211_ACS = 4,
	NL80211_TIDS = 17, /* 16, and one for frames without QoS */
	NL80211_TID_RAW = 3072, /* bytes: the kernel's nest of 17 TIDs takes 2,380 to 2,660 */
};

struct nl80211_txq {
	uint32_t backlog_bytes, backlog_pkts, flows, drops, ecn_marks, overlimit, collisions, tx_bytes, tx_pkts;
};

struct nl80211_tid {
	uint64_t msdu_pkts, msdu_retries, msdu_failed;
	struct nl80211_txq txq;
	uint32_t seen; /* columns of which the driver says something, as bits of a row's `absent`; after the counters */
};

/* The categories of a station, with what it takes to parse only what changed. The rows' `mac`, `device` and `ac` are
 * the caller's. */
struct nl80211_acs {
	struct oal_station_ac_row row[NL80211_ACS];
	uint8_t used; /* bit a: the category ever had something to report */
	uint8_t changed; /* bit a: it differs from the parse before */
	uint16_t raw_len, hot_at, hot_len; /* where the TID stands that changed alone last time */
	uint8_t raw[NL80211_TID_RAW] __attribute__((aligned(4))); /* TID nest as last seen */
	struct nl80211_tid tids[NL80211_TIDS];
};

/* Brings the categories up to date from NL80211_STA_INFO_TID_STATS. */
void nl80211_parse_tids(struct nl80211_acs *, const struct nl_attr *nest);
/* Returns the columns that were there, as bits of a station_ac row's `absent`. */
uint32_t nl80211_parse_txq(const struct nl_attr *nest, struct nl80211_txq *);

#endif
