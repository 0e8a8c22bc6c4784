#include "sample/samples.h"

#include "sample/rest.h"
#include "pipeline/pipeline.h"
#include "sample/sampler.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	LEAST = 4096, /* bytes of a ring */
	AC_ROWS = 4, /* of a station: one an access category */
	OTHER_ROOM = 8192, /* bytes for what is no station: channel, queues, addresses, counts */
	WANTED = 64, /* stations that wait to be sampled as active; one that finds no place is asked for again */
	FULL_WAIT_NS = 1000000, /* a quarter of a tick: the reader comes once a tick */
};

enum op { OP_WRAP, OP_ROW, OP_QUEUE, OP_GONE, OP_QUEUE_GONE, OP_ROUND, OP_UNSEEN, OP_ALL_GONE, OP_ADDRESS, OP_COUNT,
	  OP_QUERY, OP_SENDER };

struct head {
	uint16_t len; /* of the record, this included; a multiple of 8. OP_WRAP: the rest of the ring */
	uint8_t op, table;
	uint16_t device;
	uint16_t tick; /* that it belongs to; the low bits of its number */
};

struct queue_record {
	struct oal_queue_row row;
	char kind[SAMPLES_KIND];
};

struct address_record {
	uint64_t mac;
	int32_t len;
	uint8_t ip[16];
};

struct query_record {
	uint64_t mac, hold_us;
};

struct sender_record {
	struct sender_flow flow;
	char control[SENDER_CONTROL];
	union {
		struct oal_sender_tcp_row tcp;
		struct oal_sender_session_row session;
	} row;
};

struct samples {
	uint8_t *bytes;
	uint32_t size; /* a power of two */
	uint32_t head; /* bytes written, running; stored by the writer */
	uint32_t tail; /* bytes read, likewise by the reader */
	uint32_t closed;
	uint16_t tick; /* the writer's: that of what it writes */
	uint32_t rested_at; /* the reader's: bytes read when samples_rest() was last asked */
	uint64_t round_us; /* likewise: when the last round began */
	uint64_t wanted[WANTED];
	uint32_t wanted_head, wanted_tail; /* the reader writes, the writer reads */
};

size_t samples_room(unsigned stations)
{
	const size_t station = sizeof(struct oal_station_row) + sizeof(struct head) +
			       AC_ROWS * (sizeof(struct oal_station_ac_row) + sizeof(struct head)) +
			       sizeof(struct query_record) + sizeof(struct head);

	return 2 * stations * station + OTHER_ROOM;
}

int samples_new(struct samples **out, size_t bytes)
{
	struct samples *s = calloc(1, sizeof *s);

	if (!s)
		return -ENOMEM;
	for (s->size = LEAST; s->size < bytes && s->size < UINT32_C(1) << 30; s->size *= 2)
		;
	s->bytes = malloc(s->size); /* touched as it is used: an AP with few stations keeps the start of it */
	if (!s->bytes) {
		free(s);
		return -ENOMEM;
	}
	*out = s;
	return 0;
}

void samples_free(struct samples *s)
{
	if (!s)
		return;
	free(s->bytes);
	free(s);
}

/* --- the writer */

/* Waits until `len` bytes are free. False: nobody reads any more. */
static bool await_room(const struct samples *s, uint32_t len)
{
	const struct timespec moment = { .tv_nsec = FULL_WAIT_NS };

	while (s->size - (s->head - __atomic_load_n(&s->tail, __ATOMIC_ACQUIRE)) < len) {
		if (__atomic_load_n(&s->closed, __ATOMIC_ACQUIRE))
			return false;
		nanosleep(&moment, NULL);
	}
	return true;
}

static void publish(struct samples *s, uint32_t len)
{
	__atomic_store_n(&s->head, s->head + len, __ATOMIC_RELEASE);
}

