/* survey_counters.h: the channel survey's times as counters that only grow. Pure.
 *
 * Not all drivers keep them so. mt7915 adds some 2^64 µs for good when a counter of its firmware runs back
 * (openwrt/mt76, issue 1135); ath10k's firmware clears them at each read, so that what is read is what has passed since
 * (Telecominfraproject/wlan-ap, pull request 337). A radio's time on its channel tells which it is, for it grows as
 * time does; and no other time grows by more than what has passed: what claims so is left out, and counted. */
#ifndef OAL_SURVEY_COUNTERS_H
#define OAL_SURVEY_COUNTERS_H

#include "oal_schema.h"

#include <stdbool.h>
#include <stdint.h>

enum { SURVEY_COUNTERS = 6 };

/* All zero: nothing is known. */
struct survey_counters {
	bool known;
	uint64_t raw[SURVEY_COUNTERS]; /* as last read, ms; the time on the channel first */
	uint64_t sum[SURVEY_COUNTERS]; /* as last reported, ms */
};

/* Puts into the row's times what they should be, `elapsed_ms` after the last row. Returns how many of them were left
 * out. The first row is taken as it is, unless a time in it is impossible. */
unsigned survey_counters_mend(struct survey_counters *, struct oal_channel_row *, uint64_t elapsed_ms);

#endif
