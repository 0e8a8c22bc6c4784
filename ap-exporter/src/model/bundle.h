/* bundle.h: what is pushed to an AP (schema/README.md, "Bundles"): a feature program and models, signed.
 *
 * bundle_open() checks everything, in the contract's order, runs the golden vectors, and hands out a bundle that can be
 * used whole; or it hands out none and says why. It trusts no byte; a bundle is one allocation, bounded by the
 * contract's limits (at most some 600 KiB a model, 20 KiB for a tree of 255 nodes), and keeps nothing of the bytes that
 * it came from. */
#ifndef OAL_BUNDLE_H
#define OAL_BUNDLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "oal_features.h"
#include "oal_policy.h"
#include "oal_schema.h"
#include "enrol/signature.h"
#include "enrol/trusted_keys.h"
#include "model/bundle_law.h"
#include "model/model.h"

struct bundle;

/* POLICY: characters of a policy's name; POLICIES: policies that an AP has a bundle of at once. */
enum { BUNDLE_MAX_TEXT = 127, BUNDLE_MAX_ROLLBACK = 4, BUNDLE_MAX_POLICY = 31, BUNDLE_MAX_POLICIES = 4 };

/* What an AP asks of a bundle. */
struct bundle_terms {
	/* NULL: the signature is not looked at. For tools that show a bundle; never for one to be used. */
	const struct trusted_keys *keys;
	signature_verify *verify;
	const char *ap_id, *site; /* ap_id NULL: any target */
	/* In any order, NULL for none: that of the same policy is what a serial must be greater than. */
	const struct bundle *in_force[BUNDLE_MAX_POLICIES];
};

/* Who a bundle is. After a refusal as much of it as was read from bytes that could be trusted so far: `hash` and `id`
 * once the envelope was whole, the rest once the signature was good (or keys were NULL) and the payload whole; 0
 * otherwise. */
struct bundle_head {
	uint8_t hash[32]; /* SHA-256 of the payload; in hex it is the ETag */
	uint64_t id; /* its first 8 bytes, big-endian, without the highest bit */
	int64_t serial; /* microseconds since 1970 */
	uint32_t version;
	uint32_t bytes; /* of the signed bundle */
	uint8_t source; /* 1 registry, 2 online */
	char target[BUNDLE_MAX_TEXT + 1], model[BUNDLE_MAX_TEXT + 1];
	char of_policy[BUNDLE_MAX_POLICY + 1]; /* the policy it belongs to; rwnd-fair in format 1 */
};

/* OAL_BUNDLE_REASON_NONE and a bundle; or why not, with the particulars in `err` (at most 200 characters matter).
 * `head` may be NULL. */
enum oal_bundle_reason bundle_open(struct bundle **, const uint8_t *bytes, size_t len, const struct bundle_terms *,
                                   struct bundle_head *head, char *err, size_t err_size);
void bundle_free(struct bundle *);

const struct bundle_head *bundle_head(const struct bundle *);
/* All live as long as the bundle. Names of features are not in a bundle: `name` and `names` of the program are NULL. */
const struct oal_feature_program *bundle_program(const struct bundle *);
const struct tree *bundle_tree(const struct bundle *); /* of role class; NULL: it has none */
const struct sum *bundle_window(const struct bundle *); /* of role window; NULL: it has none */
const struct bundle_law *bundle_law(const struct bundle *);
unsigned bundle_n_models(const struct bundle *); /* at most OAL_SETTING_MAX_BUNDLE_MODELS */
const struct model *bundle_model(const struct bundle *, unsigned i);
/* What the bundle asks for; how far an AP goes is its own matter. */
enum oal_policy_mode bundle_mode(const struct bundle *);
const struct oal_policy *bundle_policy(const struct bundle *); /* NULL: it has no control */
/* Does this bundle allow to go back to the one with this hash? */
bool bundle_allows_rollback(const struct bundle *, const uint8_t hash[32]);
size_t bundle_memory(const struct bundle *);

const char *bundle_reason_name(enum oal_bundle_reason);

#endif
