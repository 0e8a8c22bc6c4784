/* flow_rows.h: rows of the table flow: each direction of a TCP flow is an entity, number 2 * flow + direction, that has
 * rows while it carries payload. */
#ifndef OAL_FLOW_ROWS_H
#define OAL_FLOW_ROWS_H

#include <stdint.h>

struct batch_flow;
struct flow;
struct pipeline;

enum {
	/* A flow without packets for this long has no rows; the tracker remembers it until flow_idle_us. */
	FLOW_ROWS_QUIET_US = 2000000,
	/* After the end of a connection its last row goes out, then it is gone. */
	FLOW_ROWS_CLOSING_US = 500000,
};

/* All flows have ended: none has rows any more, until it has payload again (a replay that starts over). */
void pipeline_flows_end(struct pipeline *);

/* --- for this room */
/* A keyed hash in place of an address. */
void flow_rows_pseudonymise(const struct pipeline *, uint8_t *addr, unsigned len);
/* How a flow is called outside: pseudonyms in place of addresses, where there is a key. */
void flow_rows_describe(const struct pipeline *, const struct flow *, struct batch_flow *);
/* A batch begins: the first row of each live direction. */
void flow_rows_keyframes(struct pipeline *);
/* A direction carries payload for the first time, or again after it was quiet: a row of what was known before it, so
 * that its counters' growth from here on is complete. */
void flow_rows_wake(struct pipeline *, unsigned entity, uint64_t t_us);
/* A decision instant: a row of each direction that has changed. */
void flow_rows_sample(struct pipeline *, uint64_t instant_us);

#endif
