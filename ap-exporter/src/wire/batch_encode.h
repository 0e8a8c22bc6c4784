/* batch_encode.h: rows to the bytes of a batch (schema/README.md, "A batch"). Writes into a buffer of the caller. */
#ifndef OAL_BATCH_ENCODE_H
#define OAL_BATCH_ENCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "oal_schema.h"

/* The header as it is written; strings end with NUL. */
struct batch_header {
	const char *ap_id, *site;
	uint64_t boot_id, seq, t0_us;
	uint32_t tick_us, ticks, schema_revision;
	const uint32_t *missed_start, *missed_ticks;
	unsigned n_missed;
	uint32_t ring_drops, rows_dropped, dumps_interrupted, tick_late_max_us, clock_state, clock_error_us;
	uint64_t feature_hash;
	const char *const *names;
	unsigned n_names;
};

/* An entry of the flow dictionary. */
struct batch_flow {
	uint64_t flow_id, station_mac;
	uint8_t client_addr[16], server_addr[16];
	uint8_t addr_len, protocol;
	uint16_t client_port, server_port;
};

/* Rows of one table in wire order: `order[i]` is the byte offset of row i from `rows`; `run_rows[r]` the length of run
 * r. */
struct batch_rows {
	const struct oal_table *table;
	const uint8_t *rows;
	const uint32_t *order;
	uint32_t n_rows;
	const uint32_t *run_rows;
	uint32_t n_runs;
	const uint16_t *flow_index; /* if not NULL: what a FLOW column's value becomes on the wire */
};

struct batch_writer {
	uint8_t *start, *at, *end;
};

void batch_begin(struct batch_writer *, uint8_t *buffer, size_t size);
/* Each returns false, having written nothing, when it does not fit. */
bool batch_write_header(struct batch_writer *, const struct batch_header *);
bool batch_write_flows(struct batch_writer *, const struct batch_flow *, unsigned n);
bool batch_write_rows(struct batch_writer *, const struct batch_rows *);
size_t batch_len(const struct batch_writer *);

/* Splits rows in wire order into runs: same keys and same absent columns. Returns the number of runs; 0 if more than
 * `max_runs`. Slow; the pipeline knows its runs. */
uint32_t batch_find_runs(const struct oal_table *, const uint8_t *rows, const uint32_t *order, uint32_t n_rows,
                         uint32_t *run_rows, uint32_t max_runs);

/* 64-bit FNV-1a over addresses, ports (big-endian) and protocol: the contract's flow id. */
uint64_t batch_flow_id(const struct batch_flow *);

#endif