static void append(struct samples *s, enum op op, enum oal_table_id table, uint16_t device, const void *body,
		   size_t size)
{
	struct head h = { .len = (uint16_t)((sizeof h + size + 7) & ~7u), .op = (uint8_t)op, .table = (uint8_t)table,
			  .device = device, .tick = s->tick };
	uint32_t at = s->head & (s->size - 1), rest = s->size - at;

	if (rest < h.len) { /* records do not go over the end */
		const struct head wrap = { .op = OP_WRAP };

		if (!await_room(s, rest))
			return;
		memcpy(s->bytes + at, &wrap, sizeof wrap);
		publish(s, rest);
		at = 0;
	}
	if (!await_room(s, h.len))
		return;
	memcpy(s->bytes + at, &h, sizeof h);
	if (size)
		memcpy(s->bytes + at + sizeof h, body, size);
	publish(s, h.len);
}

void samples_tick(struct samples *s, uint64_t number)
{
	s->tick = (uint16_t)number;
}

void samples_row(struct samples *s, enum oal_table_id t, const void *row)
{
	append(s, OP_ROW, t, 0, row, oal_tables[t].row_size);
}

void samples_gone(struct samples *s, enum oal_table_id t, const void *row)
{
	append(s, OP_GONE, t, 0, row, oal_tables[t].row_size);
}

static void append_queue(struct samples *s, enum op op, const struct oal_queue_row *row, const char *kind)
{
	struct queue_record r = { .row = *row };

	snprintf(r.kind, sizeof r.kind, "%s", kind);
	append(s, op, OAL_QUEUE, 0, &r, sizeof r);
}

void samples_queue(struct samples *s, const struct oal_queue_row *row, const char *kind)
{
	append_queue(s, OP_QUEUE, row, kind);
}

void samples_queue_gone(struct samples *s, const struct oal_queue_row *row, const char *kind)
{
	append_queue(s, OP_QUEUE_GONE, row, kind);
}

void samples_round(struct samples *s)
{
	append(s, OP_ROUND, 0, 0, NULL, 0);
}

void samples_unseen_gone(struct samples *s, enum oal_table_id t, uint16_t device)
{
	append(s, OP_UNSEEN, t, device, NULL, 0);
}

void samples_all_gone(struct samples *s, enum oal_table_id t, uint16_t device)
{
	append(s, OP_ALL_GONE, t, device, NULL, 0);
}

void samples_address(struct samples *s, const uint8_t *ip, int ip_len, uint64_t mac)
{
	struct address_record r = { .mac = mac, .len = ip_len };

	memcpy(r.ip, ip, ip_len == 16 ? 16 : 4);
	append(s, OP_ADDRESS, 0, 0, &r, sizeof r);
}

void samples_sender_row(struct samples *s, enum oal_table_id t, const struct sender_flow *flow, const char *control,
			const void *row)
{
	struct sender_record r = { .flow = *flow };

	snprintf(r.control, sizeof r.control, "%s", control);
	memcpy(&r.row, row, oal_tables[t].row_size);
	append(s, OP_SENDER, t, 0, &r, offsetof(struct sender_record, row) + oal_tables[t].row_size);
}

void samples_count(struct samples *s, const struct collector_counts *c)
{
	append(s, OP_COUNT, 0, 0, c, sizeof *c);
}

void samples_query(struct samples *s, uint64_t mac, uint64_t hold_us)
{
	const struct query_record r = { mac, hold_us };

	append(s, OP_QUERY, 0, 0, &r, sizeof r);
}

bool samples_wanted(struct samples *s, uint64_t *mac)
{
	if (s->wanted_tail == __atomic_load_n(&s->wanted_head, __ATOMIC_ACQUIRE))
		return false;
	*mac = s->wanted[s->wanted_tail % WANTED];
	__atomic_store_n(&s->wanted_tail, s->wanted_tail + 1, __ATOMIC_RELEASE);
	return true;
}

/* --- the reader */

