// SPDX-License-Identifier: GPL-2.0-only
/* tick.c: at each tick, in softirq: who is there, and how much waits for each. Only what mac80211 exports to drivers
 * is called, and its public structs are read, so that no kernel has to be patched, and no private layout be known.
 *
 * Under RCU: an interface that is found is not freed before the end, nor are its radio and its stations. */
#include <linux/kallsyms.h>

#include "sampler.h"

#define LATE_TICKS 250 /* a reader that is behind is waited for so long */
#define QUIET_LOOKS 8 /* the queues of a station without traffic are looked at at one look of so many */
#define SLOW_PART 4 /* where the reader wants counters so seldom, stations are looked at so often in between */
#define LOOK_MOST 25u /* ticks, all the same, from look to look: one that has left is to be told */

struct round {
	struct sampler *s;
	struct ieee80211_vif *vif;
	bool may; /* counters can be due */
	bool all, active; /* whose counters are due: of all stations; of those with traffic */
	bool depth; /* queues can be looked at */
};

bool tick_is_mac80211(const struct net_device *dev)
{
	char name[64];

	if (!dev->ieee80211_ptr || !dev->netdev_ops)
		return false;
	/* Nothing exported tells, but its function for sending has a name of its own. Without kallsyms: no. */
	snprintf(name, sizeof(name), "%ps", dev->netdev_ops->ndo_start_xmit);
	return str_has_prefix(name, "ieee80211_subif_start_xmit");
}

static struct ieee80211_vif *find_vif(struct sampler *s, struct ieee80211_hw **hw)
{
	struct net_device *dev = dev_get_by_index_rcu(s->net, s->want.ifindex);
	struct ieee80211_vif *vif;

	if (!dev || (dev->netdev_ops != s->ops && !tick_is_mac80211(dev))) {
		s->state = OAL_SAMPLER_GONE;
		return NULL;
	}
	s->ops = dev->netdev_ops; /* mac80211 has several, and changes them */
	vif = wdev_to_ieee80211_vif(dev->ieee80211_ptr);
	s->state = vif ? OAL_SAMPLER_RUNNING : OAL_SAMPLER_DOWN;
	*hw = wiphy_to_ieee80211_hw(dev->ieee80211_ptr->wiphy);
	return vif;
}

static bool belongs(const struct round *r, struct ieee80211_sta *sta)
{
	if (sta->txq[0])
		return sta->txq[0]->vif == r->vif;
	return ieee80211_find_sta(r->vif, sta->addr) == sta;
}

/* Sums over the queues of each category; that of management frames is left out, as in nl80211. True: they changed. */
static bool measure(struct slot *slot, struct ieee80211_sta *sta, bool *waits)
{
	u32 bytes[OAL_SAMPLER_ACS] = { }, frames[OAL_SAMPLER_ACS] = { };
	bool changed;
	int i;

	for (i = 0; i < IEEE80211_NUM_TIDS; i++) {
		struct ieee80211_txq *q = sta->txq[i];
		unsigned long f, b;

		if (!q || q->ac >= OAL_SAMPLER_ACS)
			continue;
		ieee80211_txq_get_depth(q, &f, &b);
		frames[q->ac] += f;
		bytes[q->ac] += b;
		*waits |= f > 0;
	}
	changed = memcmp(bytes, slot->bytes, sizeof(bytes)) || memcmp(frames, slot->frames, sizeof(frames));
	memcpy(slot->bytes, bytes, sizeof(bytes));
	memcpy(slot->frames, frames, sizeof(frames));
	return changed;
}

static void put_depth(struct sampler *s, const struct slot *slot)
{
	struct oal_sampler_depth d = { };

	memcpy(d.mac, slot->mac, ETH_ALEN);
	memcpy(d.backlog_bytes, slot->bytes, sizeof(d.backlog_bytes));
	memcpy(d.backlog_pkts, slot->frames, sizeof(d.backlog_pkts));
	ring_put(s, &d.record, OAL_SAMPLER_DEPTH, sizeof(d));
}

