#include "enrol/trusted_keys.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/base64.h"
#include "base/sha256.h"
#include "base/text_file.h"
#include "base/words.h"

enum { MAX_FILE = 16384 };

/* 1: a key, 0: an empty line, -EINVAL. */
static int parse_line(struct trusted_key *k, const char *at, const char *end)
{
	uint8_t digest[32];
	size_t len;
	unsigned i;

	if (words_end(at, end))
		return 0;
	len = word_next(&at, end);
	if (len != 7 || memcmp(at - len, "ed25519", 7))
		return -EINVAL;
	if (word_next(&at, end) != BASE64_KEY_TEXT || !base64_key(k->raw, at - BASE64_KEY_TEXT))
		return -EINVAL;
	len = word_next(&at, end);
	if (!len || len >= sizeof k->name || !words_end(at, end))
		return -EINVAL;
	memcpy(k->name, at - len, len);
	k->name[len] = 0;
	sha256(digest, k->raw, sizeof k->raw);
	for (k->id = i = 0; i < 8; i++)
		k->id = k->id << 8 | digest[i];
	return 1;
}

int trusted_keys_parse(struct trusted_keys *out, const char *text, size_t len, const char *path, char *err,
                       size_t err_size)
{
	const char *at = text, *const end = text + len;
	struct trusted_keys keys = { 0 };
	unsigned line;

	for (line = 1; at < end; line++) {
		const char *eol = memchr(at, '\n', (size_t)(end - at));
		struct trusted_key k;
		int ret;

		eol = eol ? eol : end;
		ret = parse_line(&k, at, eol);
		if (ret < 0) {
			snprintf(err, err_size, "%s:%u: not a key; a line is: ed25519 BASE64-OF-32-BYTES NAME", path,
			         line);
			return ret;
		}
		if (ret && keys.n == TRUSTED_KEYS_MAX) {
			snprintf(err, err_size, "%s:%u: more than %d keys", path, line, TRUSTED_KEYS_MAX);
			return -EINVAL;
		}
		if (ret)
			keys.key[keys.n++] = k;
		at = eol < end ? eol + 1 : end;
	}
	if (!keys.n) {
		snprintf(err, err_size, "%s: no key in it; a line is: ed25519 BASE64-OF-32-BYTES NAME", path);
		return -EINVAL;
	}
	*out = keys;
	return 0;
}

int trusted_keys_read(struct trusted_keys *keys, const char *path, char *err, size_t err_size)
{
	char *text;
	size_t len;
	int ret = text_file_read(&text, &len, path, MAX_FILE);

	if (ret) {
		snprintf(err, err_size, "cannot read the trusted keys %s: %s", path,
		         ret == -EFBIG ? "more than 16 KiB" : strerror(-ret));
		return ret;
	}
	ret = trusted_keys_parse(keys, text, len, path, err, err_size);
	free(text);
	return ret;
}

const struct trusted_key *trusted_keys_find(const struct trusted_keys *keys, uint64_t id)
{
	unsigned i;

	for (i = 0; i < keys->n; i++)
		if (keys->key[i].id == id)
			return &keys->key[i];
	return NULL;
}
