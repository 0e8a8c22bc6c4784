/* pipeline_state.h: what a pipeline is made of. For the files of this room alone; others meet pipeline.h.
 *
 * Two ends look at time. The collecting end is at the tick that the caller began: state rows are made there, batches
 * are opened there (with their keyframes). The settling end is settle_ticks behind: packets enter the flow tracker
 * there, in time order, flows are sampled and features evaluated at decision instants, and batches are closed there.
 * Between the two there are one or two open batches; more after a stall. */
#ifndef OAL_PIPELINE_STATE_H
#define OAL_PIPELINE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "feature/feature_slot.h"
#include "packet/flow_table.h"
#include "packet/packet.h"
#include "packet/siphash.h"
#include "packet/stations.h"
#include "pipeline/dedup.h"
#include "pipeline/pipeline_config.h"
#include "pipeline/pipeline_stats.h"
#include "pipeline/row_ring.h"
#include "pipeline/senders.h"
#include "wire/batch_encode.h"
#include "wire/names.h"

enum {
	PIPELINE_MAX_OPEN = 16, /* batches between the two ends; a power of two */
	PIPELINE_MAX_MISSED = PIPELINE_MAX_BATCH_TICKS / 2 + 1, /* runs of missed ticks that a batch can have */
};

struct open_batch {
	uint64_t t0_us;
	uint32_t ticks; /* covered so far */
	unsigned n_missed;
	uint32_t missed_start[PIPELINE_MAX_MISSED], missed_ticks[PIPELINE_MAX_MISSED];
	uint32_t ring_drops, dumps_interrupted, late_max_us, clock_error_us, rows_dropped[OAL_N_TOPICS];
	uint8_t clock_state;
};

/* A direction of a flow as an entity of the flow table; its number is 2 * flow + direction. */
struct flow_entity {
	bool live, unsent;
	uint32_t row;
	uint64_t row_us;
	uint64_t flow_id; /* of the flow: at its direction 0 */
	struct oal_flow_row known;
};

struct pipeline {
	struct pipeline_config c;
	char ap_id[PIPELINE_MAX_ID + 1], site[PIPELINE_MAX_ID + 1];
	uint8_t key[SIPHASH_KEY_BYTES];
	struct names names;
	struct stations stations;
	struct pipeline_stats stats;
	uint64_t skipped[PACKET_N_REASONS];

	/* The collecting end. */
	struct open_batch open[PIPELINE_MAX_OPEN]; /* ring; the newest is collected, the oldest settles */
	unsigned open_at, n_open;
	uint64_t due_us; /* of the last tick */
	uint64_t now_us; /* the same on the batch's grid */
	uint32_t tick; /* index in the newest batch */
	uint8_t clock_state;
	uint32_t clock_error_us;

	/* Rows. tick_offset: where the row struct has its tick. */
	struct row_ring rings[OAL_N_TABLES];
	struct dedup dedup[OAL_N_TABLES]; /* of the state tables but flow, and of keyed events */
	uint16_t tick_offset[OAL_N_TABLES], device_offset[OAL_N_TABLES];

	/* The settling end. */
	struct packet *staged;
	unsigned staged_max, staged_at, staged_end;
	uint64_t settled_us; /* nothing before this can be changed any more */
	uint64_t instant_us; /* next decision instant */
	uint64_t closed_t0_us; /* of the last batch closed */
	struct flow_table flows;
	struct flow_entity *flow_entities;
	struct feature_slot slots[PIPELINE_SLOTS];
	struct senders senders;

	/* Encoding. */
	uint64_t seq[OAL_N_TOPICS];
	uint8_t *buffer;
	uint32_t *order, *run_rows;
	struct batch_flow *dictionary;
	uint16_t *flow_index; /* flow → place in the dictionary */
	size_t buffer_size;
};

static inline struct open_batch *oldest_batch(struct pipeline *p)
{
	return &p->open[p->open_at];
}

static inline struct open_batch *newest_batch(struct pipeline *p)
{
	return &p->open[(p->open_at + p->n_open - 1) % PIPELINE_MAX_OPEN];
}

static inline uint64_t batch_nominal_end(const struct pipeline *p, const struct open_batch *b)
{
	return b->t0_us + (uint64_t)p->c.batch_ticks * p->c.tick_us;
}

static inline void count_dropped(struct pipeline *p, struct open_batch *b, unsigned topic, uint32_t n)
{
	p->stats.rows_dropped += n;
	b->rows_dropped[topic] += n;
}

/* Tables whose rows collectors bring, with dedup. */
static inline bool table_is_state(enum oal_table_id t)
{
	return t <= OAL_BEACON || t == OAL_NEIGHBOUR_AP;
}
_Static_assert(OAL_STATION == 0 && OAL_PACKET == OAL_BEACON + 1, "the first tables of the samples topic come first");

/* Event tables whose rows are told apart by keys: those of one key are one run of a batch. */
static inline bool table_is_keyed_event(enum oal_table_id t)
{
	return t == OAL_DROP_EVENT || (t >= OAL_DECISION && t <= OAL_CONTROL) || t == OAL_ACTION;
}

#endif
