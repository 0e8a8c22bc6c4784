/* sha256.h: SHA-256 (FIPS 180-4), for the hash of a feature program. Not for secrets. */
#ifndef OAL_SHA256_H
#define OAL_SHA256_H

#include <stddef.h>
#include <stdint.h>

void sha256(uint8_t digest[32], const uint8_t *bytes, size_t len);

#endif
