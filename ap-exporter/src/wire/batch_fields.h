/* batch_fields.h: the fields of a batch's bytes, for batch_decode*.c alone. */
#ifndef OAL_BATCH_FIELDS_H
#define OAL_BATCH_FIELDS_H

#include "wire/batch_decode.h"
#include "wire/wire.h"

/* A row's time is within this of t0 (schema/README.md, value_range). */
#define BATCH_MAX_OFFSET_US (INT64_C(1) << 40)

static inline enum batch_reason reason_of(enum wire_result r)
{
	return r == WIRE_OK ? BATCH_OK : r == WIRE_TRUNCATED ? BATCH_TRUNCATED : BATCH_MALFORMED;
}

static inline enum batch_reason get_varint(const uint8_t **at, const uint8_t *end, uint64_t *out)
{
	return reason_of(wire_varint(at, end, out));
}

/* The next field of a message. At its end: BATCH_OK with number 0. */
static inline enum batch_reason next_field(const uint8_t **at, const uint8_t *end, struct wire_field *f)
{
	return reason_of(wire_next(at, end, f));
}

/* Adds the number of varints of a packed field to `*n`. */
enum batch_reason batch_count_varints(const uint8_t *at, size_t len, uint32_t *n);

/* An empty span that does not point to NULL. */
struct batch_span batch_empty_span(void);

/* Packed values of one field, which may come in several pieces. */
void batch_values_begin(struct batch_values *, struct batch_span message, uint32_t field);
/* The next piece of the field, whatever its wire type. */
bool batch_values_piece(struct batch_values *);
bool batch_values_next(struct batch_values *, uint64_t *out);

struct table_spans {
	struct batch_span run_rows, run_absent, columns[64];
};
/* Where a table's columns are. Columns left out get an empty span with `at` NULL. */
enum batch_reason batch_table_spans(struct table_spans *, const struct oal_table *, struct batch_span message);

/* The parts of a record whose spans were found: each fills its part of the view, or says what is wrong. */
enum batch_reason batch_check_header(struct batch_view *);
enum batch_reason batch_check_flows(struct batch_view *);
enum batch_reason batch_check_table(struct batch_view *, const struct oal_table *);

#endif
