/* control.h: the control law of one access point. In: what is known of its flows and stations, and the prediction.
 * Out: receive windows of flows; or, of a law about stations (control_marks.c), marks.
 *
 * Pure: no clock, no system call, integers only, nothing allocated after control_new(). One call of control_step()
 * every policy.step_us. What is controlled is data that goes down; by a law of uploads (law.h), data that goes up: then
 * what is said here of the client's ACKs and windows is the server's. "Window" here always means a TCP receive window.
 *
 * A step:
 *   1. Rates r_i and unacknowledged bytes of each flow, smoothed. Their quotient is the round trip on the air (Little's
 *      law); what of it exceeds the smallest one of late is time spent in a queue, q_i. Where the kernel shows a
 *      backlog, q_i is at least the time that the backlog takes. While its station sends data of its own, ACKs wait
 *      there, and q_i is the time of the backlog alone.
 *   2. Capacity C: the sum of the rates while there is a queue; while there is none, the last such sum, for a limited
 *      time.
 *   3. Shares x_i of C by alpha-fairness (fair.h). A byte costs the airtime of its station. Flows that could not use
 *      more keep what they use.
 *   4. Act? The predicted class, its probability or the queue say so. Clamps stay while they bind.
 *   5. Window. It begins as w_i = cwnd_i * x_i / r_i. cwnd_i is what the sender would need for r_i with the wait that
 *      is wanted, T, in place of the present one: r_i * (round trip to the server + smallest on the air + T), or the
 *      window model's figure less the queue's excess. From there it follows the wait: it grows while q_i < T and its
 *      window binds, and shrinks while q_i > T, by at most policy.probe_permille a round trip and by little near T; and
 *      it drifts towards x_i. With policy.link_follow_permille it is also scaled, in the step in which it shows, by the
 *      change of its station's PHY rate. T is at least policy.target_us, and long enough for each station to have
 *      something to send when its turn comes. A sender that leaves part of its window unused gets more of it.
 *   6. Guard: if the queue runs empty although clamps bind, throughput stays below what it was, and less of the air is
 *      used, all clamps are taken back. If throughput then rises, they stay away for a while, twice as long each time;
 *      else they may come back, since they were not the cause. */
#ifndef OAL_CONTROL_H
#define OAL_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "oal_policy.h"

enum {
	CONTROL_NO_STATION = 0xffff, /* in place of an index: the flow's station is not known */
	CONTROL_NO_CLASS = 255, /* in place of a class: there is no prediction */
};

/* A flow with data on its way down, or up. Counters are running totals. */
struct control_flow {
	uint64_t id; /* not 0 */
	uint64_t delivered_bytes; /* acknowledged by the client; on the way up: by the server, and so on */
	uint32_t unacked_bytes; /* seen by the AP and not acknowledged */
	/* Smoothed, AP to client and back, AP to server and back, whichever way data goes; 0: not known. */
	uint32_t rtt_down_us, rtt_up_us;
	uint32_t model_cwnd_bytes; /* what the window model says; 0: nothing */
	uint16_t place; /* 0 … max_flows - 1: another id at the same place is another flow */
	uint16_t station; /* index into the stations, or CONTROL_NO_STATION */
	uint16_t mss_bytes;
	uint16_t server_port;
	uint32_t announced_bytes; /* the client's window as its ACKs carry it to this AP; 0: not known */
	uint8_t scale; /* of the client's windows */
	bool can_clamp; /* the client's window scale is known, and its packets pass where windows are lowered */
};

struct control_station {
	uint64_t mac;
	uint64_t airtime_us; /* transmitted to it; 0 where the driver does not say */
	uint64_t rx_bytes; /* received from it; 0 where the driver does not say */
	uint64_t tx_bytes; /* sent to it, TCP or not; 0 where the driver does not say */
	uint32_t link_kbps; /* PHY rate of what was sent to it last; 0 where the driver does not say */
	uint32_t backlog_bytes; /* of its own queues */
	bool own_queues; /* it has some, and the kernel says what stands in them */
	bool bypassed; /* its packets pass the port by, and what is done there */
	uint16_t place; /* 0 … max_stations - 1 */
};

struct control_input {
	uint64_t t_us; /* monotonic or realtime; steps back restart the law */
	uint64_t predicted_us; /* when the prediction was made; 0: there is none */
	uint8_t class; /* predicted: 0 Good … 3 Bad */
	uint16_t congested_permille; /* probability of Poor or Bad */
	bool shadow; /* windows are not set: throughput says nothing about them, and the guard rests */
	uint32_t backlog_bytes; /* of a queue that all stations share; 0 where each has its own */
	const struct control_station *stations;
	unsigned n_stations;
	const struct control_flow *flows;
	unsigned n_flows;
};

/* What to do with one flow, or one station: then id and mac are its address, and window_bytes is 0. */
struct control_action {
	uint64_t id, mac; /* mac: of its station; 0: not known */
	uint16_t place;
	uint8_t reason; /* enum oal_rewrite_reason */
	bool report; /* worth a row: new, given up, or changed by more than an eighth since the last row */
	bool row_only; /* nothing is to be done: that it was, is told now */
	uint8_t marks; /* of a station: MARK_… of mark/mark.h; 0: release */
	uint32_t window_bytes; /* of a flow; 0: release */
	uint32_t capacity_kbps, share_kbps; /* shares are weighted by airtime: one may be above the capacity */
	uint32_t rate_kbps, cwnd_bytes, queue_us;
};

struct control_stats {
	uint64_t steps, guard_reverts;
	uint32_t clamps; /* now: flows with a window, or stations with marks */
	uint32_t capacity_kbps, queue_us, target_us; /* now */
	uint64_t guarded_until_us; /* 0: no */
};

struct control;
struct law_ops;

/* 0, -EINVAL for limits out of 1…4096, -ENOMEM. */
int control_new(struct control **, unsigned max_flows, unsigned max_stations);
void control_free(struct control *);

/* The law's numbers from now on; what was learnt of flows stays. Copied. */
void control_policy(struct control *, const struct oal_policy *);
/* The law from now on (law_fair_window at first). Clamps of another law must be released before: control_release_all().
 * What was learnt of flows stays. `values`: those of `direct`, copied. */
void control_law(struct control *, const struct law_ops *, const int64_t *values, unsigned n_values);
/* One step: its actions are valid until the next call. Sets are repeated in time for policy.ttl_us. */
unsigned control_step(struct control *, const struct control_input *, const struct control_action **);
/* Gives every clamp up, with this reason. */
unsigned control_release_all(struct control *, enum oal_rewrite_reason, const struct control_action **);
void control_stats(const struct control *, struct control_stats *);

#endif
