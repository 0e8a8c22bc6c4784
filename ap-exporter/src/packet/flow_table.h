/* flow_table.h: the flows that are followed: a table of fixed size. */
#ifndef OAL_FLOW_TABLE_H
#define OAL_FLOW_TABLE_H

#include "packet/flow.h"
#include "packet/flow_hash.h"

enum { FLOW_NONE = 0xffff, FLOW_MAX = 4096 };

struct flow_table {
	struct flow *flows;
	uint16_t *buckets;
	unsigned max, used, bucket_mask;
	struct flow_hash_key key;
	unsigned touched; /* places from here on were never used: they are not resident */
	uint16_t newest, oldest, unused; /* `unused`: chain of places used before and free again */
	uint64_t holes_forgotten, resyncs;
	size_t memory;
};

/* -ENOMEM, or -EINVAL for `max` outside 1…FLOW_MAX. */
int flow_table_new(struct flow_table *, unsigned max);
void flow_table_free(struct flow_table *);

/* The flow of a packet whose direction is known, or FLOW_NONE. */
uint16_t flow_find(const struct flow_table *, const struct packet *);
/* A new flow for it, or FLOW_NONE when the table is full. */
uint16_t flow_add(struct flow_table *, const struct packet *);
/* A flow of another table that is not in this one: who it is and what its SYNs said (scales, segment sizes). Its
 * sequence numbers and totals begin with its next packet. FLOW_NONE when the table is full. */
uint16_t flow_adopt(struct flow_table *, const struct flow *);
static inline bool flow_table_full(const struct flow_table *t)
{
	return t->used == t->max;
}
void flow_remove(struct flow_table *, uint16_t);
/* It had a packet: it is the last that is given up. */
void flow_move_newest(struct flow_table *, uint16_t);

#endif
