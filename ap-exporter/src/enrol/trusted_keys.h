/* trusted_keys.h: the public keys whose bundles an AP takes, and which each may sign. A text file: lines
 * `ed25519 BASE64 NAME role=registry|trainer|operator scope=fleet|site/SITE|ap/AP_ID max_mode=off|shadow|enforce`, the
 * attributes in any order, # begins a comment. A line without attributes is an older one: its key may sign nothing. */
#ifndef OAL_TRUSTED_KEYS_H
#define OAL_TRUSTED_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "enrol/signature.h"

/* SCOPE: bytes of the longest scope, with its end. */
enum { TRUSTED_KEYS_MAX = 16, TRUSTED_KEY_SCOPE = 5 + 64 + 1 };

struct trusted_key {
	uint64_t id; /* first 8 bytes, big-endian, of the SHA-256 of `raw` */
	uint8_t raw[SIGNATURE_KEY_BYTES];
	char name[64];
	const char *role; /* NULL: a line without attributes */
	uint8_t sources; /* of bundles that it may sign: a bit 1 << source; 0: none */
	char scope[TRUSTED_KEY_SCOPE]; /* nothing outside it */
	uint8_t max_mode; /* enum oal_policy_mode: no policy above it */
};

/* A bundle that was signed, and who asks. */
struct trusted_key_use {
	unsigned source; /* 1 registry, 2 online */
	const char *target;
	int64_t mode; /* of its policy; OFF without one */
	const char *ap_id, *site; /* ap_id NULL: nobody in particular */
};

struct trusted_keys {
	unsigned n;
	struct trusted_key key[TRUSTED_KEYS_MAX];
};

/* 0, or negative errno with file and line in `err`: -EINVAL for a line that is not a key, a file without any, or more
 * than fit, a key that is there twice; what open() or read() gave. The keys are as they were unless 0. */
int trusted_keys_read(struct trusted_keys *, const char *path, char *err, size_t err_size);
/* The same from a text; `path` is for the message. */
int trusted_keys_parse(struct trusted_keys *, const char *text, size_t len, const char *path, char *err,
                       size_t err_size);
const struct trusted_key *trusted_keys_find(const struct trusted_keys *, uint64_t id);
/* May the key sign this? If not, `err` says why. */
bool trusted_key_may(const struct trusted_key *, const struct trusted_key_use *, char *err, size_t err_size);

#endif
