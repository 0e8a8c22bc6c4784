#include "pipeline/row_ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROWS = 128 };

int row_ring_new(struct row_ring *r, enum oal_table_id id, unsigned rows, unsigned entities)
{
	uint32_t size = 8;

	memset(r, 0, sizeof *r);
	r->table = &oal_tables[id];
	while (size < rows)
		size *= 2;
	r->max_mask = size - 1;
	r->mask = r->max_mask < FIRST_ROWS - 1 ? r->max_mask : FIRST_ROWS - 1;
	r->n_entities = entities;
	r->rows = calloc(size, r->table->row_size);
	r->t_us = calloc(size, sizeof *r->t_us);
	r->entity = calloc(size, sizeof *r->entity);
	r->count = calloc(entities, sizeof *r->count);
	r->touched = calloc(entities, sizeof *r->touched);
	r->memory = size * (r->table->row_size + sizeof *r->t_us + sizeof *r->entity) +
		    entities * (sizeof *r->count + sizeof *r->touched);
	return r->rows && r->t_us && r->entity && r->count && r->touched ? 0 : -ENOMEM;
}

void row_ring_free(struct row_ring *r)
{
	free(r->rows);
	free(r->t_us);
	free(r->entity);
	free(r->count);
	free(r->touched);
}

/* Twice as many places: rows whose number now leads elsewhere move. */
static void grow(struct row_ring *r)
{
	const uint32_t in_use = r->next - r->batched > r->next - r->fed ? r->next - r->batched : r->next - r->fed;
	const uint32_t mask = 2 * r->mask + 1, size = r->table->row_size;
	uint32_t n;

	for (n = r->next - in_use; n != r->next; n++) {
		const uint32_t from = n & r->mask, to = n & mask;

		if (from == to)
			continue;
		memcpy(r->rows + (size_t)to * size, r->rows + (size_t)from * size, size);
		r->t_us[to] = r->t_us[from];
		r->entity[to] = r->entity[from];
	}
	r->mask = mask;
}

void *row_ring_push(struct row_ring *r, unsigned entity, uint64_t t_us, uint32_t *number)
{
	uint32_t at;

	if (r->next - r->batched > r->mask || r->next - r->fed > r->mask) {
		if (r->mask == r->max_mask)
			return NULL;
		grow(r);
	}
	at = r->next & r->mask;
	*number = r->next++;
	r->t_us[at] = t_us;
	r->entity[at] = (uint16_t)entity;
	return r->rows + (size_t)at * r->table->row_size;
}

static uint32_t absent_at(const struct row_ring *r, uint32_t offset)
{
	return *(const uint32_t *)(const void *)(r->rows + offset); /* first member of every row */
}

uint32_t row_ring_batch(struct row_ring *r, uint64_t end_us, struct batch_rows *out, uint32_t *order,
			uint32_t *run_rows)
{
	uint32_t i, end = r->batched, at = 0;
	unsigned e;

	out->table = r->table;
	out->rows = r->rows;
	out->order = order;
	out->run_rows = run_rows;
	out->n_runs = out->n_rows = 0;
	for (; end != r->next && r->t_us[end & r->mask] < end_us; end++)
		if (!r->count[r->entity[end & r->mask]]++)
			r->touched[r->n_touched++] = r->entity[end & r->mask];
	/* A stable sort by entity: from counts to places. */
	for (e = 0; e < r->n_touched; e++) {
		const uint32_t n = r->count[r->touched[e]];

		r->count[r->touched[e]] = at;
		at += n;
	}
	for (i = r->batched; i != end; i++)
		order[r->count[r->entity[i & r->mask]]++] = (i & r->mask) * r->table->row_size;
	/* Now count[e] is where e's rows end. A run ends there, or where other columns are absent. */
	for (e = 0, i = 0; e < r->n_touched; e++)
		for (; i < r->count[r->touched[e]]; out->n_runs++) {
			const uint32_t first = i++, absent = absent_at(r, order[first]);

			if (out->n_runs == r->table->max_runs) {
				out->n_rows = first;
				return at - first;
			}
			while (i < r->count[r->touched[e]] && absent_at(r, order[i]) == absent)
				i++;
			run_rows[out->n_runs] = i - first;
		}
	out->n_rows = at;
	return 0;
}

void row_ring_batched(struct row_ring *r)
{
	uint32_t n = 0;
	unsigned e;

	/* After the sort the last touched entity's place is the number of rows. */
	if (r->n_touched)
		n = r->count[r->touched[r->n_touched - 1]];
	for (e = 0; e < r->n_touched; e++)
		r->count[r->touched[e]] = 0;
	r->n_touched = 0;
	r->batched += n;
}
