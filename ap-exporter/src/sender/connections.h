/* connections.h: the TCP connections of this host that were looked at: what was last known of each, and what its looks
 * amount to. A table of fixed size. Times are microseconds of one clock that never goes back. */
#ifndef OAL_CONNECTIONS_H
#define OAL_CONNECTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sender/inet_diag.h"

struct connections;

/* A connection that has ended: a row of sender_session, but for what names it. */
struct sender_end {
	struct sender_flow flow;
	char control[SENDER_CONTROL];
	struct oal_sender_session_row row;
};

/* What end_known says. */
enum { SENDER_END_TOLD = 1, SENDER_END_MISSED = 2 };

/* At most `max` at once, 32768 at most. -ENOMEM. */
int connections_new(struct connections **, unsigned max);
void connections_free(struct connections *);
unsigned connections_count(const struct connections *);

/* What became of a look: the connection is not followed, since the table is full; it is as it was; it has changed. */
enum connections_news { CONNECTIONS_FULL, CONNECTIONS_SAME, CONNECTIONS_CHANGED };
/* `round` counts the rounds of looks, from 1. */
enum connections_news connections_look(struct connections *, const struct sender_look *, uint64_t now_us,
				       uint32_t round);
/* The kernel told that it has ended, with its last numbers. False: it never was a connection. */
bool connections_end(struct connections *, const struct sender_look *, uint64_t now_us, struct sender_end *);
/* After a whole round: the next connection, from place `*at` on, that neither this round nor the one before saw. It is
 * forgotten. One round does not prove it: a dump that goes on while others come and go may leave one out. False: no
 * more. */
bool connections_missed(struct connections *, unsigned *at, uint32_t round, struct sender_end *);

#endif
