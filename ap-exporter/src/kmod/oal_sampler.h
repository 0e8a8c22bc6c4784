/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* oal_sampler.h: what the kernel module oal_sampler and its reader agree on.
 *
 * The reader opens /dev/oal-sampler, says by OAL_SAMPLER_START what it wants, and maps the file from 0: a page that
 * the kernel writes, a page that the reader writes, and a ring of records that the kernel writes and the reader takes.
 * After that neither needs a system call. Numbers are in the machine's byte order. A change of anything here is a new
 * OAL_SAMPLER_VERSION: each side refuses another's. */
#ifndef OAL_SAMPLER_RECORDS_H
#define OAL_SAMPLER_RECORDS_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define OAL_SAMPLER_DEVICE "/dev/oal-sampler"
#define OAL_SAMPLER_MAGIC 0x4f414c53u
#define OAL_SAMPLER_VERSION 1

#define OAL_SAMPLER_READER_AT 4096 /* offsets in the mapping, bytes */
#define OAL_SAMPLER_RING_AT 8192
#define OAL_SAMPLER_RING_MIN (1u << 14) /* bytes; a power of two */
#define OAL_SAMPLER_RING_MAX (1u << 22)
#define OAL_SAMPLER_STATIONS_MAX 512
#define OAL_SAMPLER_ACS 4

struct oal_sampler_start {
	__u32 version, ifindex;
	__u64 first_ns; /* CLOCK_MONOTONIC of tick 0 */
	__u32 tick_ns;
	__u32 active_hold_ticks; /* without traffic, after which a station counts as idle */
	__u32 max_stations, ring_bytes;
};

/* Again on the same file: the ring is empty then, and all is told anew; for as many stations and with a ring as large
 * as before. Errors: EPROTO another version; EINVAL out of bounds, or another size than before; ENODEV no such
 * interface; EOPNOTSUPP it is not mac80211's; ENOSPC too many are open; ENOMEM. */
#define OAL_SAMPLER_START _IOW('O', 1, struct oal_sampler_start)
/* Nothing is sampled until the next start. */
#define OAL_SAMPLER_STOP _IO('O', 2)

enum oal_sampler_state {
	OAL_SAMPLER_RUNNING = 1,
	OAL_SAMPLER_DOWN = 2, /* the interface is down: no stations; it goes on when it is up again */
	OAL_SAMPLER_GONE = 3, /* the interface was removed, or went to another namespace: start anew */
};

/* The first page: the kernel's. It writes, and never reads what is here. Counts begin at 0 and wrap. */
struct oal_sampler_header {
	__u32 magic, version;
	__u32 ring_bytes;
	__u32 state;
	__u32 head; /* bytes of records written, WRAP's included */
	__u32 tick; /* the last that began */
	__u32 ticks_missed;
	__u32 records_lost; /* found no room in the ring: what the reader knows is not whole any more */
	__u32 stations, stations_refused; /* now; times that one found no place */
	__u32 tick_us, counters_us; /* time taken in the timer; by asking for counters, waits for the driver included */
	__u32 longest_us; /* the slowest request of the last round of them */
};

/* The second page: the reader's. The kernel takes nothing in it for granted. */
struct oal_sampler_reader {
	__u32 tail; /* bytes of records taken */
	__u32 active_interval_ticks, idle_interval_ticks; /* between reads of a station with traffic, and without */
	__u32 wanted; /* stations asked for; the last at wanted_mac[(wanted - 1) % 16] */
	__u8 wanted_mac[16][8]; /* their flows have packets: to be read as with traffic */
};

enum oal_sampler_kind {
	OAL_SAMPLER_WRAP = 1, /* the rest of the ring is unused: go on at its start */
	OAL_SAMPLER_STATION = 2, /* struct oal_sampler_station */
	OAL_SAMPLER_DEPTH = 3, /* struct oal_sampler_depth */
	OAL_SAMPLER_LEFT = 4, /* struct oal_sampler_left */
};

/* Every record begins with this and at a multiple of 8. */
struct oal_sampler_record {
	__u16 kind, bytes;
	__u32 tick;
};

struct oal_sampler_rate {
	__u32 kbps100; /* 100 kbit/s; 0: unknown */
	__u16 width_mhz, gi_ns;
	__u8 mcs; /* 255: none */
	__u8 nss;
	__u16 reserved;
};

enum oal_sampler_ac_has {
	OAL_SAMPLER_AC_MSDU_PKTS = 1,
	OAL_SAMPLER_AC_MSDU_RETRIES = 2,
	OAL_SAMPLER_AC_MSDU_FAILED = 4,
	OAL_SAMPLER_AC_TXQ = 8, /* backlog_bytes to tx_pkts */
};

/* Sums over the traffic identifiers of an access category: 0 voice, 1 video, 2 best effort, 3 background. */
struct oal_sampler_ac {
	__u64 msdu_pkts, msdu_retries, msdu_failed;
	__u32 backlog_bytes, backlog_pkts, flows, drops, ecn_marks, overlimit, collisions, tx_bytes, tx_pkts;
	__u32 has; /* bits of enum oal_sampler_ac_has: what of these the driver tells */
};

/* All that the driver tells about a station, as nl80211 would. */
struct oal_sampler_station {
	struct oal_sampler_record record;
	__u8 mac[6];
	__u8 active; /* it has traffic */
	__u8 acs; /* bit a: ac[] has category a, lowest first; without a bit all is 0 */
	__u64 has; /* bits of enum nl80211_sta_info: what of the following there is */
	__u64 rx_bytes, tx_bytes, rx_drop_misc, tx_airtime_us, rx_airtime_us;
	__u32 inactive_ms, rx_pkts, tx_pkts, tx_retries, tx_failed, beacon_loss, expected_throughput_kbps;
	__u16 airtime_weight, interval_ticks;
	__s8 signal_dbm, signal_avg_dbm, ack_signal_dbm;
	__u8 reserved[5];
	struct oal_sampler_rate tx_rate, rx_rate;
	struct oal_sampler_ac ac[]; /* as many as `acs` has bits */
};

/* A station's queues at a tick at which its counters are not read; only if they differ from the last record's. */
struct oal_sampler_depth {
	struct oal_sampler_record record;
	__u8 mac[8]; /* six are used */
	__u32 backlog_bytes[OAL_SAMPLER_ACS], backlog_pkts[OAL_SAMPLER_ACS];
};

struct oal_sampler_left {
	struct oal_sampler_record record;
	__u8 mac[8]; /* six are used */
};

#endif
