/* sender_ends.h: the kernel's notices of TCP connections that have ended, with their last numbers. */
#ifndef OAL_SENDER_ENDS_H
#define OAL_SENDER_ENDS_H

#include <stdbool.h>
#include <stdint.h>

#include "sender/inet_diag.h"

struct sender_ends;

/* 0 or a negative errno. From then on the kernel keeps notices, until there are too many. */
int sender_ends_open(struct sender_ends **);
void sender_ends_close(struct sender_ends *);
/* Reads some `most` notices and says each. Returns how many it read; `*lost`: some were let go since the last call. */
unsigned sender_ends_read(struct sender_ends *, unsigned most, void (*cb)(void *ctx, const struct sender_look *),
			  void *ctx, bool *lost);

#endif
