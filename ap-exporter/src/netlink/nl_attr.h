/* Netlink attributes, read from a buffer that is not trusted: nothing is ever read past its end. Header-only: hot path.
 */
#ifndef OAL_NL_ATTR_H
#define OAL_NL_ATTR_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct nl_attr {
	uint16_t type; /* without the nested and byte-order flags */
	uint16_t len;  /* of the payload */
	const uint8_t *data;
};

/* Position in a list of attributes; `at` may end up to three bytes past `len`, where padding was cut off. */
struct nl_iter {
	const uint8_t *base;
	uint32_t at, len;
};

static inline struct nl_iter nl_iter(const uint8_t *p, uint32_t len)
{
	return (struct nl_iter){ p, 0, len };
}

static inline struct nl_iter nl_nested(const struct nl_attr *a)
{
	return nl_iter(a->data, a->len);
}

/* The next attribute. False at the end, and at the first one whose length does not fit: the rest cannot be told apart.
 */
static inline bool nl_next(struct nl_iter *it, struct nl_attr *a)
{
	struct {
		uint16_t len, type;
	} head;

	if (it->at + 4 > it->len)
		return false;
	memcpy(&head, it->base + it->at, sizeof head);
	if (head.len - 4u > it->len - it->at - 4u) /* below 4 wraps to more than there is */
		return false;
	a->type = head.type & 0x3fff;
	a->len = (uint16_t)(head.len - 4);
	a->data = it->base + it->at + 4;
	it->at += (head.len + 3u) & ~3u;
	return true;
}

/* Values in host order; 0 if the attribute is too short. */
static inline uint8_t nl_u8(const struct nl_attr *a)
{
	return a->len >= 1 ? a->data[0] : 0;
}

static inline uint16_t nl_u16(const struct nl_attr *a)
{
	uint16_t v = 0;

	if (a->len >= sizeof v)
		memcpy(&v, a->data, sizeof v);
	return v;
}

static inline uint32_t nl_u32(const struct nl_attr *a)
{
	uint32_t v = 0;

	if (a->len >= sizeof v)
		memcpy(&v, a->data, sizeof v);
	return v;
}

static inline uint64_t nl_u64(const struct nl_attr *a)
{
	uint64_t v = 0;

	if (a->len >= sizeof v)
		memcpy(&v, a->data, sizeof v);
	return v;
}

/* 63 bits of a counter: columns travel as sint64. */
static inline uint64_t nl_count(const struct nl_attr *a)
{
	return nl_u64(a) & INT64_MAX;
}

/* A hardware address of six bytes, first octet highest; 0 if too short. */
static inline uint64_t nl_mac(const struct nl_attr *a)
{
	uint64_t v = 0;

	if (a->len >= 6)
		for (int i = 0; i < 6; i++)
			v = v << 8 | a->data[i];
	return v;
}

#endif
