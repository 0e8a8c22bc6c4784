/* The ring that keeps the newest. */
#include "check.h"
#include "ship/ring.h"

#include <errno.h>

int main(void)
{
	static uint8_t body[4096];
	uint64_t seed = 88172645463325252u;
	uint32_t first = 0, next = 0;
	struct ring *r = ring_new(1000);
	size_t len;

	test("what goes in comes out, in order");
	CHECK_EQ(ring_put(r, "ab", 2, "cde", 3), 0);
	CHECK_EQ(ring_put(r, "", 0, "x", 1), 0);
	CHECK(!memcmp(ring_peek(r, &len), "abcde", 5));
	CHECK_EQ(len, 5);
	CHECK_EQ(ring_bytes(r), 6);
	ring_pop(r);
	CHECK(!memcmp(ring_peek(r, &len), "x", 1));
	ring_pop(r);
	CHECK(ring_peek(r, &len) == NULL);
	ring_pop(r);
	CHECK_EQ(ring_records(r), 0);

	test("a record larger than the ring is refused and pushes nothing out");
	CHECK_EQ(ring_put(r, "", 0, "x", 1), 0);
	CHECK_EQ(ring_put(r, "", 0, body, 2000), -EMSGSIZE);
	CHECK_EQ(ring_records(r), 1);
	ring_pop(r);

	test("for a million random puts and pops: the newest are there, whole and in order, and all that went are counted");
	for (int i = 0; i < 1000000 && !check_errors; i++) {
		uint64_t dice = check_random(&seed);

		if (dice % 3) {
			size_t n = dice >> 32 & 255;
			int out;

			memset(body, (int)next, n);
			out = ring_put(r, &next, sizeof next, body, n);
			CHECK(out >= 0);
			first += (uint32_t)out;
			next++;
		} else {
			uint32_t number;
			const uint8_t *p = ring_peek(r, &len);

			CHECK_EQ(p != NULL, first != next);
			if (!p)
				continue;
			memcpy(&number, p, sizeof number);
			CHECK_EQ(number, first);
			for (size_t k = sizeof number; k < len; k++)
				CHECK_EQ(p[k], (uint8_t)number);
			ring_pop(r);
			first++;
		}
		CHECK_EQ(ring_records(r), next - first);
	}
	test("a full ring of 1000 bytes holds at least three records of 255");
	while (ring_records(r))
		ring_pop(r);
	for (int i = 0; i < 100; i++)
		CHECK(ring_put(r, "", 0, body, 255) >= 0);
	CHECK_EQ(ring_records(r), 3);
	ring_free(r);
	return done();
}
