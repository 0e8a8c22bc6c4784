/* Reader of tests/data/nl/sample.nl: raw kernel replies of a little-endian machine. Format: README.md beside it. */
#ifndef OAL_NL_SAMPLE_H
#define OAL_NL_SAMPLE_H

#include "check.h"

enum { NL_STATION = 1, NL_SURVEY, NL_INTERFACE, NL_SCAN, NL_QDISC, NL_LINK, NL_NEIGH };

struct nl_record {
	unsigned kind;
	uint32_t len;
	uint64_t time_ns;
	const uint8_t *bytes;
};

static inline uint64_t nl_sample_le(const uint8_t *p, int n)
{
	uint64_t v = 0;

	while (n--)
		v = v << 8 | p[n];
	return v;
}

/* The next record at *at of `data`; false at the end. */
static inline bool nl_sample_next(const uint8_t *data, size_t size, size_t *at, struct nl_record *r)
{
	if (size - *at < 13)
		return false;
	r->kind = data[*at];
	r->len = (uint32_t)nl_sample_le(data + *at + 1, 4);
	r->time_ns = nl_sample_le(data + *at + 5, 8);
	r->bytes = data + *at + 13;
	if (r->len > size - *at - 13)
		return false;
	*at += 13 + r->len;
	return true;
}

#endif
