/* test_trusted_keys.c: files of trusted keys, and which bundles a key may sign (schema/golden/keys.*). */
#include "bundle_golden.h"

static const char key_a[] = "ed25519 iojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w= a";

static int parse(struct trusted_keys *keys, const char *text, char err[256])
{
	return trusted_keys_parse(keys, text, strlen(text), "keys", err, 256);
}

static void files(void)
{
	static const struct {
		const char *text;
		int n; /* −1: refused */
	} files[] = {
		{ "ed25519 iojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w= a\n", 1 },
		{ "# c\n\n  ed25519\tiojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w=  a # c\r\ned25519 "
		  "gTl3Dqh9F19WoxYh9LmdT2vEyTzdiqb1Zs8AKdSLlOQ= b",
		  2 },
		{ "", -1 },
		{ "# only a comment\n", -1 },
	};
	struct trusted_keys keys = { .n = 9 };
	char err[256], twice[256];
	unsigned i;

	test("a trusted-keys file is read, or refused with its line and nothing changed");
	for (i = 0; i < sizeof files / sizeof files[0]; i++) {
		struct trusted_keys k = keys;
		const int ret = parse(&k, files[i].text, err);

		CHECK_EQ(ret ? -1 : (int)k.n, files[i].n);
		CHECK(!ret || (k.n == 9 && strstr(err, "keys:")));
	}
	CHECK(trusted_keys_read(&keys, "/nonexistent", err, sizeof err) < 0 && strstr(err, "/nonexistent"));
	snprintf(twice, sizeof twice, "%s\n\n%s role=trainer scope=fleet max_mode=off\n", key_a, key_a);
	CHECK(parse(&keys, twice, err) < 0 && !strcmp(err, "keys:3: this key is there twice") && keys.n == 9);
	keys = golden_keys();
	CHECK(keys.n == 2 && trusted_keys_find(&keys, keys.key[1].id) == &keys.key[1] && !trusted_keys_find(&keys, 5));
	CHECK(!strcmp(keys.key[0].name, "test-1"));
}

/* What a line says, as keys.lines.txt has it. */
static void say(char out[160], const char *line, size_t len)
{
	static const char *const modes[] = OAL_POLICY_MODES;
	struct trusted_keys keys = { 0 };
	char err[256];

	if (!trusted_keys_parse(&keys, line, len, "keys", err, sizeof err))
		snprintf(out, 160, keys.key[0].role ? "role=%s scope=%s max_mode=%s" : "old", keys.key[0].role,
		         keys.key[0].scope, modes[keys.key[0].max_mode]);
	else
		snprintf(out, 160, strstr(err, "no key in it") ? "nothing" : "refused");
	if (!strcmp(out, "refused"))
		CHECK(strstr(err, "keys:1: "));
}

static void lines(void)
{
	size_t size;
	char *const text = (char *)check_file(GOLDEN "keys.lines.txt", &size), *at = text, *end;
	unsigned n = 0;

	test("each line of a trusted-keys file says what the contract says it does");
	for (; at < text + size; at = end + 1, n++) {
		char *const tab = memchr(at, '\t', (size_t)(text + size - at));
		char said[160];

		end = memchr(tab, '\n', (size_t)(text + size - tab));
		say(said, tab + 1, (size_t)(end - tab - 1));
		*tab = 0;
		CHECK(!strcmp(said, at));
		if (strcmp(said, at))
			printf("# line %u: %s, not %s\n", n + 1, said, at);
	}
	CHECK(n > 50);
	free(text);
}

/* In place of libcrypto, which MIPS has not: test_daemon_signature.c looks at signatures. */
static int verified(const uint8_t *key, const uint8_t *signature, const uint8_t *payload, size_t len)
{
	return 0;
}

static const char *verdict(const struct golden_case *c, const struct trusted_keys *keys, const char *ap_id,
                           const char *site, char err[256])
{
	const struct bundle_terms terms = { .keys = keys, .verify = verified, .ap_id = ap_id, .site = site };
	struct bundle *b;
	const enum oal_bundle_reason reason = bundle_open(&b, c->bytes, c->len, &terms, NULL, err, 256);

	CHECK(!b == (reason != OAL_BUNDLE_REASON_NONE));
	bundle_free(b);
	return reason == OAL_BUNDLE_REASON_NONE ? "ok" : bundle_reason_name(reason);
}

static void permissions(const struct golden_bundles *g)
{
	const struct trusted_keys keys = golden_keys_file(GOLDEN "keys.trusted");
	unsigned i, refused = 0;
	char err[256];

	test("a bundle is taken only if its key may sign its source, for its target and this AP, and its mode");
	for (i = 0; i < g->n; i++) {
		const struct golden_case *const c = &g->at[i]; /* in_force: the verdict at AP ap-1 of site lab */
		const char *const at_ap = verdict(c, &keys, "ap-1", "lab", err), *at_platform;

		at_platform = verdict(c, &keys, NULL, NULL, err);
		CHECK(!strcmp(at_ap, c->in_force) && !strcmp(at_platform, c->outcome));
		if (strcmp(at_ap, c->in_force) || strcmp(at_platform, c->outcome))
			printf("# %s: %s and %s, not %s and %s\n", c->name, at_ap, at_platform, c->in_force,
			       c->outcome);
		refused += !strcmp(at_ap, "not_permitted");
	}
	CHECK(refused >= 18 && g->n - refused >= 18);

	test("an AP without a site takes nothing of a site's key");
	CHECK(!strcmp(verdict(golden_find(g, "scope_site_ap"), &keys, "ap-1", "", err), "not_permitted"));
	CHECK(!strcmp(verdict(golden_find(g, "scope_site_ap"), &keys, "ap-1", NULL, err), "not_permitted"));

	test("a key of an older line may sign nothing, and the refusal says what to write");
	CHECK(!strcmp(verdict(golden_find(g, "old_line"), &keys, "ap-1", "lab", err), "not_permitted"));
	CHECK(strstr(err, "key old may sign nothing") && strstr(err, "role=registry|trainer|operator"));
}

int main(void)
{
	static struct golden_bundles g;

	golden_read(&g, "keys");
	files();
	lines();
	permissions(&g);
	golden_free(&g);
	return done();
}
