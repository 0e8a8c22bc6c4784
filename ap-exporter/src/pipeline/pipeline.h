/* pipeline.h: the data path of one AP: rows and packets in, batches and feature vectors out.
 *
 * Single-threaded. Nothing is allocated after pipeline_new(), nothing is logged: what goes wrong is counted in
 * pipeline_stats. Times are realtime microseconds since 1970 and come from the caller.
 *
 * Order of calls in one tick (packets first: those of the time before the tick are then in the tracker when it counts):
 *     pipeline_frame() for every packet that the ring holds
 *     pipeline_tick()
 *     pipeline_account(), pipeline_station_addr()      as there is news
 *     pipeline_row() / pipeline_gone()                 for everything sampled at this tick
 *
 * Batches cover [t0, t0 + batch_ticks * tick). Those of an interval (samples, packets, and events if there were
 * any) leave together settle_ticks after its end, and a decision is made settle_ticks after its instant, because the
 * kernel hands out a block of packets with a delay. Due times are multiples of tick_us.
 */
#ifndef OAL_PIPELINE_H
#define OAL_PIPELINE_H

#include <stddef.h>
#include <stdint.h>

/* The parts of the interface: what comes in, and what can be asked. */
#include "pipeline/flow_rows.h"
#include "pipeline/known.h"
#include "pipeline/packets.h"
#include "pipeline/pipeline_config.h"
#include "pipeline/pipeline_stats.h"
#include "pipeline/programs.h"
#include "pipeline/rows.h"
#include "pipeline/senders.h"

/* Returns 0 or a negative errno: -EINVAL for a setting out of bounds, -ENOMEM. */
int pipeline_new(struct pipeline **, const struct pipeline_config *);
void pipeline_free(struct pipeline *);

/* Interns a device's, kind's or version's name (at most 31 bytes are kept); rows hold the result. Never fails: when the
 * table of 64 names is full it returns the index of the name "?" and counts. */
uint16_t pipeline_name(struct pipeline *, const char *name);
/* The name behind an index, "?" for an index unknown. */
const char *pipeline_name_of(const struct pipeline *, uint16_t index);

/* Begins the tick that was due at `due_us`. `missed_before` ticks went by unsampled since the last call. `late_us`: how
 * long after `due_us` it started. A due time before the last one means that the clock was stepped back: the batch is
 * closed early and feature state restarts. */
void pipeline_tick(struct pipeline *, uint64_t due_us, uint32_t missed_before, uint32_t late_us);

/* Ticks until the one at which the next decision is made; at least 1. */
uint32_t pipeline_until_decision(const struct pipeline *);

/* Of a routed AP: this address (4 or 16 bytes), as the kernel's ARP and NDP entries have it, is that of the station
 * `mac`; mac 0 removes it. */
void pipeline_station_addr(struct pipeline *, const uint8_t *ip, int ip_len, uint64_t mac);
/* News for the headers: ring drops and interrupted dumps since the last call, state of the clock now. */
void pipeline_account(struct pipeline *, uint32_t ring_drops, uint32_t dumps_interrupted, uint8_t clock_state,
                      uint32_t clock_error_us);

void pipeline_stats(const struct pipeline *, struct pipeline_stats *);
/* Packets skipped, by the reasons of packet.h: `counts` has PACKET_N_REASONS entries. */
const uint64_t *pipeline_skipped(const struct pipeline *);
void pipeline_stats_reset_max(struct pipeline *);
/* Closes everything early: settles all packets and emits what is open. For shutdown. */
void pipeline_flush(struct pipeline *);

#endif
