/* dedup.h: the entities of one state table, and for each what was last known of it.
 * A row is worth sending if a column marked `change`, or the set of absent columns, differs from what was last sent. */
#ifndef OAL_DEDUP_H
#define OAL_DEDUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "oal_schema.h"

enum dedup_state {
	DEDUP_FREE,
	DEDUP_LIVE,
	DEDUP_GONE, /* left; kept until a batch without a row of it has ended */
};

struct dedup_entity {
	uint8_t state;
	bool unsent; /* its last change found no room: the next row is sent whatever it holds */
	uint16_t chain; /* hash chain, slot + 1 */
	uint32_t row; /* number of its last row in the ring */
	uint64_t row_us; /* time of that row; 0: none */
	uint64_t sampled_us; /* when it was last seen by a collector */
};

struct dedup {
	const struct oal_table *table;
	unsigned max, n;
	struct dedup_entity *entities;
	uint8_t *known; /* a row per entity */
	uint16_t *buckets; /* slot + 1 */
	unsigned bucket_mask;
	unsigned hint; /* rows come in the same order in every dump: the slot after the last one is tried first */
	unsigned n_words, n_key_words;
	unsigned long *change_mask, *key_mask;
	uint32_t change_at, change_len; /* the bytes from the first to the last column that counts */
	size_t memory;
};

/* -ENOMEM; -EINVAL for a table whose rows are not made of whole words. */
int dedup_new(struct dedup *, enum oal_table_id, unsigned max_entities);
void dedup_free(struct dedup *);

/* The entity's slot, or -1. */
int dedup_find(struct dedup *, const void *row);
/* The slot of a new entity, live, with `row` as what is known; -1 when all are taken. */
int dedup_add(struct dedup *, const void *row);
void dedup_remove(struct dedup *, unsigned slot);
/* Does `row` differ in what counts? */
bool dedup_changed(const struct dedup *, unsigned slot, const void *row);
static inline void *dedup_known(const struct dedup *d, unsigned slot)
{
	return d->known + (size_t)slot * d->table->row_size;
}

#endif
