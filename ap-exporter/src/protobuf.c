#include "protobuf.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { VARINT, I64, LEN, I32 = 5 };

/* One field as it stands in the bytes. */
struct wire {
	uint32_t number; /* 0: the end */
	uint8_t type;
	uint64_t varint;
	const uint8_t *at;
	size_t len;
};

static bool get_varint(const uint8_t **at, const uint8_t *end, uint64_t *out)
{
	uint64_t v = 0;
	unsigned shift;

	for (shift = 0; shift < 70; shift += 7) {
		uint8_t byte;

		if (*at == end)
			return false;
		byte = *(*at)++;
		if (shift == 63 && byte > 1)
			return false;
		v |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80) {
			*out = v;
			return true;
		}
	}
	return false;
}

static bool get_wire(const uint8_t **at, const uint8_t *end, struct wire *w)
{
	uint64_t key, len;

	w->number = 0;
	if (*at == end)
		return true;
	if (!get_varint(at, end, &key) || !(key >> 3) || key >> 32)
		return false;
	w->number = (uint32_t)(key >> 3);
	w->type = key & 7;
	w->at = *at;
	switch (w->type) {
	case VARINT:
		if (!get_varint(at, end, &w->varint))
			return false;
		w->len = (size_t)(*at - w->at);
		return true;
	case I64: len = 8; break;
	case I32: len = 4; break;
	case LEN:
		if (!get_varint(at, end, &len))
			return false;
		w->at = *at;
		break;
	default: return false;
	}
	if (len > (uint64_t)(end - *at))
		return false;
	w->len = (size_t)len;
	*at += len;
	return true;
}

static int64_t unzigzag(uint64_t v)
{
	return (int64_t)(v >> 1 ^ (~(v & 1) + 1));
}

static int64_t number_of(uint8_t kind, uint64_t raw)
{
	return kind == PB_U32 ? (int64_t)raw : unzigzag(raw);
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
static bool take_packed(struct pb_field *f, uint8_t kind, const struct wire *w)
{
	const uint8_t *at = w->at, *const end = w->at + w->len;
	uint64_t raw;

	for (; at < end; f->n++)
		if (!get_varint(&at, end, &raw) || !fits(kind, raw))
			return false;
	return true;
}

static bool take(struct pb_field *f, uint8_t kind, const struct wire *w, size_t max_text)
{
	uint64_t bits = 0;
	unsigned i;

	if (is_number(kind) && w->type == LEN) /* the caller has seen that it is a list */
		return take_packed(f, kind, w);
	f->n++;
	if (is_number(kind)) {
		f->value = number_of(kind, w->varint);
		return w->type == VARINT && fits(kind, w->varint);
	}
	if (kind == PB_FIXED64) {
		if (w->type != I64)
			return false;
		for (i = 8; i > 0; i--)
			bits = bits << 8 | w->at[i - 1];
		f->value = (int64_t)bits;
		return true;
	}
	f->at = w->at;
	f->len = w->len;
	return w->type == LEN && (kind != PB_TEXT || is_text(w->at, w->len, max_text));
}

int pb_read(struct pb_field *fields, const uint8_t *kinds, unsigned n, const uint8_t *at, size_t len, size_t max_text, char *err, size_t err_size)
{
	const uint8_t *const end = at + len;
	struct wire w;

	memset(fields, 0, n * sizeof *fields);
	for (;;) {
		uint8_t kind;

		if (!get_wire(&at, end, &w)) {
			snprintf(err, err_size, "a field or its length runs past the end, or is of no known wire type");
			return -EBADMSG;
		}
		if (!w.number)
			return 0;
		kind = w.number < n ? kinds[w.number] : PB_NONE;
		if (kind == PB_NONE)
			continue;
		if (!(kind & PB_LIST) && (fields[w.number].n || (is_number(kind) && w.type == LEN))) {
			snprintf(err, err_size, "field %u is there twice or as a list", w.number);
			return -EBADMSG;
		}
		if (!take(&fields[w.number], kind & ~PB_LIST, &w, max_text)) {
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
static bool next_piece(struct pb_list *l, struct wire *w)
{
	while (get_wire(&l->message, l->message_end, w) && w->number)
		if (w->number == l->number)
			return true;
	return false;
}

int64_t pb_list_next(struct pb_list *l)
{
	uint64_t raw = 0;
	struct wire w;

	while (l->at == l->end) {
		if (!next_piece(l, &w))
			return 0;
		if (w.type == VARINT)
			return number_of(l->kind, w.varint);
		l->at = w.at;
		l->end = w.at + w.len;
	}
	return get_varint(&l->at, l->end, &raw) ? number_of(l->kind, raw) : 0;
}

bool pb_list_bytes(struct pb_list *l, const uint8_t **at, size_t *len)
{
	struct wire w;

	if (!next_piece(l, &w) || w.type != LEN)
		return false;
	*at = w.at;
	*len = w.len;
	return true;
}
