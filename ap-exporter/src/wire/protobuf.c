#include "wire/protobuf.h"

#include "wire/wire.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Of a field that wire_next() took. */
static uint64_t varint_of(const struct wire_field *f)
{
	const uint8_t *at = f->at;
	uint64_t v = 0;

	wire_varint(&at, f->at + f->len, &v);
	return v;
}

static int64_t number_of(uint8_t kind, uint64_t raw)
{
	return kind == PB_U32 ? (int64_t)raw : wire_unzigzag(raw);
}

static bool fits(uint8_t kind, uint64_t raw)
{
	return kind == PB_S64 || !(raw >> 32);
}

static bool is_number(uint8_t kind)
{
	return kind == PB_U32 || kind == PB_S32 || kind == PB_S64;
}

static bool is_text(const uint8_t *at, size_t len, size_t max)
{
	size_t i;

	for (i = 0; i < len && at[i] >= 0x20 && at[i] <= 0x7e; i++)
		;
	return i == len && len <= max;
}

/* A packed piece of a list: counts it. */
static bool count_packed(struct pb_field *f, uint8_t kind, const struct wire_field *w)
{
	const uint8_t *at = w->at, *const end = w->at + w->len;
	uint64_t raw;

	for (; at < end; f->n++)
		if (wire_varint(&at, end, &raw) || !fits(kind, raw))
			return false;
	return true;
}

static bool read_field(struct pb_field *f, uint8_t kind, const struct wire_field *w, size_t max_text)
{
	uint64_t raw;

	if (is_number(kind) && w->type == WIRE_BYTES) /* the caller has seen that it is a list */
		return count_packed(f, kind, w);
	f->n++;
	if (is_number(kind)) {
		raw = w->type == WIRE_VARINT ? varint_of(w) : 0;
		f->value = number_of(kind, raw);
		return w->type == WIRE_VARINT && fits(kind, raw);
	}
	if (kind == PB_FIXED64) {
		if (w->type != WIRE_FIXED64)
			return false;
		f->value = (int64_t)wire_fixed64(w->at);
		return true;
	}
	f->at = w->at;
	f->len = w->len;
	return w->type == WIRE_BYTES && (kind != PB_TEXT || is_text(w->at, w->len, max_text));
}

int pb_read(struct pb_field *fields, const uint8_t *kinds, unsigned n, const uint8_t *at, size_t len, size_t max_text,
            char *err, size_t err_size)
{
	const uint8_t *const end = at + len;
	struct wire_field w;

	memset(fields, 0, n * sizeof *fields);
	for (;;) {
		uint8_t kind;

		if (wire_next(&at, end, &w)) {
			snprintf(err, err_size, "a field or its length runs past the end, or is of no known wire type");
			return -EBADMSG;
		}
		if (!w.number)
			return 0;
		kind = w.number < n ? kinds[w.number] : PB_NONE;
		if (kind == PB_NONE)
			continue;
		if (!(kind & PB_LIST) && (fields[w.number].n || (is_number(kind) && w.type == WIRE_BYTES))) {
			snprintf(err, err_size, "field %u is there twice or as a list", w.number);
			return -EBADMSG;
		}
		if (!read_field(&fields[w.number], kind & ~PB_LIST, &w, max_text)) {
			snprintf(err, err_size, "field %u: wrong wire type, or a value out of range", w.number);
			return -EBADMSG;
		}
	}
}

void pb_list_begin(struct pb_list *l, const uint8_t *message, size_t len, uint32_t number, enum pb_kind kind)
{
	l->message = message;
	l->message_end = message + len;
	l->at = l->end = message;
	l->number = number;
	l->kind = (uint8_t)kind;
}

/* The next field of the list's number. */
static bool next_piece(struct pb_list *l, struct wire_field *w)
{
	while (!wire_next(&l->message, l->message_end, w) && w->number)
		if (w->number == l->number)
			return true;
	return false;
}

int64_t pb_list_next(struct pb_list *l)
{
	uint64_t raw = 0;
	struct wire_field w;

	while (l->at == l->end) {
		if (!next_piece(l, &w))
			return 0;
		if (w.type == WIRE_VARINT)
			return number_of(l->kind, varint_of(&w));
		l->at = w.at;
		l->end = w.at + w.len;
	}
	return wire_varint(&l->at, l->end, &raw) ? 0 : number_of(l->kind, raw);
}

bool pb_list_bytes(struct pb_list *l, const uint8_t **at, size_t *len)
{
	struct wire_field w;

	if (!next_piece(l, &w) || w.type != WIRE_BYTES)
		return false;
	*at = w.at;
	*len = w.len;
	return true;
}
