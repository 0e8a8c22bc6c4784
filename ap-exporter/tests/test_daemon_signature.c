/* test_daemon_signature.c: golden bundles with their signatures, by libcrypto. */
#include "bundle_golden.h"

int main(void)
{
	static struct golden_bundles g;
	const struct trusted_keys keys = golden_keys();
	struct trusted_keys one = keys, none = { 0 };
	const struct golden_case *other;
	struct bundle *b;
	char err[256];
	unsigned i, n = 0;

	golden_read(&g, "bundles");
	other = golden_find(&g, "ok_other_key");
	test("golden bundles are taken, or refused with their reason, signatures and all");
	for (i = 0; i < g.n; i++)
		CHECK(golden_holds(&g, &g.at[i], &keys, signature_verify_openssl));

	test("a bundle of a key that is trusted no longer is refused");
	one.n = 1;
	CHECK_EQ(golden_open(&b, &g, other, &one, signature_verify_openssl, NULL, err, sizeof err),
	         OAL_BUNDLE_REASON_UNKNOWN_KEY);
	CHECK_EQ(golden_open(&b, &g, other, &none, signature_verify_openssl, NULL, err, sizeof err),
	         OAL_BUNDLE_REASON_UNKNOWN_KEY);

	test("one flipped bit anywhere in the payload or the signature is a bad signature");
	for (i = 0; i < other->len * 8; i += 61) {
		struct bundle_terms terms = { .keys = &keys, .verify = signature_verify_openssl };
		uint8_t *bytes = malloc(other->len);
		enum oal_bundle_reason reason;

		memcpy(bytes, other->bytes, other->len);
		bytes[i / 8] ^= (uint8_t)(1u << (i & 7));
		reason = bundle_open(&b, bytes, other->len, &terms, NULL, err, sizeof err);
		CHECK(!b && (reason == OAL_BUNDLE_REASON_BAD_SIGNATURE || reason == OAL_BUNDLE_REASON_MALFORMED ||
		             reason == OAL_BUNDLE_REASON_UNKNOWN_KEY || reason == OAL_BUNDLE_REASON_UNSIGNED));
		n += reason == OAL_BUNDLE_REASON_BAD_SIGNATURE;
		free(bytes);
	}
	CHECK(n > 200);
	golden_free(&g);
	return done();
}
