#include "rewrite/rwnd_clamps.h"

#include "packet/flow_hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

int rwnd_check_clamp(const struct rwnd_flow *f, uint32_t *bytes, uint32_t ttl_ms)
{
	static const uint8_t nowhere[16];

	if ((f->addr_len != 4 && f->addr_len != 16) || !f->client_port || !f->server_port ||
	    f->direction >= RWND_DIRECTIONS)
		return -EINVAL;
	if (!memcmp(f->client_addr, nowhere, f->addr_len) || !memcmp(f->server_addr, nowhere, f->addr_len))
		return -EINVAL;
	if (f->scale > RWND_MAX_SCALE && f->scale != RWND_SCALE_LEARNED)
		return -EINVAL;
	if (f->mss_bytes < RWND_MIN_MSS || !ttl_ms || ttl_ms > RWND_MAX_TTL_MS)
		return -EINVAL;
	if (*bytes < rwnd_floor_bytes(f))
		*bytes = rwnd_floor_bytes(f);
	return 0;
}

uint16_t rwnd_raw(uint32_t bytes, uint32_t floor_bytes, uint8_t scale)
{
	uint32_t raw = bytes >> scale;

	if ((uint64_t)raw << scale < floor_bytes)
		raw++;
	return raw > UINT16_MAX ? UINT16_MAX : raw ? (uint16_t)raw : 1;
}

uint64_t rwnd_meet(uint64_t a, uint64_t b)
{
	if (!a || !b)
		return a ? a : b;
	return a < b ? a : b;
}

/* --- the table: entries in one array, chained from buckets; those in use are 0…n-1 */

struct clamp {
	struct rwnd_flow flow;
	uint64_t until_us;
	uint32_t chain;
};

struct rwnd_clamps {
	uint32_t n, max, bucket_mask;
	uint32_t of[RWND_DIRECTIONS]; /* n, by direction */
	struct flow_hash_key key;
	uint64_t earliest_us; /* no clamp ends before */
	struct clamp *clamps;
	uint32_t *buckets;
};

struct rwnd_clamps *rwnd_clamps_new(uint32_t max)
{
	struct rwnd_clamps *t = calloc(1, sizeof *t);
	uint32_t buckets = 16;

	if (!t)
		return NULL;
	while (buckets < 2 * max)
		buckets *= 2;
	t->max = max;
	t->bucket_mask = buckets - 1;
	flow_hash_key_new(&t->key);
	t->clamps = calloc(max, sizeof *t->clamps);
	t->buckets = malloc(buckets * sizeof *t->buckets);
	if (!t->clamps || !t->buckets) {
		rwnd_clamps_free(t);
		return NULL;
	}
	rwnd_clamps_clear(t);
	return t;
}

void rwnd_clamps_free(struct rwnd_clamps *t)
{
	if (!t)
		return;
	free(t->clamps);
	free(t->buckets);
	free(t);
}

void rwnd_clamps_clear(struct rwnd_clamps *t)
{
	t->n = 0;
	memset(t->of, 0, sizeof t->of);
	t->earliest_us = UINT64_MAX;
	memset(t->buckets, 0xff, (t->bucket_mask + 1) * sizeof *t->buckets);
}

uint32_t rwnd_clamps_count(const struct rwnd_clamps *t)
{
	return t->n;
}

uint32_t rwnd_clamps_count_of(const struct rwnd_clamps *t, enum rwnd_direction direction)
{
	return t->of[direction];
}

static bool same(const struct rwnd_flow *a, const struct rwnd_flow *b)
{
	return a->client_port == b->client_port && a->server_port == b->server_port && a->addr_len == b->addr_len &&
	       a->direction == b->direction &&
	       !memcmp(a->client_addr, b->client_addr, a->addr_len) &&
	       !memcmp(a->server_addr, b->server_addr, a->addr_len);
}

static uint32_t *bucket_of(struct rwnd_clamps *t, const struct rwnd_flow *f)
{
	const uint32_t hash = flow_hash(&t->key, f->client_addr, f->server_addr, f->addr_len, f->client_port,
					f->server_port);

	return &t->buckets[(hash ^ f->direction) & t->bucket_mask];
}

/* The link that leads to the flow's entry, or the NONE at the end of its chain. */
static uint32_t *link_to(struct rwnd_clamps *t, const struct rwnd_flow *f)
{
	uint32_t *link = bucket_of(t, f);

	while (*link != NONE && !same(&t->clamps[*link].flow, f))
		link = &t->clamps[*link].chain;
	return link;
}

int rwnd_clamps_set(struct rwnd_clamps *t, const struct rwnd_flow *f, uint64_t until_us)
{
	uint32_t *link = link_to(t, f);
	const bool is_new = *link == NONE;

	if (is_new) {
		if (t->n == t->max)
			return -ENOSPC;
		*link = t->n++;
		t->clamps[*link].chain = NONE;
		t->of[f->direction]++;
	}
	t->clamps[*link].flow = *f;
	t->clamps[*link].until_us = until_us;
	if (until_us < t->earliest_us)
		t->earliest_us = until_us;
	return is_new;
}

/* The last entry moves into the place that becomes free. */
static void remove_at(struct rwnd_clamps *t, uint32_t *link)
{
	const uint32_t at = *link, last = t->n - 1;

	t->of[t->clamps[at].flow.direction]--;
	*link = t->clamps[at].chain;
	if (at != last) {
		*link_to(t, &t->clamps[last].flow) = at;
		t->clamps[at] = t->clamps[last];
	}
	t->n--;
}

bool rwnd_clamps_remove(struct rwnd_clamps *t, const struct rwnd_flow *f)
{
	uint32_t *link = link_to(t, f);

	if (*link == NONE)
		return false;
	remove_at(t, link);
	return true;
}

bool rwnd_clamps_expire(struct rwnd_clamps *t, uint64_t now_us, struct rwnd_flow *f)
{
	uint64_t earliest_us = UINT64_MAX;
	uint32_t i;

	if (now_us < t->earliest_us) /* most ticks end here */
		return false;
	for (i = 0; i < t->n; i++) {
		if (t->clamps[i].until_us <= now_us) {
			*f = t->clamps[i].flow;
			remove_at(t, link_to(t, f));
			return true;
		}
		if (t->clamps[i].until_us < earliest_us)
			earliest_us = t->clamps[i].until_us;
	}
	t->earliest_us = earliest_us;
	return false;
}
