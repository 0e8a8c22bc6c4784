#include "wire/batch_fields.h"

#include <string.h>

enum batch_reason batch_count_varints(const uint8_t *at, size_t len, uint32_t *n)
{
	const uint8_t *const end = at + len;
	uint64_t ignored;
	enum batch_reason r;

	while (at < end) {
		if ((r = get_varint(&at, end, &ignored)))
			return r;
		++*n;
	}
	return BATCH_OK;
}

struct batch_span batch_empty_span(void)
{
	static const uint8_t nothing;

	return (struct batch_span){&nothing, 0};
}

void batch_values_begin(struct batch_values *v, struct batch_span message, uint32_t field)
{
	if (!message.at)
		message = batch_empty_span();
	v->message = message.at;
	v->message_end = message.at + message.len;
	v->at = v->end = NULL;
	v->field = field;
}

bool batch_values_piece(struct batch_values *v)
{
	struct wire_field f;

	while (next_field(&v->message, v->message_end, &f) == BATCH_OK && f.number)
		if (f.number == v->field) {
			v->at = f.at;
			v->end = f.at + f.len;
			return true;
		}
	return false;
}

bool batch_values_next(struct batch_values *v, uint64_t *out)
{
	while (v->at == v->end)
		if (!batch_values_piece(v))
			return false;
	return get_varint(&v->at, v->end, out) == BATCH_OK;
}

enum batch_reason batch_table_spans(struct table_spans *s, const struct oal_table *t, struct batch_span message)
{
	const uint8_t *at = message.at, *const end = at + message.len;
	enum batch_reason r;
	struct wire_field f;

	memset(s, 0, sizeof *s);
	for (;;) {
		struct batch_span *span = NULL;
		unsigned i;

		if ((r = next_field(&at, end, &f)) || !f.number)
			return r;
		if (f.number == OAL_RUN_ROWS)
			span = &s->run_rows;
		else if (f.number == OAL_RUN_ABSENT)
			span = &s->run_absent;
		for (i = 0; !span && i < t->n_columns; i++)
			if (t->columns[i].field == f.number)
				span = &s->columns[i];
		if (!span)
			continue;
		if (f.type != WIRE_BYTES || span->at)
			return BATCH_MALFORMED;
		*span = (struct batch_span){f.at, f.len};
	}
}
