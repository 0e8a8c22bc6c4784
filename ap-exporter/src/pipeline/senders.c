#include "pipeline/senders.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "pipeline/flow_rows.h"
#include "pipeline/pipeline_state.h"

enum { PREFIX4 = 3, PREFIX6 = 8, TCP = 6 }; /* bytes of a network: /24 and /64 */

int senders_new(struct senders *s, unsigned max)
{
	unsigned buckets = 1;

	*s = (struct senders){.max = max, .multiplier = UINT64_C(0x9e3779b97f4a7c15)};
	if (!max)
		return 0;
	while (buckets < 2 * max)
		buckets *= 2;
	s->bucket_mask = buckets - 1;
	s->places = calloc(max, sizeof *s->places);
	s->buckets = calloc(buckets, sizeof *s->buckets);
	s->index = calloc(max, sizeof *s->index);
	(void)!getrandom(&s->multiplier, sizeof s->multiplier, GRND_NONBLOCK);
	s->multiplier |= 1;
	return s->places && s->buckets && s->index ? 0 : -ENOMEM;
}

void senders_free(struct senders *s)
{
	free(s->places);
	free(s->buckets);
	free(s->index);
}

size_t senders_memory(const struct senders *s)
{
	return s->max ? s->max * (sizeof *s->places + sizeof *s->index) + (s->bucket_mask + 1) * sizeof *s->buckets : 0;
}

static uint16_t *bucket_of(const struct senders *s, uint64_t flow_id)
{
	return &s->buckets[(flow_id * s->multiplier >> 32) & s->bucket_mask];
}

static bool same_flow(const struct batch_flow *a, const struct batch_flow *b)
{
	return a->flow_id == b->flow_id && a->addr_len == b->addr_len && a->client_port == b->client_port &&
	       a->server_port == b->server_port && !memcmp(a->client_addr, b->client_addr, sizeof a->client_addr) &&
	       !memcmp(a->server_addr, b->server_addr, sizeof a->server_addr);
}

/* The flow's place, taken for it if it has none; -1 when all are taken. */
static int place_of(struct senders *s, const struct batch_flow *name)
{
	uint16_t *bucket, i;

	if (!s->max)
		return -1;
	bucket = bucket_of(s, name->flow_id);
	for (i = *bucket; i; i = s->places[i - 1].chain)
		if (same_flow(&s->places[i - 1].name, name))
			return i - 1;
	if (s->unused) {
		i = s->unused;
		s->unused = s->places[i - 1].chain;
	} else if (s->touched < s->max) {
		i = (uint16_t)++s->touched;
	} else {
		return -1;
	}
	s->places[i - 1] = (struct sender_place){.name = *name, .chain = *bucket};
	*bucket = i;
	return i - 1;
}

static void give_up(struct senders *s, uint16_t place)
{
	uint16_t *at = bucket_of(s, s->places[place].name.flow_id);

	while (*at != place + 1)
		at = &s->places[*at - 1].chain;
	*at = s->places[place].chain;
	s->places[place].row_us = 0;
	s->places[place].chain = s->unused;
	s->unused = place + 1;
}

void senders_sweep(struct senders *s, uint64_t end_us)
{
	unsigned i;

	for (i = 0; i < s->touched; i++)
		if (s->places[i].row_us && s->places[i].row_us < end_us)
			give_up(s, (uint16_t)i);
}

unsigned senders_describe(struct pipeline *p, struct batch_flow *dictionary, unsigned n)
{
	static const enum oal_table_id tables[] = {OAL_SENDER_TCP, OAL_SENDER_SESSION};
	struct senders *s = &p->senders;
	unsigned t, i;

	if (s->max)
		memset(s->index, 0xff, s->max * sizeof *s->index);
	for (t = 0; t < 2; t++)
		for (i = 0; i < p->rings[tables[t]].n_touched; i++) {
			const uint16_t place = p->rings[tables[t]].touched[i];

			if (s->index[place] != FLOW_NONE)
				continue;
			s->index[place] = (uint16_t)n;
			dictionary[n++] = s->places[place].name;
		}
	return n;
}

static int64_t prefix_of(const struct pipeline *p, const struct sender_flow *f)
{
	const unsigned len = f->addr_len == 4 ? PREFIX4 : PREFIX6;
	uint8_t input[PREFIX6 + 1];
	uint64_t n = 0;
	unsigned i;

	for (i = 0; i < len; i++)
		n = n << 8 | f->far[i];
	if (p->c.pseudonym_key) { /* no address has so few bytes: nothing is hashed alike */
		memcpy(input, f->far, len);
		input[len] = 0;
		n = siphash(p->key, input, len + 1);
	}
	return (int64_t)n;
}

static void send_row(struct pipeline *p, enum oal_table_id t, const struct sender_flow *f, const char *control,
		     void *row)
{
	struct batch_flow name = {.addr_len = f->addr_len, .protocol = TCP, .client_port = f->far_port,
				  .server_port = f->near_port};
	const uint16_t known_as = names_intern(&p->names, control, &p->stats.names_refused);
	uint32_t number;
	void *out;
	int place;

	if (!p->n_open)
		return;
	p->stats.rows_sampled++;
	memcpy(name.client_addr, f->far, f->addr_len);
	memcpy(name.server_addr, f->near, f->addr_len);
	if (p->c.pseudonym_key) {
		flow_rows_pseudonymise(p, name.client_addr, name.addr_len);
		flow_rows_pseudonymise(p, name.server_addr, name.addr_len);
	}
	name.flow_id = batch_flow_id(&name);
	place = place_of(&p->senders, &name);
	out = place < 0 ? NULL : row_ring_push(&p->rings[t], (unsigned)place, p->now_us, &number);
	if (place < 0)
		p->stats.entities_refused++;
	else
		p->senders.places[place].row_us = p->now_us;
	if (!out) {
		count_dropped(p, newest_batch(p), oal_tables[t].topic, 1);
		return;
	}
	if (t == OAL_SENDER_TCP) {
		struct oal_sender_tcp_row *r = row;

		r->flow = (uint16_t)place;
		r->congestion_control = known_as;
		r->tick = p->tick;
	} else {
		struct oal_sender_session_row *r = row;

		r->flow = (uint16_t)place;
		r->congestion_control = known_as;
		r->client_prefix = prefix_of(p, f);
		r->tick = p->tick;
	}
	memcpy(out, row, oal_tables[t].row_size);
}

void pipeline_sender_row(struct pipeline *p, enum oal_table_id t, const struct sender_flow *f, const char *control,
			 void *row)
{
	const struct pipeline_consumer *to = &p->c.consumer;

	send_row(p, t, f, control, row);
	if (t == OAL_SENDER_SESSION && to->session) /* also of one whose row found no room */
		to->session(to->ctx, f, row, p->now_us);
}
