/* senders.h: rows of this host's own TCP connections, tables sender_tcp and sender_session. Their flows are no flows of
 * the packets' tracker: a place is taken for each as long as a batch may have rows of it. */
#ifndef OAL_SENDERS_H
#define OAL_SENDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sender/sender_flow.h"
#include "wire/batch_encode.h"

struct pipeline;

/* A row of sender_tcp or sender_session at this tick. What names the connection is filled in here: flow, congestion
 * control, network of the far end, pseudonyms where there is a key. Without room it is left out and counted. */
void pipeline_sender_row(struct pipeline *, enum oal_table_id, const struct sender_flow *, const char *control,
			 void *row);

/* --- for this room */
struct sender_place {
	struct batch_flow name; /* as the flow is called outside */
	uint64_t row_us; /* of its last row; 0: a free place */
	uint16_t chain; /* of a bucket, or of the free places; place + 1 */
};

struct senders {
	struct sender_place *places;
	uint16_t *buckets, *index; /* index: place → that in the batch's dictionary */
	unsigned max, touched, bucket_mask;
	uint16_t unused;
	uint64_t multiplier; /* odd and random: nobody can choose connections that share a bucket */
};

/* `max` may be 0. -ENOMEM. */
int senders_new(struct senders *, unsigned max);
void senders_free(struct senders *);
size_t senders_memory(const struct senders *);
/* Appends the flows with rows in the batch to its dictionary, which has `n` entries; returns how many it has then. */
unsigned senders_describe(struct pipeline *, struct batch_flow *dictionary, unsigned n);
/* A batch has ended: places without a row since `end_us` are free. */
void senders_sweep(struct senders *, uint64_t end_us);

#endif
