/* The send queue keeps the newest records. */
#include "check.h"
#include "ship/send_queue.h"

#include <errno.h>

int main(void)
{
	static uint8_t body[4096];
	uint64_t seed = 88172645463325252u;
	uint32_t first = 0, next = 0;
	struct send_queue *q = send_queue_new(1000);
	size_t len;

	test("what goes in comes out, in order");
	CHECK_EQ(send_queue_push(q, "ab", 2, "cde", 3), 0);
	CHECK_EQ(send_queue_push(q, "", 0, "x", 1), 0);
	CHECK(!memcmp(send_queue_peek(q, &len), "abcde", 5));
	CHECK_EQ(len, 5);
	CHECK_EQ(send_queue_bytes(q), 6);
	send_queue_pop(q);
	CHECK(!memcmp(send_queue_peek(q, &len), "x", 1));
	send_queue_pop(q);
	CHECK(send_queue_peek(q, &len) == NULL);
	send_queue_pop(q);
	CHECK_EQ(send_queue_records(q), 0);

	test("a record larger than the queue is refused and pushes nothing out");
	CHECK_EQ(send_queue_push(q, "", 0, "x", 1), 0);
	CHECK_EQ(send_queue_push(q, "", 0, body, 2000), -EMSGSIZE);
	CHECK_EQ(send_queue_records(q), 1);
	send_queue_pop(q);

	test("for a million random puts and pops: the newest are there, whole and in order, and all that went are "
	     "counted");
	for (int i = 0; i < 1000000 && !check_errors; i++) {
		uint64_t dice = check_random(&seed);

		if (dice % 3) {
			size_t n = dice >> 32 & 255;
			int out;

			memset(body, (int)next, n);
			out = send_queue_push(q, &next, sizeof next, body, n);
			CHECK(out >= 0);
			first += (uint32_t)out;
			next++;
		} else {
			uint32_t number;
			const uint8_t *p = send_queue_peek(q, &len);

			CHECK_EQ(p != NULL, first != next);
			if (!p)
				continue;
			memcpy(&number, p, sizeof number);
			CHECK_EQ(number, first);
			for (size_t k = sizeof number; k < len; k++)
				CHECK_EQ(p[k], (uint8_t)number);
			send_queue_pop(q);
			first++;
		}
		CHECK_EQ(send_queue_records(q), next - first);
	}
	test("a full ring of 1000 bytes holds at least three records of 255");
	while (send_queue_records(q))
		send_queue_pop(q);
	for (int i = 0; i < 100; i++)
		CHECK(send_queue_push(q, "", 0, body, 255) >= 0);
	CHECK_EQ(send_queue_records(q), 3);
	send_queue_free(q);
	return done();
}
