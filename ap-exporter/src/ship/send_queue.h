/* send_queue.h: a bounded queue of records of any length that keeps the newest: what does not fit pushes the oldest
 * out. */
#ifndef OAL_SEND_QUEUE_H
#define OAL_SEND_QUEUE_H

#include <stddef.h>
#include <stdint.h>

struct send_queue;

/* `size` bytes in all, each record costs its length and at most 15 more. NULL when out of memory. */
struct send_queue *send_queue_new(size_t size);
void send_queue_free(struct send_queue *);

/* Appends one record made of two parts. Returns how many old ones were pushed out, or -EMSGSIZE if it can never fit. */
int send_queue_push(struct send_queue *, const void *head, size_t head_len, const void *body, size_t body_len);
/* The oldest record, or NULL. Valid until the next send_queue_push or send_queue_pop. */
const void *send_queue_peek(const struct send_queue *, size_t *len);
void send_queue_pop(struct send_queue *);

size_t send_queue_bytes(const struct send_queue *); /* of records waiting */
size_t send_queue_records(const struct send_queue *);

#endif
