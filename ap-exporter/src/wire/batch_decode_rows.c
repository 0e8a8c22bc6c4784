/* The rows of a table of a checked batch, one by one. */
#include "wire/batch_fields.h"

#include <string.h>

static void column_begin(struct batch_column_cursor *c, struct batch_span s)
{
	c->at = s.at;
	c->end = s.at + s.len;
	c->value = 0;
	c->zeros = 0;
}

void batch_rows(struct batch_cursor *c, const struct batch_view *v, enum oal_table_id id)
{
	struct table_spans s;
	unsigned i;

	memset(c, 0, sizeof *c);
	c->view = v;
	c->table = &oal_tables[id];
	c->rows_left = v->n_rows[id];
	if (!c->rows_left)
		return;
	batch_table_spans(&s, c->table, v->tables[id]);
	column_begin(&c->run_rows, s.run_rows);
	column_begin(&c->run_absent, s.run_absent.at ? s.run_absent : batch_empty_span());
	for (i = 0; i < c->table->n_columns; i++)
		column_begin(&c->columns[i], s.columns[i].at ? s.columns[i] : batch_empty_span());
}

static void next_value(struct batch_column_cursor *c, bool first)
{
	uint64_t raw;

	if (first)
		c->value = 0;
	if (c->zeros) {
		c->zeros--;
		return;
	}
	if (c->at == c->end || get_varint(&c->at, c->end, &raw)) /* a column left out: all 0 */
		return;
	if (raw) {
		c->value += (uint64_t)wire_unzigzag(raw);
		return;
	}
	if (!get_varint(&c->at, c->end, &raw))
		c->zeros = raw >> 1;
}

static void store(uint8_t *p, uint8_t size, uint64_t v)
{
	switch (size) {
	case 1: *p = (uint8_t)v; break;
	case 2: *(uint16_t *)(void *)p = (uint16_t)v; break;
	case 4: *(uint32_t *)(void *)p = (uint32_t)v; break;
	default: *(uint64_t *)(void *)p = v; break;
	}
}

bool batch_next_row(struct batch_cursor *c, void *row)
{
	const struct oal_table *t = c->table;
	bool first = false;
	unsigned i;

	if (!c->rows_left)
		return false;
	c->rows_left--;
	if (!c->run_left) {
		uint64_t absent = 0;

		first = true;
		get_varint(&c->run_rows.at, c->run_rows.end, &c->run_left);
		if (c->run_absent.at < c->run_absent.end)
			get_varint(&c->run_absent.at, c->run_absent.end, &absent);
		c->absent = (uint32_t)absent;
	}
	c->run_left--;
	memset(row, 0, t->row_size);
	*(uint32_t *)row = c->absent;
	for (i = 0; i < t->n_columns; i++) {
		const struct oal_column *col = &t->columns[i];
		struct batch_column_cursor *cc = &c->columns[i];

		if (col->kind == OAL_KEY) {
			uint64_t raw;

			if (first && cc->at < cc->end && !get_varint(&cc->at, cc->end, &raw))
				cc->value = (uint64_t)wire_unzigzag(raw);
		} else {
			next_value(cc, first);
		}
		store((uint8_t *)row + col->offset, col->size, cc->value);
	}
	return true;
}

uint64_t batch_row_time_us(const struct batch_view *v, enum oal_table_id id, const void *row)
{
	const struct oal_table *t = &oal_tables[id];
	unsigned i;

	for (i = t->n_keys; i < t->n_columns; i++) {
		const uint8_t *p = (const uint8_t *)row + t->columns[i].offset;

		if (t->columns[i].kind == OAL_TICK)
			return v->t0_us + (uint64_t)*(const uint32_t *)(const void *)p * v->tick_us;
		if (t->columns[i].kind == OAL_TIME_US)
			return v->t0_us + (uint64_t)*(const int64_t *)(const void *)p;
	}
	return v->t0_us;
}
