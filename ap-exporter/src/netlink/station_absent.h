/* station_absent.h: which columns of a station's rows its driver says nothing of. One list for nl80211 and for the
 * kernel module, which both tell it in cfg80211's words. */
#ifndef OAL_STATION_ABSENT_H
#define OAL_STATION_ABSENT_H

#include "oal_schema.h"

#include <stdint.h>

/* `has`: bits of enum nl80211_sta_info that there are. Returns the bits of a station row's `absent`. */
uint32_t station_absent(uint64_t has);

/* Of a category's queue, which is told as a whole by mac80211: bits of a station_ac row's `absent`. */
#define STATION_AC_TXQ                                                                          \
	(OAL_STATION_AC_ABSENT_BACKLOG_BYTES | OAL_STATION_AC_ABSENT_BACKLOG_PKTS |             \
	 OAL_STATION_AC_ABSENT_FLOWS | OAL_STATION_AC_ABSENT_DROPS |                            \
	 OAL_STATION_AC_ABSENT_ECN_MARKS | OAL_STATION_AC_ABSENT_OVERLIMIT |                    \
	 OAL_STATION_AC_ABSENT_COLLISIONS | OAL_STATION_AC_ABSENT_TX_BYTES |                    \
	 OAL_STATION_AC_ABSENT_TX_PKTS)
/* All that a driver may leave out. */
#define STATION_AC_OPTIONAL                                                                     \
	(STATION_AC_TXQ | OAL_STATION_AC_ABSENT_MSDU_PKTS | OAL_STATION_AC_ABSENT_MSDU_RETRIES | \
	 OAL_STATION_AC_ABSENT_MSDU_FAILED)

#endif
