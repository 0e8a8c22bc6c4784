/* row_ring.h: the rows of one table in time order, from when they are made until they are encoded and, for features,
 * read. A ring of fixed size. Each row belongs to an entity, a small number that the caller hands out. */
#ifndef OAL_ROW_RING_H
#define OAL_ROW_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/batch_encode.h"
#include "oal_schema.h"

struct row_ring {
	const struct oal_table *table;
	uint32_t mask; /* size − 1; the size is a power of two */
	uint32_t max_mask; /* memory is there up to this size; only as much of it is touched as was ever needed at once
			    */
	/* Running numbers; a row's place is number & mask. Rows before both `batched` and `fed` are free. */
	uint32_t next, batched, fed;
	uint8_t *rows;
	uint64_t *t_us;
	uint16_t *entity;
	/* Sorting by entity: how many rows of the batch each has, then where its next row goes. */
	unsigned n_entities;
	uint32_t *count;
	uint16_t *touched; /* entities with rows in the batch, by first row */
	unsigned n_touched;
	size_t memory;
};

/* `rows` is rounded up to a power of two. -ENOMEM. */
int row_ring_new(struct row_ring *, enum oal_table_id, unsigned rows, unsigned entities);
void row_ring_free(struct row_ring *);

/* Room for one more row, whose number goes to `*number`; NULL when full. */
void *row_ring_push(struct row_ring *, unsigned entity, uint64_t t_us, uint32_t *number);
static inline void *row_ring_at(const struct row_ring *r, uint32_t number)
{
	return r->rows + (size_t)(number & r->mask) * r->table->row_size;
}
/* Is the row still there and not yet read by anybody? Then it may be rewritten. */
static inline bool row_ring_open(const struct row_ring *r, uint32_t number)
{
	return r->next - number <= r->next - r->batched && r->next - number <= r->next - r->fed && number != r->next;
}

/* Takes the rows before `end_us` out as a batch: fills `*out`, its order (room for all rows) and its runs (room for
 * table->max_runs). Rows beyond max_runs are left out; their number is returned. `count` and `touched` describe the
 * batch until row_ring_batched(). */
uint32_t row_ring_batch(struct row_ring *, uint64_t end_us, struct batch_rows *out, uint32_t *order,
			uint32_t *run_rows);
/* The rows of the last row_ring_batch() have been encoded. */
void row_ring_batched(struct row_ring *);

#endif
