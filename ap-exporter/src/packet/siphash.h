/* siphash.h: SipHash-2-4 (Aumasson, Bernstein 2012), a keyed hash: addresses can be compared but not read back. */
#ifndef OAL_SIPHASH_H
#define OAL_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

enum { SIPHASH_KEY_BYTES = 16 };

uint64_t siphash(const uint8_t key[SIPHASH_KEY_BYTES], const uint8_t *bytes, size_t len);

#endif
