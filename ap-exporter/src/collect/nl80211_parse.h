/* nl80211_parse.h: nl80211's answers about the channel, the interface and the BSSs around, as rows of the contract.
 * Pure: buffers in, rows out; a buffer may be cut off or wrong anywhere. Source: the kernel's
 * include/uapi/linux/nl80211.h; counters as net/mac80211/sta_info.c fills them. */
#ifndef OAL_NL80211_PARSE_H
#define OAL_NL80211_PARSE_H

#include "collect/nl80211_tids.h"
#include "oal_schema.h"

#include <stdbool.h>
#include <stdint.h>

/* A survey message. False: not the channel in use. `row->device` and `row->width_mhz` are the caller's. */
bool nl80211_parse_survey(const uint8_t *attrs, uint32_t len, struct oal_channel_row *row);

struct nl80211_interface {
	uint16_t width_mhz; /* 0: no channel */
	bool has_txq;
	struct nl80211_txq txq;
};
void nl80211_parse_interface(const uint8_t *attrs, uint32_t len, struct nl80211_interface *i);

/* A scan result. False: no BSSID. `*own` is set when the interface is itself part of this BSS. `row->device` is the
 * caller's. */
bool nl80211_parse_bss(const uint8_t *attrs, uint32_t len, struct oal_beacon_row *row, bool *own);

#endif
