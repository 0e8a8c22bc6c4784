/* batch_decode.h: the bytes of a batch to rows (schema/README.md, "A batch" and "What is refused").
 *
 * batch_decode() checks a record whole and keeps nothing but offsets into it; rows are then read one by one with a
 * cursor, which cannot fail any more. No allocation: usable on records of any origin. */
#ifndef OAL_BATCH_DECODE_H
#define OAL_BATCH_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/batch_encode.h"
#include "oal_schema.h"

/* Why a record is refused; the names are the contract's. */
enum batch_reason {
	BATCH_OK,
	BATCH_OVERSIZED,
	BATCH_TRUNCATED,
	BATCH_MALFORMED,
	BATCH_VALUE_RANGE,
	BATCH_UNKNOWN_REVISION,
	BATCH_KEY_MISMATCH,
	BATCH_TIME_RANGE,
	BATCH_N_REASONS
};
const char *batch_reason_name(enum batch_reason);

struct batch_span {
	const uint8_t *at;
	size_t len;
};

/* A checked record; points into its bytes. */
struct batch_view {
	int topic;
	struct batch_span header, flows, tables[OAL_N_TABLES]; /* at == NULL: not there */
	struct batch_span ap_id, site;
	uint64_t boot_id, seq, t0_us, feature_hash;
	uint32_t tick_us, ticks, schema_revision;
	uint32_t ring_drops, rows_dropped, dumps_interrupted, tick_late_max_us, clock_state, clock_error_us;
	uint32_t n_missed, n_names, n_flows;
	uint32_t n_rows[OAL_N_TABLES], n_runs[OAL_N_TABLES];
};

/* Checks a record of `topic`. `key` (NUL-terminated) and `now_us` add checks of their own; NULL and 0 leave them
 * out. */
enum batch_reason batch_decode(struct batch_view *, int topic, const uint8_t *bytes, size_t len, const char *key,
                               uint64_t now_us);

/* Position in the packed values of one field, which may come in several pieces. */
struct batch_values {
	const uint8_t *message, *message_end; /* where further pieces are looked for */
	const uint8_t *at, *end;
	uint32_t field;
};

struct batch_column_cursor {
	const uint8_t *at, *end;
	uint64_t value;
	uint64_t zeros; /* further rows without a difference */
};
struct batch_cursor {
	const struct batch_view *view;
	const struct oal_table *table;
	struct batch_column_cursor run_rows, run_absent, columns[64];
	uint64_t run_left;
	uint32_t rows_left;
	uint32_t absent;
};
void batch_rows(struct batch_cursor *, const struct batch_view *, enum oal_table_id);
/* The next row into `row` (`struct oal_<table>_row`); false at the end. Padding bytes are 0. */
bool batch_next_row(struct batch_cursor *, void *row);
/* Time of a row, microseconds since 1970. */
uint64_t batch_row_time_us(const struct batch_view *, enum oal_table_id, const void *row);

/* Name `i` of the dictionary, not NUL-terminated. */
struct batch_span batch_name(const struct batch_view *, uint32_t i);

struct batch_flow_cursor {
	const struct batch_view *view;
	uint32_t left;
	struct batch_values ids, client, server, numbers[4];
};
void batch_flows(struct batch_flow_cursor *, const struct batch_view *);
bool batch_next_flow(struct batch_flow_cursor *, struct batch_flow *);

struct batch_missed_cursor {
	uint32_t left;
	struct batch_values start, ticks;
};
void batch_missed(struct batch_missed_cursor *, const struct batch_view *);
bool batch_next_missed(struct batch_missed_cursor *, uint64_t *start, uint64_t *ticks);

#endif
