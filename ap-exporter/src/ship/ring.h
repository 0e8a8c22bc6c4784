/* A bounded queue of records of any length that keeps the newest: what does not fit pushes the oldest out. */
#ifndef OAL_RING_H
#define OAL_RING_H

#include <stddef.h>
#include <stdint.h>

struct ring;

/* `size` bytes in all, each record costs its length and at most 15 more. NULL when out of memory. */
struct ring *ring_new(size_t size);
void ring_free(struct ring *);

/* Appends one record made of two parts. Returns how many old ones were pushed out, or -EMSGSIZE if it can never fit. */
int ring_put(struct ring *, const void *head, size_t head_len, const void *body, size_t body_len);
/* The oldest record, or NULL. Valid until the next ring_put or ring_pop. */
const void *ring_peek(const struct ring *, size_t *len);
void ring_pop(struct ring *);

size_t ring_bytes(const struct ring *); /* of records waiting */
size_t ring_records(const struct ring *);

#endif
