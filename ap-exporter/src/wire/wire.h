/* wire.h: Protobuf's wire format: varints, and the fields of a message one after another. Every read is bounded by
 * `end`. */
#ifndef OAL_WIRE_H
#define OAL_WIRE_H

#include <stddef.h>
#include <stdint.h>

enum wire_type { WIRE_VARINT, WIRE_FIXED64, WIRE_BYTES, WIRE_FIXED32 = 5 };
enum wire_result { WIRE_OK, WIRE_TRUNCATED, WIRE_MALFORMED };

/* A field as in the bytes: `at` and `len` are its value's, without a length before it. */
struct wire_field {
	uint32_t number; /* 0: the message has ended */
	uint8_t type; /* enum wire_type */
	const uint8_t *at;
	size_t len;
};

/* On failure `*at` and `*out` are as they were. */
static inline enum wire_result wire_varint(const uint8_t **at, const uint8_t *end, uint64_t *out)
{
	const uint8_t *p = *at;
	uint64_t v = 0;
	unsigned shift;

	for (shift = 0;; shift += 7) {
		if (shift > 63)
			return WIRE_MALFORMED;
		if (p == end)
			return WIRE_TRUNCATED;
		if (shift == 63 && (*p & 0x7e)) /* over 64 bits; over ten bytes if it even goes on */
			return WIRE_MALFORMED;
		v |= (uint64_t)(*p & 0x7f) << shift;
		if (!(*p++ & 0x80))
			break;
	}
	*at = p;
	*out = v;
	return WIRE_OK;
}

static inline int64_t wire_unzigzag(uint64_t v)
{
	return (int64_t)(v >> 1 ^ (0 - (v & 1)));
}

/* Little-endian, whatever the machine. */
static inline uint64_t wire_fixed64(const uint8_t *p)
{
	uint64_t v = 0;
	int i;

	for (i = 7; i >= 0; i--)
		v = v << 8 | p[i];
	return v;
}

/* The next field of a message. */
static inline enum wire_result wire_next(const uint8_t **at, const uint8_t *end, struct wire_field *f)
{
	enum wire_result r;
	uint64_t key, size = 0;

	f->number = 0;
	if (*at == end)
		return WIRE_OK;
	if ((r = wire_varint(at, end, &key)))
		return r;
	if (key >> 3 == 0 || key >> 3 >= 1u << 29)
		return WIRE_MALFORMED;
	f->type = key & 7;
	f->at = *at;
	switch (f->type) {
	case WIRE_VARINT: {
		uint64_t ignored;

		if ((r = wire_varint(at, end, &ignored)))
			return r;
		break;
	}
	case WIRE_FIXED64: size = 8; break;
	case WIRE_FIXED32: size = 4; break;
	case WIRE_BYTES:
		if ((r = wire_varint(at, end, &size)))
			return r;
		f->at = *at;
		break;
	default: return WIRE_MALFORMED;
	}
	if (size > (uint64_t)(end - *at))
		return WIRE_TRUNCATED;
	*at += size;
	f->len = (size_t)(*at - f->at);
	f->number = (uint32_t)(key >> 3);
	return WIRE_OK;
}

#endif
