/* base64.h: reads base64 (RFC 4648). Strict: bits that are left over are 0. */
#ifndef OAL_BASE64_H
#define OAL_BASE64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BASE64_KEY_BYTES = 32, BASE64_KEY_TEXT = 44 };

/* 43 characters and one "=": a key of 32 bytes. */
bool base64_key(uint8_t raw[BASE64_KEY_BYTES], const char text[BASE64_KEY_TEXT]);
/* base64url without padding; `out` has room for len / 4 * 3 + 2 bytes. False: not that. */
bool base64url_decode(uint8_t *out, size_t *n, const char *text, size_t len);

#endif
