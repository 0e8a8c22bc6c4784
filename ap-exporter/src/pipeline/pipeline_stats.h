/* pipeline_stats.h: what a pipeline counts. */
#ifndef OAL_PIPELINE_STATS_H
#define OAL_PIPELINE_STATS_H

#include <stddef.h>
#include <stdint.h>

#include "oal_schema.h"

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
	uint32_t stations_bypassed; /* now: their packets pass the tap by */
	uint64_t flows_evicted;
	uint64_t names_refused; /* names that did not fit the batch's dictionary */
	uint64_t dumps_interrupted;
	uint64_t batches; /* all topics */
	uint64_t batch_bytes;
	uint64_t table_rows[OAL_N_TABLES]; /* sent, per table */
	uint64_t decisions;
	size_t memory_bytes; /* what pipeline_new() allocated */
};

#endif
