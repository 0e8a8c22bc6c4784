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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "oal_features.h"
#include "oal_schema.h"

struct feature_slot;
struct feature_space;
struct feature_vector;
struct packet;
struct pipeline;

/* A finished batch, valid during the call only. `bytes` is the Kafka record's value, uncompressed. */
struct batch_out {
	int topic; /* OAL_TOPIC_SAMPLES, OAL_TOPIC_PACKETS, OAL_TOPIC_EVENTS */
	const uint8_t *bytes;
	size_t len;
	uint64_t seq;
	uint64_t t0_us;
	uint32_t rows; /* of all tables of the batch */
};

/* Who makes something of the data path while it runs: one for each pipeline. Its functions are called by pipeline_tick() and
 * may call pipeline_row() for tables of the events topic; begin_tick() for state tables, too. Each may be NULL. */
struct pipeline_consumer {
	void (*begin_tick)(void *ctx); /* a tick has begun; its decisions are still to come */
	/* A decision instant has come: what the program in this slot says of it. */
	void (*features)(void *ctx, unsigned slot, const struct feature_vector *);
	void (*end_tick)(void *ctx, uint64_t t_us); /* the tick's packets and decisions are in */
	void *ctx;
};

enum { PIPELINE_SLOTS = 4 };
enum pipeline_direction { PIPELINE_DOWN = 0, PIPELINE_UP = 1, PIPELINE_DIRECTION_UNKNOWN = 2 };

/* Every number may be 0, which takes the default in brackets. */
struct pipeline_config {
	const char *ap_id; /* copied; 1…128 bytes */
	const char *site; /* copied; may be NULL */
	uint64_t boot_id; /* random, not 0 */
	uint32_t tick_us; /* [OAL_SETTING_TICK_US] */
	uint32_t batch_ticks; /* [OAL_SETTING_BATCH_TICKS] */
	uint32_t settle_ticks; /* [3] ticks a packet may come late and still find its batch and its decision */
	unsigned max_stations; /* [64] stations known at once */
	unsigned max_queues; /* [16] qdiscs */
	unsigned max_channels; /* [8] */
	unsigned max_beacons; /* [64] neighbour BSSs */
	unsigned max_flows; /* [1024] TCP flows tracked, at most 4096 */
	unsigned max_packets_per_batch; /* [4096] */
	unsigned max_addresses; /* [4 * max_stations] IP addresses of stations, for a routed AP */
	uint32_t flow_idle_us; /* [60 s] a flow without packets is forgotten */
	const uint8_t *pseudonym_key; /* 16 bytes; NULL: addresses leave as they are */
	size_t pseudonym_key_len;
	const struct oal_feature_program *program; /* runs in slot 0 from the start; NULL: none */
	uint64_t (*now_ns)(void); /* to time evaluations with; NULL: they are not timed */
	void (*emit)(void *ctx, const struct batch_out *);
	void *ctx; /* of emit */
	struct pipeline_consumer consumer;
};

/* Running totals since pipeline_new(), except where a line says "now". */
struct pipeline_stats {
	uint64_t ticks; /* due ticks, missed ones included */
	uint64_t ticks_missed;
	uint32_t tick_late_max_us; /* since the last pipeline_stats_reset_max() */
	uint64_t packets; /* frames handed in */
	uint64_t packets_skipped; /* sum of the skip reasons in packet.h */
	uint64_t packets_late; /* came later than settle_ticks; their time was moved to what was still open */
	uint64_t packets_guessed; /* handed in without direction, of a new flow without SYN: it was guessed */
	uint64_t ring_drops;
	uint64_t rows_sampled; /* before dedup; packets included */
	uint64_t rows_sent;
	uint64_t rows_dropped; /* did not fit */
	uint64_t entities_refused; /* rows of an entity for which the table was full; counted in rows_dropped too */
	uint32_t flows; /* now */
	uint64_t flows_evicted;
	uint64_t names_refused; /* names that did not fit the batch's dictionary */
	uint64_t dumps_interrupted;
	uint64_t batches; /* all topics */
	uint64_t batch_bytes;
	uint64_t table_rows[OAL_N_TABLES]; /* sent, per table */
	uint64_t decisions;
	size_t memory_bytes; /* what pipeline_new() allocated */
};

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

