/* replay_file.h: a capture or a pcap file in memory: what of it can be played, in the order of time. */
#ifndef OAL_REPLAY_FILE_H
#define OAL_REPLAY_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "oal_schema.h"
#include "wire/capture_file.h"

/* Batches of one t0 in the file: they are decoded and played together. */
struct replay_group {
	uint64_t t0_us, end_us;
	uint32_t first, n; /* records */
};

struct replay_file {
	const char *path;
	uint8_t *bytes;
	size_t len;
	bool is_pcap;
	struct capture_record *records;
	uint32_t n_records;
	struct replay_group *groups;
	uint32_t n_groups;
	uint32_t max_rows, max_row_bytes, max_packets, max_flows; /* of a group */
	uint64_t first_us, last_us; /* of the file */
	uint32_t tick_us;
	uint64_t batches_refused, other_ap, breaks; /* as in replay_stats */
};

/* Reads the whole file into `f`, which is all zero; `path` must outlive it. Negative errno, with what is wrong and what
 * to do in `err`. */
int replay_file_read(struct replay_file *f, const char *path, char *err, size_t err_size);
void replay_file_free(struct replay_file *);

/* Writes what went wrong, and returns `code`. */
__attribute__((format(printf, 4, 5))) int replay_fail(int code, char *err, size_t err_size, const char *format, ...);

/* Tables that are played as rows: all of the samples topic. */
static inline bool replay_table_is_state(unsigned t)
{
	return oal_tables[t].topic == OAL_TOPIC_SAMPLES;
}

#endif
