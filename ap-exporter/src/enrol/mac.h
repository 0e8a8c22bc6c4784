/* mac.h: the MAC that says which AP made a batch (schema/README.md, "Who made a batch"): HMAC-SHA256 (RFC 2104), cut to
 * 128 bits. */
#ifndef OAL_MAC_H
#define OAL_MAC_H

#include <stddef.h>
#include <stdint.h>

#include "base/sha256.h"

#define MAC_HEADER "oal-mac" /* name of the Kafka header */
enum { MAC_KEY_BYTES = 32, MAC_BYTES = 16, MAC_HEADER_BYTES = 1 + MAC_BYTES };

/* A key, with both pads of the HMAC hashed: a batch then costs one pass over it. */
struct mac_key {
	struct sha256 inner, outer;
	uint8_t id;
};

void mac_key_begin(struct mac_key *, uint8_t id, const uint8_t key[MAC_KEY_BYTES]);
/* The key that an AP at a site (empty: none) gets, from the platform's master key. */
void mac_key_derive(uint8_t key[MAC_KEY_BYTES], const uint8_t master[MAC_KEY_BYTES], const char *ap_id,
                    const char *site);
/* The header's value for a batch of `topic` (OAL_TOPIC_…). */
void mac_header(uint8_t header[MAC_HEADER_BYTES], const struct mac_key *, int topic, const void *batch, size_t len);

#endif
