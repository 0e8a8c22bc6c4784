#include "enrol/trusted_keys.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/base64.h"
#include "base/sha256.h"
#include "base/text_file.h"
#include "base/words.h"
#include "oal_policy.h"

enum { MAX_FILE = 16384 };

#define ATTRIBUTES                                                                                                     \
	"role=registry|trainer|operator scope=fleet|site/SITE|ap/AP_ID max_mode=off|shadow|enforce"
/* Why a line is refused; 0 or -EINVAL. */
#define WRONG(...) (snprintf(err, err_size, __VA_ARGS__), -EINVAL)

enum attribute { ROLE, SCOPE, MAX_MODE, N_ATTRIBUTES };
static const char *const attributes[N_ATTRIBUTES] = { "role", "scope", "max_mode" };
static const char *const modes[] = OAL_POLICY_MODES;
static const char fleet[] = "fleet", site_of[] = "site/", ap_of[] = "ap/";
static const struct {
	const char *name;
	uint8_t sources;
} roles[] = { { "registry", 1 << 1 }, { "trainer", 1 << 2 }, { "operator", 1 << 1 } };
enum { N_ROLES = sizeof roles / sizeof roles[0], N_MODES = sizeof modes / sizeof modes[0] };

static bool is(const char *word, size_t len, const char *name)
{
	return strlen(name) == len && !memcmp(word, name, len);
}

