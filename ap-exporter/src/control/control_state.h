/* control_state.h: the inside of control.h: what it remembers, and the parts of a step, in their order. Only control*.c
 * and the laws (law_*.c) include this. */
#ifndef OAL_CONTROL_STATE_H
#define OAL_CONTROL_STATE_H

#include "control/control.h"
#include "control/control_math.h"
#include "control/fair.h"
#include "control/guard.h"
#include "control/law.h"

enum {
	QUEUE_TAU_US = 400000, /* of what says how long the queue is: several rounds in which Wi-Fi serves everybody */
	RENEW = 3, /* an effect is set so often within its time to live: two sets in a row may be lost */
	AIR_FRACTION = 16, /* parts of a permille in which a station's share of the air is kept: shares may be small */
	FOLLOW_ONE = 1 << 16, /* 1 as a factor by which windows follow a link */
	IDLE_DIVISOR = 4, /* a backlog below this part of the wait that is wanted counts as none */
};

/* The smallest value of the last 20 to 40 seconds (BASE_US in control_measure.c). 0: none yet. */
struct smallest {
	uint32_t now, before; /* of this period, and of the one before */
	uint64_t since_us;
};

struct flow_state {
	uint64_t id; /* 0: the place is free */
	uint64_t step; /* number of the step that last saw it */
	uint64_t delivered_bytes, first_us;
	uint32_t rate_kbps, recent_kbps, unacked_bytes; /* smoothed: over RATE_TAU_US; the others over QUEUE_TAU_US */
	uint32_t queue_us;
	uint32_t fill_permille; /* of its window that is under way, smoothed over FILL_TAU_US */
	uint32_t window_bytes, reported_bytes; /* set, and last reported; 0: not clamped */
	uint64_t exact_bytes; /* what the law says, of which window_bytes is the last that was set */
	uint32_t owed; /* in FOLLOW_ONE, of a fall of the link that the floor kept from it: rises first repay it */
	uint64_t set_us, mac;
	uint16_t place;
};

struct station_state {
	uint64_t mac; /* 0: free */
	uint64_t step, airtime_us, rx_bytes;
	uint32_t airtime; /* share of the air, smoothed, in permille times AIR_FRACTION */
	uint32_t rate_kbps, recent_kbps; /* sums of its flows' */
	uint32_t sent_kbps; /* by the station, smoothed over QUEUE_TAU_US */
	uint32_t link_kbps; /* PHY rate, smoothed over LINK_TAU_US; 0: not known, or not followed */
	uint32_t follow; /* by this factor, in FOLLOW_ONE, windows follow the link in this step */
	uint32_t backlog_bytes; /* of its own queues, smoothed over QUEUE_TAU_US */
	bool own_queues;
	uint64_t tx_bytes;
	uint32_t tx_kbps; /* sent to it, whatever it is, smoothed over QUEUE_TAU_US */
	/* Of the law backlog_cap: flows of this step, and what the table says, in segments; 0: not worked out yet. */
	uint32_t n_flows, cap_pkts;
	/* Of a law about stations (control_marks.c). */
	uint32_t fast_bytes; /* its backlog, smoothed over MARK_TAU_US */
	uint32_t wait_us, fast_us; /* time that its queue takes: by the backlog over QUEUE_TAU_US, over MARK_TAU_US */
	uint8_t marks; /* set; 0: none */
	bool told; /* a row says that it is marked */
	uint64_t set_us, marked_us; /* the last set; when it was last to be marked */
	uint16_t place;
};

/* The largest value of the last 5 to 10 seconds (MOST_US in law_backlog_cap.c). */
struct largest {
	uint32_t now, before;
	uint64_t since_us;
};

/* A flow of this step. */
struct active {
	const struct control_flow *in;
	struct flow_state *s;
	uint32_t base_us, flight_bytes; /* round trip without a wait; what is under way */
	uint32_t table_pkts; /* backlog_cap's: this flow's part of its station's cap, in segments */
	bool eligible, binds;
	bool exceeds; /* more is under way than the window allows: the clamp has yet to take effect */
	bool starves; /* its queue is all but empty because of the window: the station could be sent more */
};

struct control {
	struct oal_policy policy;
	unsigned max_flows, max_stations;
	uint64_t t_us, step;
	struct smallest base_down; /* of all flows: one that begins in a queue never saw the smallest of its own */
	uint32_t tx_kbps; /* sent to all stations, whatever it is */
	/* Capacity: of the last step that had a queue. In cost units, and plain. */
	uint64_t capacity_us;
	uint32_t capacity_cost_kbps, capacity_kbps, rate_kbps, queue_us, turn_us, target_us, share_permille;
	/* Acting. */
	bool acting;
	bool shadow; /* nobody obeys: windows are told, not set */
	uint64_t acting_since_us, reason_us;
	uint8_t reason;
	uint32_t backlog_us; /* time that all that stands in queues takes, smoothed */
	uint32_t shared_bytes, shared_fast_bytes; /* law about stations: of the shared queue, smoothed as a station's */
	struct guard guard;
	/* The law, and what is its own. */
	const struct law_ops *law;
	uint32_t values[LAW_VALUES], value_bytes; /* direct's: one a class; the one in force */
	struct largest delivered; /* backlog_cap's: of all uploads together, kbit/s */
	uint64_t capped_us; /* when its table was last looked at */
	struct control_stats stats;
	struct flow_state *flows;
	struct station_state *stations;
	struct active *active;
	struct fair_flow *fair;
	struct control_action *actions;
	unsigned n_actions;
};

/* The station at this index of the input; NULL for CONTROL_NO_STATION. */
static inline struct station_state *station_of(struct control *c, const struct control_input *in, uint16_t index)
{
	return index < in->n_stations ? &c->stations[in->stations[index].place] : NULL;
}

/* 1. What is known (control_measure.c). Returns how many flows are active. `dt_us`: since the step before; 0 after a
 * restart. */
unsigned control_measure(struct control *, const struct control_input *, uint64_t dt_us);
bool control_any_binds(const struct control *, unsigned n_active);
/* 2. The law says why to act, and which window each flow should have (law.h).
 * 3. Act? (control.c)   4. The guard (guard.h).
 * 5. The actions of this step (control_windows.c): floor, renewal, what is worth a row. */
void control_windows(struct control *, const struct control_input *, unsigned n_active, uint64_t dt_us);
/* Gives up one flow's clamp, if it has one. */
void control_release(struct control *, struct flow_state *, uint8_t reason);
/* The same of a law about stations (control_marks.c): what is sent to them, then their marks. */
void control_measure_stations(struct control *, const struct control_input *, uint64_t dt_us);
void control_marks(struct control *, const struct control_input *, unsigned n_active);
/* No station that is there now, or only this one, has marks any more. */
void control_release_stations(struct control *, uint8_t reason);
void control_release_station(struct control *, struct station_state *, uint8_t reason);
bool control_any_marked(const struct control *);
/* Is the prediction young enough to be a reason? */
static inline bool control_is_fresh(const struct control *c, const struct control_input *in)
{
	return in->predicted_us && in->t_us - in->predicted_us <= c->policy.prediction_age_us;
}

#endif
