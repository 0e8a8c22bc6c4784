/* samples.h: what a sampler's thread hands to the tick thread: rows, stations that left, addresses, counts.
 *
 * One thread writes, the tick thread reads. A ring of bytes without a lock: the reader never waits and allocates
 * nothing; a writer that finds no room waits for the reader, so nothing is lost. The other way go the stations that the
 * tick thread saw packets of. */
#ifndef OAL_SAMPLES_H
#define OAL_SAMPLES_H

#include "oal_schema.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sender/sender_flow.h"

struct collector_tick;
struct pipeline;
struct samples;

enum { SAMPLES_KIND = 16 }; /* bytes of a queueing discipline's kind, its end included */

/* What collectors count. */
struct collector_counts {
	uint64_t netlink_errors;
	uint64_t dumps_interrupted;
	uint64_t ring_drops;
	uint64_t interface_losses;
	uint64_t counters_mended; /* of a driver, that ran backwards or jumped */
	uint64_t senders_refused; /* looks at connections beyond max_connections */
	uint64_t sender_ends_lost; /* times that the kernel let notices of ended connections go */
};

/* Room for at least `bytes` (a power of two is taken, 4 KiB at least). 0 or -ENOMEM. */
int samples_new(struct samples **, size_t bytes);
void samples_free(struct samples *);
/* A round of `stations` stations, and as much again for what comes beside them. */
size_t samples_room(unsigned stations);

/* --- the writer */
/* What follows belongs to this tick. */
void samples_tick(struct samples *, uint64_t number);
/* A row of a state table or an event, as pipeline_row() takes it. */
void samples_row(struct samples *, enum oal_table_id, const void *row);
/* A row of the table queue whose kind is not a name of the pipeline's yet. */
void samples_queue(struct samples *, const struct oal_queue_row *, const char *kind);
/* The entity with these keys has left; of a queue with its kind. */
void samples_gone(struct samples *, enum oal_table_id, const void *row);
void samples_queue_gone(struct samples *, const struct oal_queue_row *, const char *kind);
/* A round of a table begins … */
void samples_round(struct samples *);
/* … and was complete: entities of `table` on `device` without a row since the last samples_round() have left. */
void samples_unseen_gone(struct samples *, enum oal_table_id, uint16_t device);
/* All entities of `table` on `device` have left. */
void samples_all_gone(struct samples *, enum oal_table_id, uint16_t device);
/* This address (4 or 16 bytes) is that of the station `mac`; see pipeline_station_addr(). */
void samples_address(struct samples *, const uint8_t *ip, int ip_len, uint64_t mac);
/* A row of sender_tcp or sender_session; see pipeline_sender_row(). */
void samples_sender_row(struct samples *, enum oal_table_id, const struct sender_flow *, const char *control,
			const void *row);
/* What was counted since the last call. */
void samples_count(struct samples *, const struct collector_counts *);
/* Had a flow of this station a packet in the last `hold_us`? The answer, if it is yes, is in samples_wanted(). */
void samples_query(struct samples *, uint64_t mac, uint64_t hold_us);
/* The next station whose flows have packets. False: no more for now. */
bool samples_wanted(struct samples *, uint64_t *mac);

/* --- the reader, which is the tick thread */
/* Hands what is there to the pipeline, and adds to `counts`. While more ticks are due already, only what belongs to
 * this tick or an earlier one; the last takes all. */
void samples_drain(struct samples *, struct pipeline *, struct collector_counts *, const struct collector_tick *);
/* Ticks after which it is a quarter full, if it goes on filling as in the `passed` ticks since the last call. */
uint32_t samples_rest(struct samples *, uint32_t passed);
/* Nobody will read any more: what is written from now on is left out. Any thread. */
void samples_close(struct samples *);

#endif
