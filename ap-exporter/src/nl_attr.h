/* Netlink attributes, read from a buffer that is not trusted: nothing is ever read past its end. Header-only: hot path. */
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

/* Position in a list of attributes. */
struct nl_iter {
	const uint8_t *p, *end;
};

static inline struct nl_iter nl_iter(const uint8_t *p, uint32_t len)
{
	return (struct nl_iter){ p, p + len };
}

static inline struct nl_iter nl_nested(const struct nl_attr *a)
{
	return nl_iter(a->data, a->len);
}

/* The next attribute. False at the end, and at the first one whose length does not fit: the rest cannot be told apart. */
static inline bool nl_next(struct nl_iter *it, struct nl_attr *a)
{
	uint16_t len, type;
	uint32_t step;

	if (it->end - it->p < 4)
		return false;
	memcpy(&len, it->p, 2);
	memcpy(&type, it->p + 2, 2);
	if (len < 4 || len > it->end - it->p)
		return false;
	a->type = type & 0x3fff;
	a->len = (uint16_t)(len - 4);
	a->data = it->p + 4;
	step = (len + 3u) & ~3u;
	it->p = step > (uint32_t)(it->end - it->p) ? it->end : it->p + step;
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
