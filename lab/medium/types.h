/* SPDX-License-Identifier: GPL-2.0 */
/*
 * types.h - the state of the shared medium: one per channel, four EDCA functions per radio, a link table for all.
 */
#ifndef MEDIUM_TYPES_H
#define MEDIUM_TYPES_H
#include "timing.h"

static bool medium_on;
module_param_named(medium, medium_on, bool, 0444);
MODULE_PARM_DESC(medium, "Radios on one channel share a timed medium (0: stock hwsim, instant and lossless)");
static int medium_qdisc_radios;
module_param(medium_qdisc_radios, int, 0444);
MODULE_PARM_DESC(medium_qdisc_radios, "The first N radios have no TXQs: their frames queue in the interface's qdisc");
static int medium_seed = 1;
module_param(medium_seed, int, 0444);
MODULE_PARM_DESC(medium_seed, "Seed of backoff, loss and signal: same seed and same traffic, same run");
static int medium_retries = 7;
module_param(medium_retries, int, 0644);
MODULE_PARM_DESC(medium_retries, "Attempts after the first before an MPDU is given up (at most 30)");
static int medium_ampdu_us = 4000;
module_param(medium_ampdu_us, int, 0644);
MODULE_PARM_DESC(medium_ampdu_us, "Longest A-MPDU in microseconds of air (802.11 allows 5484)");
static int medium_ampdu_bytes = 65535;
module_param(medium_ampdu_bytes, int, 0644);
static int medium_ampdu_frames = 64;
module_param(medium_ampdu_frames, int, 0644);
MODULE_PARM_DESC(medium_ampdu_frames, "Most MPDUs in an A-MPDU: the block-ACK window, 64");
static int medium_rts_us = 1000;
module_param(medium_rts_us, int, 0644);
MODULE_PARM_DESC(medium_rts_us, "PPDUs longer than this are protected by RTS/CTS");
static int medium_fifo = 64;
module_param(medium_fifo, int, 0644);
MODULE_PARM_DESC(medium_fifo, "Frames a qdisc-mode radio holds per access category before it stops the queue");
static int medium_lower_permille = 100;
module_param(medium_lower_permille, int, 0644);
MODULE_PARM_DESC(medium_lower_permille, "Share of PPDUs sent one MCS lower, as rate control does when it samples");
static int medium_jitter_db = 2;
module_param(medium_jitter_db, int, 0644);
MODULE_PARM_DESC(medium_jitter_db, "A frame's signal lies within this many dB of its link's");

#define MEDIUM_CHANNELS	4
#define MEDIUM_LINKS	64

enum medium_state {
	MEDIUM_IDLE,		/* nobody has anything to send */
	MEDIUM_BACKOFF,		/* idle, somebody counts down; the timer is set to the first transmission */
	MEDIUM_BUILD,		/* winners are filling their PPDUs */
	MEDIUM_BUSY,		/* on the air until the timer fires */
};

/* one channel; times are CLOCK_MONOTONIC ns */
struct medium {
	u32 freq_mhz;
	enum medium_state state;
	spinlock_t lock;
	struct hrtimer timer;
	struct list_head contend;	/* medium_ac.node of those that count down */
	struct list_head on_air;	/* medium_ac.node of those transmitting */
	u64 idle_since_ns, due_ns, busy_since_ns;
	u64 extra_ns;			/* beacons that came due while busy */
	u32 foreign_permille, foreign_burst_us, foreign_ext_permille;
	u64 foreign_at_ns, foreign_len_ns;
	s32 noise_dbm;
	/* totals */
	u64 busy_ns, foreign_ns, ext_ns, beacon_ns, collision_ns, success_ns;
	u64 txops, collisions, internal_collisions, mpdus, mpdus_lost, mpdus_failed, bytes;
};

/* one access category of one radio (an EDCAF) */
struct medium_ac {
	struct list_head node;
	struct mac80211_hwsim_data *data;
	struct medium *m;		/* the channel it contends on, while it does */
	u8 ac;
	u8 aifsn;
	u16 cw, cw_min, cw_max, backoff;
	bool active, on_air, collided, rts, stopped, block_ack;
	u64 ready_ns;			/* when the countdown ends, if nothing intervenes */
	u64 ppdu_ns, exchange_ns;	/* the PPDU alone; with RTS/CTS and response */
	struct medium_rate rate;
	u16 per_permille;
	u32 frames, bytes;		/* of the PPDU */
	struct sk_buff_head fifo;	/* from .tx: management; in qdisc mode data too */
	struct sk_buff_head air;	/* the MPDUs of the PPDU */
};

struct medium_radio {
	struct medium_ac ac[IEEE80211_NUM_ACS];
	bool qdisc;
	u64 since_ns, tx_ns, rx_ns;
};

/* in txq->drv_priv; all zero at first */
struct medium_txq {
	bool ready;
	struct sk_buff_head again;	/* to be sent before what mac80211 has queued */
};

/* between an AP and the station with this address, both ways; or the signal of a beaconing BSS */
struct medium_link {
	u8 addr[ETH_ALEN];
	bool used;
	u32 rate_kbps;
	u16 per_permille;
	s8 signal_dbm;
};

static struct medium media[MEDIUM_CHANNELS];
static struct medium_link medium_links[MEDIUM_LINKS];
static struct rnd_state medium_rnd;

#endif
