/* fuzz_batch.c: any bytes as a batch. What is accepted must read to its end, and encode to a batch with the same rows.
 * Input: topic u8, then the record. */
#include <stdlib.h>
#include <string.h>

#include "wire/batch_decode.h"
#include "wire/batch_encode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_ROWS = 65536, ROW_SIZE = 256 };
static uint8_t out[4 << 20];
static uint32_t order[MAX_ROWS], run_rows[MAX_ROWS];

static void encode_again(const struct batch_view *v, unsigned t)
{
	const struct oal_table *table = &oal_tables[t];
	uint8_t *rows = malloc((size_t)(v->n_rows[t] + 1) * table->row_size), row[ROW_SIZE];
	struct batch_rows r = {.table = table, .rows = rows, .order = order, .run_rows = run_rows};
	struct batch_view again = *v;
	struct batch_cursor c;
	struct batch_writer w;
	uint64_t field;
	uint32_t i;

	for (batch_rows(&c, v, (enum oal_table_id)t); batch_next_row(&c, rows + (size_t)r.n_rows * table->row_size);
	     r.n_rows++) {
		order[r.n_rows] = r.n_rows * table->row_size;
		if (batch_row_time_us(v, (enum oal_table_id)t, rows + order[r.n_rows]) - v->t0_us >= UINT64_C(1) << 40)
			abort();
	}
	if (r.n_rows != v->n_rows[t])
		abort();
	r.n_runs = batch_find_runs(table, rows, order, r.n_rows, run_rows, MAX_ROWS);
	batch_begin(&w, out, sizeof out);
	/* Zero runs may be coded badly in the input, so ours is never longer by more than the headers. */
	if (r.n_rows && r.n_runs && batch_write_rows(&w, &r)) {
		for (i = 0; i < 10 && out[i] & 0x80; i++)
			;
		for (i++, field = 0; out[i++] & 0x80; field++)
			;
		again.tables[t] = (struct batch_span){out + i, batch_len(&w) - i};
		for (i = 0, batch_rows(&c, &again, (enum oal_table_id)t); batch_next_row(&c, row); i++)
			if (memcmp(row, rows + order[i], table->row_size))
				abort();
		if (i != r.n_rows)
			abort();
	}
	free(rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct batch_missed_cursor m;
	struct batch_flow_cursor fc;
	struct batch_flow f;
	struct batch_view v;
	uint64_t a, b;
	uint32_t n;
	unsigned t;

	if (!size)
		return 0;
	if (batch_decode(&v, data[0] % OAL_N_TOPICS, data + 1, size - 1, NULL, 0))
		return 0;
	for (batch_missed(&m, &v), n = 0; batch_next_missed(&m, &a, &b); n++)
		;
	if (n != v.n_missed)
		abort();
	for (batch_flows(&fc, &v), n = 0; batch_next_flow(&fc, &f); n++)
		;
	if (n != v.n_flows)
		abort();
	for (n = 0; n < v.n_names && n < 100; n++)
		batch_name(&v, n);
	for (t = 0; t < OAL_N_TABLES; t++)
		encode_again(&v, t);
	return 0;
}
