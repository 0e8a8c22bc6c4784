#include "destination/choices.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int choices_new(struct choices *c, unsigned max, uint64_t seed)
{
	uint32_t buckets = 1;

	while (buckets < 2 * max)
		buckets *= 2;
	*c = (struct choices){ .max = max, .bucket_mask = buckets - 1, .multiplier = seed | 1 };
	c->places = calloc(max, sizeof *c->places);
	c->buckets = calloc(buckets, sizeof *c->buckets);
	if (c->places && c->buckets)
		return 0;
	choices_free(c);
	return -ENOMEM;
}

void choices_free(struct choices *c)
{
	free(c->places);
	free(c->buckets);
}

static uint16_t *bucket_of(const struct choices *c, const struct congestion_prefix *p)
{
	uint64_t words[2], h;

	memcpy(words, p->address, sizeof words);
	h = ((words[0] ^ p->bits) * c->multiplier ^ words[1]) * c->multiplier;
	return &c->buckets[(h >> 32) & c->bucket_mask];
}

static bool is_same(const struct congestion_prefix *a, const struct congestion_prefix *b)
{
	return a->bits == b->bits && !memcmp(a->address, b->address, sizeof a->address);
}

struct choice *choices_find(const struct choices *c, const struct congestion_prefix *p)
{
	uint16_t i;

	for (i = *bucket_of(c, p); i; i = c->places[i - 1].chain)
		if (is_same(&c->places[i - 1].prefix, p))
			return &c->places[i - 1];
	return NULL;
}

struct choice *choices_add(struct choices *c, const struct congestion_prefix *p)
{
	uint16_t *bucket = bucket_of(c, p), i;

	if (c->unused) {
		i = c->unused;
		c->unused = c->places[i - 1].chain;
	} else if (c->touched < c->max) {
		i = (uint16_t)++c->touched;
	} else {
		c->refused++;
		return NULL;
	}
	c->places[i - 1] = (struct choice){ .prefix = *p, .chain = *bucket };
	*bucket = i;
	c->used++;
	return &c->places[i - 1];
}

void choices_remove(struct choices *c, struct choice *of)
{
	const uint16_t i = (uint16_t)(of - c->places + 1);
	uint16_t *at = bucket_of(c, &of->prefix);

	while (*at != i)
		at = &c->places[*at - 1].chain;
	*at = of->chain;
	of->value = 0;
	of->chain = c->unused;
	c->unused = i;
	c->used--;
}

struct choice *choices_next(struct choices *c)
{
	c->at = c->at + 1 < c->touched ? c->at + 1 : 0;
	return &c->places[c->at];
}
