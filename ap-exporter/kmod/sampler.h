/* SPDX-License-Identifier: GPL-2.0-only */
/* sampler.h: the module's own parts. One struct sampler for each file that was opened and started. */
#ifndef SAMPLER_H
#define SAMPLER_H

#include <linux/bitmap.h>
#include <linux/hrtimer.h>
#include <linux/netdevice.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <net/mac80211.h>

#include "oal_sampler.h"

#define BUCKETS 256 /* of stations by address: two in each at the most that there can be */

/* What is known of a station between ticks. */
struct slot {
	u8 mac[ETH_ALEN];
	bool used, active;
	bool read; /* its counters were, at least once */
	u16 next; /* index + 1 of the next in its bucket; 0: none */
	u32 seen; /* tick */
	u32 traffic; /* tick of the last traffic */
	u32 pkts; /* sent and received, as last read */
	u32 bytes[OAL_SAMPLER_ACS], frames[OAL_SAMPLER_ACS]; /* in its queues, as in its last record */
};

struct sampler {
	struct oal_sampler_start want;
	struct net *net;
	void *area; /* what is mapped */
	size_t area_bytes;
	struct oal_sampler_header *header;
	struct oal_sampler_reader *reader;
	u8 *ring;

	const struct net_device_ops *ops; /* of the interface, known to be mac80211's */
	struct hrtimer timer;
	struct work_struct work; /* reads counters */
	struct station_info *info; /* of the one that is read */

	spinlock_t lock; /* guards what follows; taken in softirq too */
	u32 head, lost;
	u32 tick, missed, state;
	u32 active_at, idle_at; /* ticks at which counters are due */
	u32 look_at, looks; /* … stations are looked at: each, unless the reader is slowed down; how often they were */
	u32 active_interval, idle_interval; /* ticks, as the reader wants them, within bounds */
	bool reading; /* the worker has what is due */
	u64 rest_until; /* ns: before, nothing is due: the worker may take half of a processor's time */
	u32 kept_up; /* the last tick at which half of the ring was free */
	u32 wanted; /* of the reader's, as far as looked at */
	u32 used, seen, refused;
	u64 tick_ns, counters_ns; /* time taken */
	u16 bucket[BUCKETS]; /* index + 1 of the first slot */
	u16 free; /* index + 1 of the first free slot, linked by next */
	unsigned long *due; /* slots whose counters are to be read */
	struct slot slots[]; /* want.max_stations */
};

/* --- ring.c; under the lock */
/* Bytes of the ring that may be written. */
u32 ring_room(const struct sampler *s);
void ring_put(struct sampler *s, struct oal_sampler_record *r, enum oal_sampler_kind kind, size_t bytes);
/* Writes counts, state and tick where the reader sees them. */
void ring_publish(struct sampler *s);

/* --- stations.c; under the lock */
void stations_init(struct sampler *s);
struct slot *stations_find(struct sampler *s, const u8 *mac);
struct slot *stations_add(struct sampler *s, const u8 *mac);
/* Those that this tick did not see have left. */
void stations_sweep(struct sampler *s);

/* --- tick.c, counters.c */
/* Is it an interface of mac80211? A driver that is its own MAC has no stations here. Under rcu_read_lock(). */
bool tick_is_mac80211(const struct net_device *dev);
enum hrtimer_restart tick_begin(struct hrtimer *timer);
void counters_work(struct work_struct *work);

#endif
