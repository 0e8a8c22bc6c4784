#include "netlink/same_bytes.h"

#include <stdint.h>
#include <string.h>

typedef uint32_t __attribute__((may_alias)) word;

enum { WORDS = 4 }; /* at a time */

SAME_BYTES_CODE bool same_bytes(const void *a, const void *b, size_t n)
{
	const word *x = a, *y = b;

	if (((uintptr_t)a | (uintptr_t)b) % sizeof *x)
		return !memcmp(a, b, n);
	for (; n >= WORDS * sizeof *x; n -= WORDS * sizeof *x, x += WORDS, y += WORDS)
		if ((x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2]) | (x[3] ^ y[3]))
			return false;
	return !memcmp(x, y, n);
}
