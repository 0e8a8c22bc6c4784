#include "ship/send_queue.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Records are contiguous: one that does not fit before the end of the buffer starts at 0, and WRAP marks the hole. */
#define WRAP UINT32_MAX
#define HEAD 8 /* length word; keeps records aligned */

struct send_queue {
	size_t size, head, tail; /* offsets, multiples of 8; head == tail with records > 0 means full */
	size_t records, bytes;
	uint8_t buf[] __attribute__((aligned(8)));
};

static size_t cost(size_t len)
{
	return HEAD + ((len + 7) & ~(size_t)7);
}

static uint32_t length_at(const struct send_queue *q, size_t at)
{
	uint32_t len;

	memcpy(&len, q->buf + at, sizeof len);
	return len;
}

struct send_queue *send_queue_new(size_t size)
{
	struct send_queue *q;

	size &= ~(size_t)7;
	if (size < 64)
		size = 64;
	q = malloc(sizeof *q + size);
	if (q)
		*q = (struct send_queue){ .size = size };
	return q;
}

void send_queue_free(struct send_queue *q)
{
	free(q);
}

void send_queue_pop(struct send_queue *q)
{
	uint32_t len;

	if (!q->records)
		return;
	len = length_at(q, q->tail);
	q->tail += cost(len);
	q->bytes -= len;
	if (!--q->records)
		q->head = q->tail = 0;
	else if (q->tail == q->size || length_at(q, q->tail) == WRAP)
		q->tail = 0;
}

/* Makes room at q->head for `need` contiguous bytes, if no record has to go for it. */
static bool room(struct send_queue *q, size_t need)
{
	const uint32_t wrap = WRAP;

	if (!q->records)
		return true;
	if (q->head <= q->tail) /* equal means full */
		return need <= q->tail - q->head;
	if (need <= q->size - q->head)
		return true;
	if (need > q->tail)
		return false;
	if (q->head < q->size)
		memcpy(q->buf + q->head, &wrap, sizeof wrap);
	q->head = 0;
	return true;
}

int send_queue_push(struct send_queue *q, const void *head, size_t head_len, const void *body, size_t body_len)
{
	size_t len = head_len + body_len;
	uint32_t len32 = (uint32_t)len;
	int pushed_out = 0;

	if (len >= WRAP - 16 || cost(len) > q->size)
		return -EMSGSIZE;
	for (; !room(q, cost(len)); pushed_out++)
		send_queue_pop(q);
	memcpy(q->buf + q->head, &len32, sizeof len32);
	memcpy(q->buf + q->head + HEAD, head, head_len);
	if (body_len)
		memcpy(q->buf + q->head + HEAD + head_len, body, body_len);
	q->head += cost(len);
	q->records++;
	q->bytes += len;
	return pushed_out;
}

const void *send_queue_peek(const struct send_queue *q, size_t *len)
{
	if (!q->records)
		return NULL;
	*len = length_at(q, q->tail);
	return q->buf + q->tail + HEAD;
}

size_t send_queue_bytes(const struct send_queue *q)
{
	return q->bytes;
}

size_t send_queue_records(const struct send_queue *q)
{
	return q->records;
}
