#include "enrol/mac_keys.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/base64.h"
#include "base/text_file.h"
#include "base/version.h"
#include "base/words.h"

#define A_LINE "a line is: AP_ID SITE KEY_ID BASE64-OF-32-BYTES (site - for none, key id 1 to 255)"

struct entry {
	char ap_id[MAC_NAME + 1], site[MAC_NAME + 1];
	struct mac_key key;
};

struct mac_keys {
	size_t n, room;
	struct entry *entries; /* by ap_id, one each */
};

static bool is_name(const char *s, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (!isalnum((unsigned char)s[i]) && (!i || !strchr("._-", s[i])))
			return false;
	return len && len <= MAC_NAME;
}

/* `at` is the end of a word of `len` characters. */
static bool read_name(char out[MAC_NAME + 1], const char *at, size_t len, bool may_be_none)
{
	if (may_be_none && len == 1 && at[-1] == '-')
		len = 0;
	else if (!is_name(at - len, len))
		return false;
	memcpy(out, at - len, len);
	out[len] = '\0';
	return true;
}

static unsigned read_id(const char *at, size_t len)
{
	unsigned id = 0;

	if (!len || len > 3 || *(at - len) == '0')
		return 0;
	for (const char *p = at - len; p < at; p++) {
		if (!isdigit((unsigned char)*p))
			return 0;
		id = id * 10 + (unsigned)(*p - '0');
	}
	return id <= 255 ? id : 0;
}

/* 1: a key, 0: an empty line, -EINVAL. */
static int parse_line(struct entry *e, const char *at, const char *end)
{
	uint8_t raw[BASE64_KEY_BYTES];
	unsigned id;
	size_t len;

	if (words_end(at, end))
		return 0;
	len = word_next(&at, end);
	if (!read_name(e->ap_id, at, len, false))
		return -EINVAL;
	len = word_next(&at, end);
	if (!len || !read_name(e->site, at, len, true))
		return -EINVAL;
	len = word_next(&at, end);
	id = read_id(at, len);
	if (!id || word_next(&at, end) != BASE64_KEY_TEXT || !base64_key(raw, at - BASE64_KEY_TEXT) ||
	    !words_end(at, end))
		return -EINVAL;
	mac_key_begin(&e->key, (uint8_t)id, raw);
	explicit_bzero(raw, sizeof raw);
	return 1;
}

static int add(struct mac_keys *k, const struct entry *e)
{
	if (k->n == k->room) {
		const size_t room = k->room ? 2 * k->room : 1; /* most APs have one */
		struct entry *more = realloc(k->entries, room * sizeof *more);

		if (!more)
			return -ENOMEM;
		k->entries = more;
		k->room = room;
	}
	k->entries[k->n++] = *e;
	return 0;
}

/* By AP, the newest key first. */
static int compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	const int names = strcmp(x->ap_id, y->ap_id);

	return names ? names : (int)y->key.id - (int)x->key.id;
}

/* Leaves the newest of each AP. Returns false where an AP has two keys of one id. */
static bool settle(struct mac_keys *k)
{
	size_t from, to = 0;

	qsort(k->entries, k->n, sizeof *k->entries, compare);
	for (from = 0; from < k->n; from++) {
		if (from && !compare(&k->entries[from - 1], &k->entries[from]))
			return false;
		if (!to || strcmp(k->entries[to - 1].ap_id, k->entries[from].ap_id)) {
			if (to != from)
				k->entries[to] = k->entries[from];
			to++;
		} /* else an older key of the same AP */
	}
	k->n = to;
	return true;
}

int mac_keys_parse(struct mac_keys **out, const char *text, size_t len, const char *path, char *err, size_t err_size)
{
	const char *at = text, *const end = text + len;
	struct mac_keys *k = calloc(1, sizeof *k);
	struct entry e;
	unsigned line;
	int ret = k ? 0 : -ENOMEM;

	for (line = 1; !ret && at < end; line++) {
		const char *eol = memchr(at, '\n', (size_t)(end - at));

		eol = eol ? eol : end;
		ret = parse_line(&e, at, eol);
		if (ret < 0)
			snprintf(err, err_size, "%s:%u: not a MAC key; " A_LINE, path, line);
		else if (ret)
			ret = add(k, &e);
		at = eol < end ? eol + 1 : end;
	}
	if (ret == -ENOMEM)
		snprintf(err, err_size, "%s: out of memory for its keys", path);
	if (!ret && !k->n) {
		snprintf(err, err_size, "%s: no MAC key in it; " A_LINE, path);
		ret = -EINVAL;
	}
	if (!ret && !settle(k)) {
		snprintf(err, err_size, "%s: an AP has two keys of one KEY_ID: leave one out; " A_LINE, path);
		ret = -EINVAL;
	}
	explicit_bzero(&e, sizeof e);
	if (ret)
		mac_keys_free(k);
	else
		*out = k;
	return ret;
}

int mac_keys_read(struct mac_keys **out, const char *path, char *err, size_t err_size)
{
	char *text;
	size_t len;
	int ret = text_file_read(&text, &len, path, MAC_KEYS_MAX_BYTES);

	if (ret) {
		snprintf(err, err_size, "cannot read the MAC keys %s: %s", path,
		         ret == -EFBIG ? "more than 1 MiB" : strerror(-ret));
		return ret;
	}
	ret = mac_keys_parse(out, text, len, path, err, err_size);
	explicit_bzero(text, len);
	free(text);
	return ret;
}

void mac_keys_free(struct mac_keys *k)
{
	if (!k)
		return;
	if (k->entries)
		explicit_bzero(k->entries, k->room * sizeof *k->entries);
	free(k->entries);
	free(k);
}

static const struct entry *find(const struct mac_keys *k, const char *ap_id, size_t len)
{
	size_t low = 0, high = k->n;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		const struct entry *e = &k->entries[middle];
		int c = strncmp(ap_id, e->ap_id, len);

		if (!c && !e->ap_id[len])
			return e;
		if (c > 0)
			low = middle + 1;
		else
			high = middle; /* also where ap_id is its beginning */
	}
	return NULL;
}

const struct mac_key *mac_keys_find(const struct mac_keys *k, const char *ap_id, size_t len)
{
	const struct entry *e = len <= MAC_NAME ? find(k, ap_id, len) : NULL;

	return e ? &e->key : NULL;
}

int mac_keys_check(const struct mac_keys *k, const char *path, const char *ap_id, const char *site, char *err,
                   size_t err_size)
{
	const size_t len = strlen(ap_id);
	const struct entry *e = len <= MAC_NAME ? find(k, ap_id, len) : NULL;

	if (e && !strcmp(e->site, site))
		return 0;
	if (e)
		snprintf(err, err_size,
		         "%s: the MAC key of " OAL_HERE " %s is for site '%s', but 'option site' is '%s': set that, or "
		         "enrol the " OAL_HERE " again",
		         path, ap_id, e->site, site);
	else
		snprintf(err, err_size,
		         "%s: no MAC key for " OAL_HERE " %s: its batches would be refused; enrol it (" OAL_PROGRAM
		         " enrol), or set "
		         "'option ap_id' to the name that it was enrolled with",
		         path, ap_id);
	return -ENOENT;
}
