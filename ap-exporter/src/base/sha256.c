#include "base/sha256.h"

#include <string.h>

/* Fractional parts of the cube roots of the first 64 primes. */
static const uint32_t K[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t v, unsigned n)
{
	return v >> n | v << (32 - n);
}

/* Built for speed eight rounds stand in a row, so that no word moves; built for size there is one. */
#ifndef __OPTIMIZE_SIZE__
#define ROUNDS_IN_A_ROW _Pragma("GCC unroll 8")
#else
#define ROUNDS_IN_A_ROW
#endif

static void block(uint32_t s[8], const uint8_t *p)
{
	uint32_t w[64], a = s[0], b = s[1], c = s[2], d = s[3], e = s[4], f = s[5], g = s[6], h = s[7];
	unsigned i;

	for (i = 0; i < 16; i++)
		w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 | (uint32_t)p[4 * i + 2] << 8 |
		       p[4 * i + 3];
	for (; i < 64; i++)
		w[i] = w[i - 16] + w[i - 7] + (rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3) +
		       (rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10);
	ROUNDS_IN_A_ROW
	for (i = 0; i < 64; i++) {
		const uint32_t t1 = h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) + K[i] +
		                    w[i];
		const uint32_t t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));

		h = g, g = f, f = e, e = d + t1;
		d = c, c = b, b = a, a = t1 + t2;
	}
	s[0] += a, s[1] += b, s[2] += c, s[3] += d;
	s[4] += e, s[5] += f, s[6] += g, s[7] += h;
}

void sha256_begin(struct sha256 *s)
{
	static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
	                                  0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

	memcpy(s->state, first, sizeof first);
	s->len = 0;
}

void sha256_add(struct sha256 *s, const void *bytes, size_t len)
{
	const size_t have = s->len % SHA256_BLOCK, room = SHA256_BLOCK - have;
	const uint8_t *at = bytes;

	s->len += len;
	if (have && len >= room) {
		memcpy(s->rest + have, at, room);
		block(s->state, s->rest);
		at += room;
		len -= room;
	} else if (have) {
		memcpy(s->rest + have, at, len);
		return;
	}
	for (; len >= SHA256_BLOCK; len -= SHA256_BLOCK, at += SHA256_BLOCK)
		block(s->state, at);
	if (len)
		memcpy(s->rest, at, len);
}

void sha256_end(struct sha256 *s, uint8_t digest[SHA256_BYTES])
{
	static const uint8_t pad[SHA256_BLOCK] = {0x80};
	const uint64_t bits = s->len * 8;
	uint8_t tail[8];
	size_t i;

	for (i = 0; i < 8; i++)
		tail[7 - i] = (uint8_t)(bits >> 8 * i);
	sha256_add(s, pad, 1 + (SHA256_BLOCK - 9 - s->len % SHA256_BLOCK) % SHA256_BLOCK);
	sha256_add(s, tail, sizeof tail);
	for (i = 0; i < SHA256_BYTES; i++)
		digest[i] = (uint8_t)(s->state[i / 4] >> (24 - 8 * (i % 4)));
}

void sha256(uint8_t digest[SHA256_BYTES], const uint8_t *bytes, size_t len)
{
	struct sha256 s;

	sha256_begin(&s);
	sha256_add(&s, bytes, len);
	sha256_end(&s, digest);
}