static void on_station(void *data, struct ieee80211_sta *sta)
{
	const struct round *r = data;
	struct sampler *s = r->s;
	bool waits = false, changed = false;
	struct slot *slot;

	if (!belongs(r, sta))
		return;
	slot = stations_find(s, sta->addr);
	if (!slot)
		slot = stations_add(s, sta->addr);
	if (!slot)
		return;
	slot->seen = s->tick;
	s->seen++;
	if (r->depth && (slot->active || (s->looks + (slot - s->slots)) % QUIET_LOOKS == 0))
		changed = measure(slot, sta, &waits);
	if (waits) {
		slot->active = true;
		slot->traffic = s->tick;
	}
	if (r->may && (!slot->read || r->all || (slot->active && r->active)))
		__set_bit(slot - s->slots, s->due);
	else if (changed)
		put_depth(s, slot);
}

/* Stations whose flows have packets, says the reader. */
static void take_wanted(struct sampler *s)
{
	const u32 last = smp_load_acquire(&s->reader->wanted); /* with the addresses before it */

	if (last - s->wanted > ARRAY_SIZE(s->reader->wanted_mac))
		s->wanted = last - ARRAY_SIZE(s->reader->wanted_mac);
	for (; s->wanted != last; s->wanted++) {
		struct slot *slot;
		u8 mac[8];

		memcpy(mac, s->reader->wanted_mac[s->wanted % ARRAY_SIZE(s->reader->wanted_mac)], sizeof(mac));
		slot = stations_find(s, mac);
		if (slot) {
			slot->active = true;
			slot->traffic = s->tick;
		}
	}
}

/* True, and the next time set, when it is time. */
static bool due(const struct sampler *s, u32 *at, u32 interval)
{
	if ((s32)(s->tick - *at) < 0)
		return false;
	*at = s->tick + interval;
	return true;
}

/* Can counters be due? Not before the worker has read what was, and has rested; nor where a reader is behind that comes
 * back: it needs the processor's time more than more of what it has no time for. */
static bool may_read(struct sampler *s)
{
	if (ring_room(s) >= s->want.ring_bytes / 2)
		s->kept_up = s->tick;
	else if (s->tick - s->kept_up < LATE_TICKS)
		return false;
	return !s->reading && ktime_get_ns() >= s->rest_until;
}

static void sample(struct sampler *s)
{
	struct round r = { .s = s };
	struct ieee80211_hw *hw;

	s->active_interval = clamp(READ_ONCE(s->reader->active_interval_ticks), 1u, 25000u);
	s->idle_interval = clamp(READ_ONCE(s->reader->idle_interval_ticks), 1u, 25000u);
	take_wanted(s);
	if (!due(s, &s->look_at, clamp(s->active_interval / SLOW_PART, 1u, LOOK_MOST)))
		return;
	s->looks++;
	r.may = may_read(s);
	r.active = r.may && due(s, &s->active_at, s->active_interval);
	r.all = r.may && due(s, &s->idle_at, s->idle_interval);
	s->seen = 0;
	rcu_read_lock();
	r.vif = find_vif(s, &hw);
	if (r.vif) {
		/* Frames of a fragmented packet stand in a list that only the driver may walk. */
		r.depth = hw->wiphy->frag_threshold == (u32)-1;
		ieee80211_iterate_stations_atomic(hw, on_station, &r);
	}
	rcu_read_unlock();
	stations_sweep(s);
	if (!bitmap_empty(s->due, s->want.max_stations)) {
		s->reading = true;
		queue_work(system_highpri_wq, &s->work);
	}
}

enum hrtimer_restart tick_begin(struct hrtimer *timer)
{
	struct sampler *s = container_of(timer, struct sampler, timer);
	const u32 ticks = hrtimer_forward_now(timer, ns_to_ktime(s->want.tick_ns));
	const u64 began = ktime_get_ns();

	spin_lock(&s->lock);
	s->tick += ticks;
	s->missed += ticks - 1;
	sample(s);
	s->tick_ns += ktime_get_ns() - began;
	ring_publish(s);
	spin_unlock(&s->lock);
	return HRTIMER_RESTART;
}
