/* signature.h: Ed25519 over the domain "OALB1" and a bundle's payload. */
#ifndef OAL_SIGNATURE_H
#define OAL_SIGNATURE_H

#include <stddef.h>
#include <stdint.h>

#define SIGNATURE_DOMAIN "OALB1"
enum { SIGNATURE_BYTES = 64, SIGNATURE_KEY_BYTES = 32 };

/* 0: made with the private half of `key`. -EBADMSG: not. -ENOMEM. */
typedef int signature_verify(const uint8_t key[SIGNATURE_KEY_BYTES], const uint8_t signature[SIGNATURE_BYTES],
                             const uint8_t *payload, size_t len);

/* By libcrypto; without it -ENOTSUP. */
signature_verify signature_verify_openssl;

#endif
