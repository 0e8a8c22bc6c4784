/* pipeline_config.h: what a pipeline is given: its sizes, and who takes what it makes. */
#ifndef OAL_PIPELINE_CONFIG_H
#define OAL_PIPELINE_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include "oal_features.h"
#include "oal_schema.h"

struct feature_vector;
struct sender_flow;

enum {
	PIPELINE_SLOTS = 4, /* feature programs that run side by side, one a policy */
	PIPELINE_MAX_BATCH_TICKS = 250,
	PIPELINE_MAX_ID = 128, /* bytes of an ap_id or site */
};

/* A finished batch, valid during the call only. `bytes` is the Kafka record's value, uncompressed. */
struct batch_out {
	int topic; /* OAL_TOPIC_SAMPLES, OAL_TOPIC_PACKETS, OAL_TOPIC_EVENTS */
	const uint8_t *bytes;
	size_t len;
	uint64_t seq;
	uint64_t t0_us;
	uint32_t rows; /* of all tables of the batch */
};

/* Who makes something of the data path while it runs: one for each pipeline. Its functions are called by
 * pipeline_tick() and may call pipeline_row() for tables of the events topic; begin_tick() for state tables, too. Each
 * may be NULL. */
struct pipeline_consumer {
	void (*begin_tick)(void *ctx); /* a tick has begun; its decisions are still to come */
	/* A decision instant has come: what the program in this slot says of it. */
	void (*features)(void *ctx, unsigned slot, const struct feature_vector *);
	/* A connection of this host has ended, at this tick; `flow` as the kernel has it, without pseudonyms. */
	void (*session)(void *ctx, const struct sender_flow *flow, const struct oal_sender_session_row *,
			uint64_t t_us);
	void (*end_tick)(void *ctx, uint64_t t_us); /* the tick's packets and decisions are in */
	void *ctx;
};

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
	unsigned max_beacons; /* [64] BSSs heard */
	unsigned max_flows; /* [1024] TCP flows tracked, at most 4096 */
	unsigned max_packets_per_batch; /* [4096] */
	unsigned max_senders; /* [0] connections of this host with rows in a batch, at most 32768 */
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

/* --- for this room */
/* `c` with every default in its place. -EINVAL for a setting out of bounds. */
int pipeline_config_complete(struct pipeline_config *out, const struct pipeline_config *c);
/* How many entities a table may have, and how many of its rows a batch and the settling time after it. */
void pipeline_limits(const struct pipeline_config *, unsigned entities[OAL_N_TABLES], unsigned rows[OAL_N_TABLES]);

#endif
