#include "enrol/mac.h"

#include <string.h>

static void begin_padded(struct sha256 *s, const uint8_t key[MAC_KEY_BYTES], uint8_t pad)
{
	uint8_t block[SHA256_BLOCK];
	unsigned i;

	memset(block, pad, sizeof block);
	for (i = 0; i < MAC_KEY_BYTES; i++)
		block[i] ^= key[i];
	sha256_begin(s);
	sha256_add(s, block, sizeof block);
}

void mac_key_begin(struct mac_key *k, uint8_t id, const uint8_t key[MAC_KEY_BYTES])
{
	begin_padded(&k->inner, key, 0x36);
	begin_padded(&k->outer, key, 0x5c);
	k->id = id;
}

/* `inner` has been given the message. */
static void finish(const struct mac_key *k, struct sha256 *inner, uint8_t mac[SHA256_BYTES])
{
	struct sha256 outer = k->outer;

	sha256_end(inner, mac);
	sha256_add(&outer, mac, SHA256_BYTES);
	sha256_end(&outer, mac);
}

void mac_key_derive(uint8_t key[MAC_KEY_BYTES], const uint8_t master[MAC_KEY_BYTES], const char *ap_id,
                    const char *site)
{
	static const char what[] = "oal batch key v1"; /* with its NUL */
	struct mac_key k;
	struct sha256 inner;

	mac_key_begin(&k, 0, master);
	inner = k.inner;
	sha256_add(&inner, what, sizeof what);
	sha256_add(&inner, ap_id, strlen(ap_id) + 1);
	sha256_add(&inner, site, strlen(site));
	finish(&k, &inner, key);
}

void mac_header(uint8_t header[MAC_HEADER_BYTES], const struct mac_key *k, int topic, const void *batch, size_t len)
{
	static const char what[] = "oal batch v1"; /* with its NUL */
	const uint8_t topic_byte = (uint8_t)topic;
	struct sha256 inner = k->inner;
	uint8_t mac[SHA256_BYTES];

	sha256_add(&inner, what, sizeof what);
	sha256_add(&inner, &topic_byte, 1);
	sha256_add(&inner, batch, len);
	finish(k, &inner, mac);
	header[0] = k->id;
	memcpy(header + 1, mac, MAC_BYTES);
}
