/* trusted_keys.h: the public keys whose bundles an AP takes. A text file: lines `ed25519 BASE64 NAME`, # begins a
 * comment. */
#ifndef OAL_TRUSTED_KEYS_H
#define OAL_TRUSTED_KEYS_H

#include <stddef.h>
#include <stdint.h>

#include "enrol/signature.h"

enum { TRUSTED_KEYS_MAX = 16 };

struct trusted_key {
	uint64_t id; /* first 8 bytes, big-endian, of the SHA-256 of `raw` */
	uint8_t raw[SIGNATURE_KEY_BYTES];
	char name[64];
};

struct trusted_keys {
	unsigned n;
	struct trusted_key key[TRUSTED_KEYS_MAX];
};

/* 0, or negative errno with file and line in `err`: -EINVAL for a line that is not a key, a file without any, or more
 * than fit; what open() or read() gave. The keys are as they were unless 0. */
int trusted_keys_read(struct trusted_keys *, const char *path, char *err, size_t err_size);
/* The same from a text; `path` is for the message. */
int trusted_keys_parse(struct trusted_keys *, const char *text, size_t len, const char *path, char *err,
                       size_t err_size);
const struct trusted_key *trusted_keys_find(const struct trusted_keys *, uint64_t id);

#endif
