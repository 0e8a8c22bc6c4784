#include "packet/flow_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int flow_table_new(struct flow_table *t, unsigned max)
{
	unsigned buckets = 16;

	memset(t, 0, sizeof *t);
	if (!max || max > FLOW_MAX)
		return -EINVAL;
	while (buckets < 2 * max)
		buckets *= 2;
	flow_hash_key_new(&t->key);
	t->max = max;
	t->bucket_mask = buckets - 1;
	t->flows = calloc(max, sizeof *t->flows);
	t->buckets = malloc(buckets * sizeof *t->buckets);
	if (!t->flows || !t->buckets)
		return -ENOMEM;
	t->memory = max * sizeof *t->flows + buckets * sizeof *t->buckets;
	memset(t->buckets, 0xff, buckets * sizeof *t->buckets);
	t->newest = t->oldest = t->unused = FLOW_NONE;
	return 0;
}

void flow_table_free(struct flow_table *t)
{
	free(t->flows);
	free(t->buckets);
}

/* The four parts of a flow's identity, client first whichever way the packet goes. */
struct key {
	const uint8_t *client, *server;
	uint16_t client_port, server_port;
};

static inline struct key key_of(const struct packet *p)
{
	return p->direction ? (struct key){p->src, p->dst, p->src_port, p->dst_port}
	                    : (struct key){p->dst, p->src, p->dst_port, p->src_port};
}

static unsigned bucket_of(const struct flow_table *t, const struct key *k, unsigned addr_len)
{
	return flow_hash(&t->key, k->client, k->server, addr_len, k->client_port, k->server_port) & t->bucket_mask;
}

/* Both addresses at once; they are of the same length. */
static inline bool same_addresses(const struct flow *f, const struct key *k, unsigned len)
{
	uint32_t a, b, c, d;

	memcpy(&a, f->client_addr, 4);
	memcpy(&b, k->client, 4);
	memcpy(&c, f->server_addr, 4);
	memcpy(&d, k->server, 4);
	if (a != b || c != d)
		return false;
	return len == 4 || (!memcmp(f->client_addr, k->client, len) && !memcmp(f->server_addr, k->server, len));
}

uint16_t flow_find(const struct flow_table *t, const struct packet *p)
{
	const struct key k = key_of(p);
	uint16_t i = t->buckets[bucket_of(t, &k, p->addr_len)];

	for (; i != FLOW_NONE; i = t->flows[i].chain) {
		const struct flow *f = &t->flows[i];

		if (f->client_port == k.client_port && f->server_port == k.server_port && f->addr_len == p->addr_len &&
		    same_addresses(f, &k, p->addr_len))
			break;
	}
	return i;
}

static void unlink_flow(struct flow_table *t, uint16_t i)
{
	const struct flow *f = &t->flows[i];

	*(f->newer == FLOW_NONE ? &t->newest : &t->flows[f->newer].older) = f->older;
	*(f->older == FLOW_NONE ? &t->oldest : &t->flows[f->older].newer) = f->newer;
}

static void link_newest(struct flow_table *t, uint16_t i)
{
	t->flows[i].newer = FLOW_NONE;
	t->flows[i].older = t->newest;
	*(t->newest == FLOW_NONE ? &t->oldest : &t->flows[t->newest].newer) = i;
	t->newest = i;
}

void flow_move_newest(struct flow_table *t, uint16_t i)
{
	unlink_flow(t, i);
	link_newest(t, i);
}

/* A place for a flow of this identity, all else 0; FLOW_NONE when the table is full. */
static uint16_t add(struct flow_table *t, const struct key *k, unsigned addr_len)
{
	uint16_t *bucket = &t->buckets[bucket_of(t, k, addr_len)];
	uint16_t i = t->unused;
	struct flow *f;

	if (flow_table_full(t))
		return FLOW_NONE;
	if (i == FLOW_NONE)
		i = (uint16_t)t->touched++;
	else
		t->unused = t->flows[i].chain;
	f = &t->flows[i];
	memset(f, 0, sizeof *f);
	f->used = true;
	f->addr_len = (uint8_t)addr_len;
	memcpy(f->client_addr, k->client, addr_len);
	memcpy(f->server_addr, k->server, addr_len);
	f->client_port = k->client_port;
	f->server_port = k->server_port;
	f->chain = *bucket;
	*bucket = i;
	link_newest(t, i);
	t->used++;
	return i;
}

uint16_t flow_add(struct flow_table *t, const struct packet *p)
{
	const struct key k = key_of(p);
	const uint16_t i = add(t, &k, p->addr_len);

	if (i != FLOW_NONE)
		t->flows[i].client_mac = p->direction ? p->src_mac : p->dst_mac;
	return i;
}

uint16_t flow_adopt(struct flow_table *t, const struct flow *from)
{
	const struct key k = {from->client_addr, from->server_addr, from->client_port, from->server_port};
	const uint16_t i = add(t, &k, from->addr_len);
	struct flow *f = &t->flows[i];

	if (i == FLOW_NONE)
		return i;
	memcpy(f->scale, from->scale, sizeof f->scale);
	memcpy(f->scale_state, from->scale_state, sizeof f->scale_state);
	memcpy(f->mss_bytes, from->mss_bytes, sizeof f->mss_bytes);
	f->client_mac = from->client_mac;
	f->last_us = from->last_us;
	return i;
}

void flow_remove(struct flow_table *t, uint16_t i)
{
	struct flow *f = &t->flows[i];
	const struct key k = {f->client_addr, f->server_addr, f->client_port, f->server_port};
	uint16_t *link = &t->buckets[bucket_of(t, &k, f->addr_len)];

	while (*link != i)
		link = &t->flows[*link].chain;
	*link = f->chain;
	unlink_flow(t, i);
	f->used = false;
	f->chain = t->unused;
	t->unused = i;
	t->used--;
}
