#include "pipeline/dedup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Rows are compared a machine word at a time, under a mask of the bytes that count; structs' padding is masked out. */
typedef unsigned long word __attribute__((may_alias));

static void mask_column(unsigned long *mask, const struct oal_column *c)
{
	memset((uint8_t *)mask + c->offset, 0xff, c->size);
}

int dedup_new(struct dedup *d, enum oal_table_id id, unsigned max)
{
	unsigned buckets = 16, i;

	memset(d, 0, sizeof *d);
	d->table = &oal_tables[id];
	d->max = max;
	if (d->table->row_size % sizeof(word) || max >= UINT16_MAX)
		return -EINVAL;
	while (buckets < 2 * max)
		buckets *= 2;
	d->bucket_mask = buckets - 1;
	d->n_words = d->table->row_size / sizeof(word);
	d->entities = calloc(max, sizeof *d->entities);
	d->known = calloc(max, d->table->row_size);
	d->buckets = calloc(buckets, sizeof *d->buckets);
	d->change_mask = calloc(d->n_words, sizeof(word));
	d->key_mask = calloc(d->n_words, sizeof(word));
	if (!d->entities || !d->known || !d->buckets || !d->change_mask || !d->key_mask)
		return -ENOMEM;
	d->memory = max * (sizeof *d->entities + d->table->row_size) + buckets * sizeof *d->buckets +
		    2u * d->table->row_size;
	memset(d->change_mask, 0xff, sizeof(uint32_t)); /* `absent` */
	for (i = 0; i < d->table->n_columns; i++) {
		const struct oal_column *c = &d->table->columns[i];

		if (c->change) {
			if (!d->change_at)
				d->change_at = c->offset;
			d->change_len = c->offset + c->size - d->change_at;
			mask_column(d->change_mask, c);
		}
		if (c->kind == OAL_KEY)
			mask_column(d->key_mask, c);
	}
	for (i = 0; i < d->n_words; i++)
		if (d->key_mask[i])
			d->n_key_words = i + 1;
	return 0;
}

void dedup_free(struct dedup *d)
{
	free(d->entities);
	free(d->known);
	free(d->buckets);
	free(d->change_mask);
	free(d->key_mask);
}

static bool same(const unsigned long *mask, unsigned n, const void *a, const void *b)
{
	const word *x = a, *y = b;
	unsigned i = 0;

	/* By fours: a row that differs mostly does so early, one that does not is read with few branches. */
	for (; i + 4 <= n; i += 4)
		if (((x[i] ^ y[i]) & mask[i]) | ((x[i + 1] ^ y[i + 1]) & mask[i + 1]) |
		    ((x[i + 2] ^ y[i + 2]) & mask[i + 2]) | ((x[i + 3] ^ y[i + 3]) & mask[i + 3]))
			return false;
	for (; i < n; i++)
		if ((x[i] ^ y[i]) & mask[i])
			return false;
	return true;
}

bool dedup_changed(const struct dedup *d, unsigned slot, const void *row)
{
	const uint8_t *const known = dedup_known(d, slot);

	/* An idle entity's row is mostly the same in whole, which the C library sees faster than a comparison under a
	 * mask. */
	if (*(const uint32_t *)(const void *)known == *(const uint32_t *)row &&
	    !memcmp(known + d->change_at, (const uint8_t *)row + d->change_at, d->change_len))
		return false;
	return !same(d->change_mask, d->n_words, known, row);
}

static unsigned bucket_of(const struct dedup *d, const void *row)
{
	const word *x = row;
	uint64_t h = 0;
	unsigned i;

	for (i = 0; i < d->n_key_words; i++)
		h = (h ^ (x[i] & d->key_mask[i])) * UINT64_C(0x9e3779b97f4a7c15);
	return (unsigned)(h >> 40) & d->bucket_mask;
}

/* Where the hint was wrong. */
__attribute__((noinline)) static int find_by_hash(struct dedup *d, const void *row)
{
	unsigned slot;

	for (slot = d->buckets[bucket_of(d, row)]; slot; slot = d->entities[slot - 1].chain)
		if (same(d->key_mask, d->n_key_words, dedup_known(d, slot - 1), row)) {
			d->hint = slot;
			return (int)slot - 1;
		}
	return -1;
}

int dedup_find(struct dedup *d, const void *row)
{
	const unsigned slot = d->hint < d->max ? d->hint : 0;
	const word *x = row, *y = dedup_known(d, slot);
	unsigned i = 0;

	while (i < d->n_key_words && !((x[i] ^ y[i]) & d->key_mask[i]))
		i++;
	if (i < d->n_key_words || d->entities[slot].state == DEDUP_FREE)
		return find_by_hash(d, row);
	d->hint = slot + 1;
	return (int)slot;
}

int dedup_add(struct dedup *d, const void *row)
{
	uint16_t *bucket = &d->buckets[bucket_of(d, row)];
	unsigned slot;

	if (d->n == d->max)
		return -1;
	for (slot = 0; d->entities[slot].state != DEDUP_FREE; slot++)
		;
	d->n++;
	d->entities[slot] = (struct dedup_entity){.state = DEDUP_LIVE, .chain = *bucket};
	*bucket = (uint16_t)(slot + 1);
	memcpy(dedup_known(d, slot), row, d->table->row_size);
	return (int)slot;
}

void dedup_remove(struct dedup *d, unsigned slot)
{
	uint16_t *link = &d->buckets[bucket_of(d, dedup_known(d, slot))];

	while (*link != slot + 1)
		link = &d->entities[*link - 1].chain;
	*link = d->entities[slot].chain;
	d->entities[slot] = (struct dedup_entity){.state = DEDUP_FREE};
	d->n--;
}