/* A row (`struct oal_<table>_row`) sampled at this tick, its `tick` column filled in here. For state tables and the tables of
 * the events topic. Growth of loss counters becomes drop_event rows. */
void pipeline_row(struct pipeline *, enum oal_table_id, const void *row);
/* The entity with this row's keys has left. Unknown entities are ignored. */
void pipeline_gone(struct pipeline *, enum oal_table_id, const void *row);
/* Called once in a sampling round of a table that was complete: entities of `table` on `device` without a row since
 * `since_us` have left. Spares the caller a list of its own. */
void pipeline_gone_before(struct pipeline *, enum oal_table_id, uint16_t device, uint64_t since_us);

/* An Ethernet frame of the wired side. `direction` from PACKET_OUTGOING (up) or not (down). */
void pipeline_frame(struct pipeline *, const uint8_t *frame, uint32_t caplen, uint32_t wirelen, uint64_t t_us,
                    enum pipeline_direction direction);
/* The same for a packet that was parsed elsewhere (captures, pcap files). */
void pipeline_packet(struct pipeline *, const struct packet *);
/* A frame that packet_parse() refused elsewhere, with its reason: it is counted as if pipeline_frame() had. */
void pipeline_skipped_frame(struct pipeline *, unsigned reason);
/* The neighbour table of a routed AP: this address (4 or 16 bytes) belongs to the station `mac`; mac 0 removes it. */
void pipeline_station_addr(struct pipeline *, const uint8_t *ip, int ip_len, uint64_t mac);
/* True when a flow of this station had a packet since `since_us`: then it is worth 250 Hz. */
bool pipeline_station_active(const struct pipeline *, uint64_t mac, uint64_t since_us);
/* All flows have ended: none is reported any more, until it has payload again (a replay that starts over). */
void pipeline_flows_end(struct pipeline *);

/* What is known now, for control; valid until the next call that changes the pipeline. */
struct flow_table;
const struct flow_table *pipeline_flow_table(const struct pipeline *);
uint64_t pipeline_flow_id(const struct pipeline *, uint16_t flow); /* as in FlowDictionary */
/* Of data going down, at the last decision instant at which there was any. */
const struct oal_flow_row *pipeline_flow_row(const struct pipeline *, uint16_t flow);
/* Entities of a state table: places, and the latest row at a place; NULL where nobody is. */
unsigned pipeline_places(const struct pipeline *, enum oal_table_id);
const void *pipeline_known(const struct pipeline *, enum oal_table_id, unsigned place);

/* Channels of the AP's radios now, MHz, each once, in the order in which they came; returns how many, at most `most`. */
unsigned pipeline_frequencies(const struct pipeline *, uint16_t *mhz, unsigned most);

/* News for the headers: ring drops and interrupted dumps since the last call, state of the clock now. */
void pipeline_account(struct pipeline *, uint32_t ring_drops, uint32_t dumps_interrupted, uint8_t clock_state,
                      uint32_t clock_error_us);

/* Where feature programs run, side by side: PIPELINE_SLOTS of them. Batch headers name the program of slot 0. */
struct feature_slot *pipeline_slot(struct pipeline *, unsigned slot);
/* The sizes that a program's state must be made for; fixed by pipeline_new(). */
void pipeline_feature_spaces(const struct pipeline *, struct feature_space *spaces); /* OAL_N_TABLES of them */

void pipeline_stats(const struct pipeline *, struct pipeline_stats *);
/* Packets skipped, by the reasons of packet.h: `counts` has PACKET_N_REASONS entries. */
const uint64_t *pipeline_skipped(const struct pipeline *);
void pipeline_stats_reset_max(struct pipeline *);
/* Closes everything early: settles all packets and emits what is open. For shutdown. */
void pipeline_flush(struct pipeline *);

#endif