static void want(struct samples *s, uint64_t mac)
{
	if (s->wanted_head - __atomic_load_n(&s->wanted_tail, __ATOMIC_ACQUIRE) >= WANTED)
		return;
	s->wanted[s->wanted_head % WANTED] = mac;
	__atomic_store_n(&s->wanted_head, s->wanted_head + 1, __ATOMIC_RELEASE);
}

static void add(struct collector_counts *sum, const struct collector_counts *more)
{
	sum->netlink_errors += more->netlink_errors;
	sum->dumps_interrupted += more->dumps_interrupted;
	sum->ring_drops += more->ring_drops;
	sum->interface_losses += more->interface_losses;
	sum->counters_mended += more->counters_mended;
	sum->senders_refused += more->senders_refused;
	sum->sender_ends_lost += more->sender_ends_lost;
}

static void hand_queue(struct pipeline *p, enum op op, struct queue_record *r)
{
	r->row.kind = pipeline_name(p, r->kind);
	if (op == OP_QUEUE)
		pipeline_row(p, OAL_QUEUE, &r->row);
	else
		pipeline_gone(p, OAL_QUEUE, &r->row);
}

static void hand(struct samples *s, struct pipeline *p, struct collector_counts *counts, uint64_t now_us,
		 const struct head *h, uint8_t *body)
{
	const struct address_record *address = (const void *)body;
	const struct query_record *query = (const void *)body;
	struct sender_record *sender = (void *)body;
	const enum oal_table_id table = h->table;

	switch ((enum op)h->op) {
	case OP_ROW: pipeline_row(p, table, body); break;
	case OP_GONE: pipeline_gone(p, table, body); break;
	case OP_QUEUE:
	case OP_QUEUE_GONE: hand_queue(p, h->op, (void *)body); break;
	case OP_ROUND: s->round_us = now_us; break;
	case OP_UNSEEN: pipeline_gone_before(p, table, h->device, s->round_us); break;
	case OP_ALL_GONE: pipeline_gone_before(p, table, h->device, UINT64_MAX); break;
	case OP_ADDRESS: pipeline_station_addr(p, address->ip, address->len, address->mac); break;
	case OP_COUNT: add(counts, (const void *)body); break;
	case OP_QUERY:
		if (pipeline_station_active(p, query->mac, now_us > query->hold_us ? now_us - query->hold_us : 0))
			want(s, query->mac);
		break;
	case OP_SENDER: pipeline_sender_row(p, table, &sender->flow, sender->control, &sender->row); break;
	case OP_WRAP: break;
	}
}

void samples_drain(struct samples *s, struct pipeline *p, struct collector_counts *counts,
		   const struct collector_tick *t)
{
	const uint32_t head = __atomic_load_n(&s->head, __ATOMIC_ACQUIRE);

	while (s->tail != head) {
		const uint32_t at = s->tail & (s->size - 1);
		struct head h;

		memcpy(&h, s->bytes + at, sizeof h);
		if (h.op == OP_WRAP)
			h.len = 0;
		else if (t->more && (int16_t)(h.tick - (uint16_t)t->number) > 0)
			return;
		else
			hand(s, p, counts, t->due_us, &h, s->bytes + at + sizeof h);
		__atomic_store_n(&s->tail, s->tail + (h.len ? h.len : s->size - at), __ATOMIC_RELEASE);
	}
}

uint32_t rest_for(uint32_t taken, uint32_t size, uint32_t passed)
{
	const uint32_t of = passed < 1000 ? passed : 1000; /* the product has 32 bits */
	const uint32_t ticks = taken ? size / REST_PARTS * of / taken : REST_MOST;

	return ticks > REST_MOST ? REST_MOST : ticks ? ticks : 1;
}

uint32_t samples_rest(struct samples *s, uint32_t passed)
{
	const uint32_t taken = s->tail - s->rested_at;

	s->rested_at = s->tail;
	return rest_for(taken, s->size, passed);
}

void samples_close(struct samples *s)
{
	__atomic_store_n(&s->closed, 1, __ATOMIC_RELEASE);
}
