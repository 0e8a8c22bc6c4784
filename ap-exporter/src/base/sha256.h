/* sha256.h: SHA-256 (FIPS 180-4). Its time does not depend on what is hashed. */
#ifndef OAL_SHA256_H
#define OAL_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { SHA256_BYTES = 32, SHA256_BLOCK = 64 };

/* A hash under way; a copy of it goes on from there. */
struct sha256 {
	uint32_t state[8];
	uint64_t len;
	uint8_t rest[SHA256_BLOCK]; /* of the block that is not full: len % 64 bytes */
};

void sha256_begin(struct sha256 *);
void sha256_add(struct sha256 *, const void *bytes, size_t len);
/* After it the hash is to be begun again. */
void sha256_end(struct sha256 *, uint8_t digest[SHA256_BYTES]);

/* All at once. */
void sha256(uint8_t digest[SHA256_BYTES], const uint8_t *bytes, size_t len);

#endif
