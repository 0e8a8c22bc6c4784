/* restamp.h: a batch as another AP would have made it: a header of its own, by the encoder's own code, before the same
 * tables. */
#ifndef OAL_RESTAMP_H
#define OAL_RESTAMP_H

#include "wire/batch_encode.h"

#include <stddef.h>
#include <stdint.h>

struct restamp;

/* Whose batch it becomes. */
struct restamp_to {
	const char *ap_id, *site;
	uint64_t boot_id, seq;
	uint64_t shift_us; /* added to all its times */
};

/* Takes a copy of a good batch. 0, or negative errno: -EINVAL for one that is not a batch, or whose header is not its
 * first field. */
int restamp_new(struct restamp **, int topic, const uint8_t *batch, size_t len);
void restamp_free(struct restamp *);
int restamp_topic(const struct restamp *);
uint64_t restamp_rows(const struct restamp *); /* of all tables */
/* Bytes that restamp_write() takes at most. */
size_t restamp_room(const struct restamp *);
/* The length; 0: it does not fit. */
size_t restamp_write(const struct restamp *, const struct restamp_to *, uint8_t *out, size_t size);

#endif
