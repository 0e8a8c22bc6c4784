#include "ship/ring.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Records are contiguous: one that does not fit before the end of the buffer starts at 0, and WRAP marks the hole. */
#define WRAP UINT32_MAX
#define HEAD 8 /* length word; keeps records aligned */

struct ring {
	size_t size, head, tail; /* offsets, multiples of 8; head == tail with records > 0 means full */
	size_t records, bytes;
	uint8_t buf[] __attribute__((aligned(8)));
};

static size_t cost(size_t len)
{
	return HEAD + ((len + 7) & ~(size_t)7);
}

static uint32_t length_at(const struct ring *r, size_t at)
{
	uint32_t len;

	memcpy(&len, r->buf + at, sizeof len);
	return len;
}

struct ring *ring_new(size_t size)
{
	struct ring *r;

	size &= ~(size_t)7;
	if (size < 64)
		size = 64;
	r = malloc(sizeof *r + size);
	if (r)
		*r = (struct ring){ .size = size };
	return r;
}

void ring_free(struct ring *r)
{
	free(r);
}

void ring_pop(struct ring *r)
{
	uint32_t len;

	if (!r->records)
		return;
	len = length_at(r, r->tail);
	r->tail += cost(len);
	r->bytes -= len;
	if (!--r->records)
		r->head = r->tail = 0;
	else if (r->tail == r->size || length_at(r, r->tail) == WRAP)
		r->tail = 0;
}

/* Makes room at r->head for `need` contiguous bytes, if no record has to go for it. */
static bool room(struct ring *r, size_t need)
{
	const uint32_t wrap = WRAP;

	if (!r->records)
		return true;
	if (r->head <= r->tail) /* equal means full */
		return need <= r->tail - r->head;
	if (need <= r->size - r->head)
		return true;
	if (need > r->tail)
		return false;
	if (r->head < r->size)
		memcpy(r->buf + r->head, &wrap, sizeof wrap);
	r->head = 0;
	return true;
}

int ring_put(struct ring *r, const void *head, size_t head_len, const void *body, size_t body_len)
{
	size_t len = head_len + body_len;
	uint32_t len32 = (uint32_t)len;
	int pushed_out = 0;

	if (len >= WRAP - 16 || cost(len) > r->size)
		return -EMSGSIZE;
	for (; !room(r, cost(len)); pushed_out++)
		ring_pop(r);
	memcpy(r->buf + r->head, &len32, sizeof len32);
	memcpy(r->buf + r->head + HEAD, head, head_len);
	if (body_len)
		memcpy(r->buf + r->head + HEAD + head_len, body, body_len);
	r->head += cost(len);
	r->records++;
	r->bytes += len;
	return pushed_out;
}

const void *ring_peek(const struct ring *r, size_t *len)
{
	if (!r->records)
		return NULL;
	*len = length_at(r, r->tail);
	return r->buf + r->tail + HEAD;
}

size_t ring_bytes(const struct ring *r)
{
	return r->bytes;
}

size_t ring_records(const struct ring *r)
{
	return r->records;
}
