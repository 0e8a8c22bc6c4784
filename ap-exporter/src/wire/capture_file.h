/* capture_file.h: batches in a file (.oalcap), as they would go to Kafka, uncompressed.
 *
 *   file:    "OALCAP" 0x01 0x00, then records
 *   record:  "OALr", topic u8, 3 bytes 0, length u32, t0_us u64, CRC-32 u32, then `length` bytes: the batch
 *
 * All numbers little-endian. The CRC (IEEE 802.3) is over topic … t0_us and the batch. A reader that meets a broken
 * record looks for the next good one, so a file that was cut short or damaged loses what was damaged only. */
#ifndef OAL_CAPTURE_FILE_H
#define OAL_CAPTURE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CAPTURE_MAGIC_BYTES = 8, CAPTURE_HEADER_BYTES = 24 };
extern const uint8_t capture_magic[CAPTURE_MAGIC_BYTES];

struct capture_record {
	int topic;
	const uint8_t *bytes;
	size_t len;
	uint64_t t0_us;
};

/* --- writing: into a file of the caller's */

/* The header that goes before a record's batch. */
void capture_header(uint8_t header[CAPTURE_HEADER_BYTES], const struct capture_record *);

struct capture_writer {
	int fd;
	uint64_t size; /* of the file's good part */
};
/* Creates or empties the file. Negative errno. */
int capture_create(struct capture_writer *, const char *path);
/* Appends a record. On failure (disk full: -ENOSPC) the file is cut back to its last whole record, the error returned,
 * and the writer remains usable: the next record may fit again. */
int capture_append(struct capture_writer *, const struct capture_record *);
/* 0, or the negative errno with which the last data could not be written. */
int capture_close(struct capture_writer *);

/* --- reading: from memory */

struct capture_reader {
	const uint8_t *start, *at, *end;
	uint64_t skipped_bytes; /* that belong to no good record */
	uint64_t breaks; /* places where reading had to look for the next record */
};
/* Does this begin like a capture? */
bool capture_is(const uint8_t *bytes, size_t len);
/* -EINVAL if it does not. */
int capture_open(struct capture_reader *, const uint8_t *bytes, size_t len);
/* The next good record; false at the end. */
bool capture_next(struct capture_reader *, struct capture_record *);

/* Reads a whole file. The caller frees `*bytes`. Negative errno; -EFBIG beyond 2 GB. */
int capture_load(const char *path, uint8_t **bytes, size_t *len);

#endif