static bool begins(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

/* fleet, site/NAME or ap/NAME, NAME being [A-Za-z0-9][A-Za-z0-9._-]{0,63} */
static bool is_scope(const char *scope)
{
	static const char first[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	const char *const name = begins(scope, site_of) ? scope + strlen(site_of)
	                         : begins(scope, ap_of) ? scope + strlen(ap_of)
	                                                : "";
	const size_t len = strlen(name);

	return !strcmp(scope, fleet) ||
	       (len && len <= 64 && strspn(name, first) == len && !strchr("._-", name[0]));
}

static int parse_role(struct trusted_key *k, const char *value, size_t len, char *err, size_t err_size)
{
	unsigned i;

	for (i = 0; i < N_ROLES; i++)
		if (is(value, len, roles[i].name)) {
			k->role = roles[i].name;
			k->sources = roles[i].sources;
			return 0;
		}
	return WRONG("role=%.*s; it is registry, trainer or operator", (int)len, value);
}

static int parse_mode(struct trusted_key *k, const char *value, size_t len, char *err, size_t err_size)
{
	uint8_t i;

	for (i = 0; i < N_MODES; i++)
		if (is(value, len, modes[i])) {
			k->max_mode = i;
			return 0;
		}
	return WRONG("max_mode=%.*s; it is off, shadow or enforce", (int)len, value);
}

static int parse_scope(struct trusted_key *k, const char *value, size_t len, char *err, size_t err_size)
{
	memcpy(k->scope, value, len < sizeof k->scope ? len : 0);
	k->scope[len < sizeof k->scope ? len : 0] = 0;
	return is_scope(k->scope) ? 0 : WRONG("scope=%.*s; it is fleet, site/SITE or ap/AP_ID", (int)len, value);
}

/* The words after the name, to the end of the line. */
static int parse_attributes(struct trusted_key *k, const char *at, const char *end, char *err, size_t err_size)
{
	static int (*const parse[N_ATTRIBUTES])(struct trusted_key *, const char *, size_t, char *, size_t) = {
		parse_role, parse_scope, parse_mode
	};
	bool given[N_ATTRIBUTES] = { false };
	unsigned i;
	size_t len;

	while ((len = word_next(&at, end))) {
		const char *const word = at - len, *const equals = memchr(word, '=', len);

		for (i = 0; i < N_ATTRIBUTES; i++)
			if (equals && is(word, (size_t)(equals - word), attributes[i]))
				break;
		if (i == N_ATTRIBUTES)
			return WRONG("attribute %.*s; a line has " ATTRIBUTES, (int)len, word);
		if (given[i])
			return WRONG("%s is there twice", attributes[i]);
		given[i] = true;
		if (parse[i](k, equals + 1, len - (size_t)(equals + 1 - word), err, err_size))
			return -EINVAL;
	}
	for (i = 0; i < N_ATTRIBUTES; i++)
		if (!given[i])
			return WRONG("%s is missing; a line has " ATTRIBUTES, attributes[i]);
	if (!strcmp(k->role, "operator") && !strcmp(k->scope, fleet))
		return WRONG("role=operator needs a scope narrower than fleet");
	return words_end(at, end) ? 0 : WRONG("a byte that is no text");
}

/* 1: a key, 0: an empty line, -EINVAL with the reason in `err`. */
static int parse_line(struct trusted_key *k, const char *at, const char *end, char *err, size_t err_size)
{
	uint8_t digest[32];
	size_t len;
	unsigned i;

	*k = (struct trusted_key){ 0 };
	if (words_end(at, end))
		return 0;
	snprintf(err, err_size, "not a key; a line is: ed25519 BASE64-OF-32-BYTES NAME " ATTRIBUTES);
	len = word_next(&at, end);
	if (len != 7 || memcmp(at - len, "ed25519", 7))
		return -EINVAL;
	if (word_next(&at, end) != BASE64_KEY_TEXT || !base64_key(k->raw, at - BASE64_KEY_TEXT))
		return -EINVAL;
	len = word_next(&at, end);
	if (!len || len >= sizeof k->name)
		return -EINVAL;
	memcpy(k->name, at - len, len);
	sha256(digest, k->raw, sizeof k->raw);
	for (i = 0; i < 8; i++)
		k->id = k->id << 8 | digest[i];
	return !words_end(at, end) && parse_attributes(k, at, end, err, err_size) ? -EINVAL : 1;
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
		char why[256];
		int ret;

		eol = eol ? eol : end;
		ret = parse_line(&k, at, eol, why, sizeof why);
		if (ret > 0 && trusted_keys_find(&keys, k.id)) {
			snprintf(why, sizeof why, "this key is there twice");
			ret = -EINVAL;
		}
		if (ret < 0) {
			snprintf(err, err_size, "%s:%u: %s", path, line, why);
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
		snprintf(err, err_size, "%s: no key in it; a line is: ed25519 BASE64-OF-32-BYTES NAME " ATTRIBUTES,
		         path);
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

/* May a key of this scope sign for this target, as far as that can be said without knowing who is at a site? */
static bool covers(const char *scope, const char *target)
{
	return !strcmp(scope, fleet) || !strcmp(scope, target) || (begins(scope, site_of) && begins(target, ap_of));
}

static bool is_inside(const char *scope, const char *ap_id, const char *site)
{
	return !strcmp(scope, fleet) || (begins(scope, ap_of) && !strcmp(scope + strlen(ap_of), ap_id)) ||
	       (begins(scope, site_of) && site && !strcmp(scope + strlen(site_of), site));
}

#define REFUSE(...) (snprintf(err, err_size, __VA_ARGS__), false)

bool trusted_key_may(const struct trusted_key *k, const struct trusted_key_use *u, char *err, size_t err_size)
{
	/* a mode that is none is found later, by who reads the policy */
	const int64_t mode = u->mode < OAL_POLICY_MODE_ENFORCE ? u->mode : OAL_POLICY_MODE_ENFORCE;

	if (!k->sources)
		return REFUSE("key %s may sign nothing: its line lacks " ATTRIBUTES, k->name);
	if (!(k->sources >> u->source & 1))
		return REFUSE("key %s: role %s may not sign source %s", k->name, k->role,
		              u->source == 1 ? "registry" : "online");
	if (!covers(k->scope, u->target))
		return REFUSE("key %s: its scope is %s, the bundle is for %s", k->name, k->scope, u->target);
	if (u->ap_id && !is_inside(k->scope, u->ap_id, u->site))
		return REFUSE("key %s: its scope is %s, this is %s at site %s", k->name, k->scope, u->ap_id,
		              u->site && u->site[0] ? u->site : "-");
	if (mode > k->max_mode)
		return REFUSE("key %s: a policy of mode %s is above its max_mode=%s", k->name, modes[mode],
		              modes[k->max_mode]);
	return true;
}
