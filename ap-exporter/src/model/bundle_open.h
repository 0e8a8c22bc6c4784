/* bundle_open.h: a bundle on its way in; of bundle*.c alone. */
#ifndef OAL_BUNDLE_OPEN_H
#define OAL_BUNDLE_OPEN_H

#include "model/bundle.h"
#include "model/bundle_parts.h"

#include <stdio.h>

/* Field numbers of Bundle. */
enum { BUNDLE_FORMAT = 1, BUNDLE_SERIAL, BUNDLE_TARGET, BUNDLE_SOURCE, BUNDLE_MODEL, BUNDLE_VERSION, BUNDLE_ROLLBACK_TO,
	BUNDLE_PROGRAM, BUNDLE_TREE, BUNDLE_WINDOW, BUNDLE_POLICY, BUNDLE_GOLDEN, BUNDLE_MODELS, BUNDLE_LAW,
	BUNDLE_OF_POLICY, N_BUNDLE };
enum { BUNDLE_HASH_BYTES = 32 };

struct bundle {
	struct bundle_head head;
	uint8_t rollback[BUNDLE_MAX_ROLLBACK][BUNDLE_HASH_BYTES];
	unsigned n_rollback;
	struct oal_policy policy; /* without a name: only its mode counts */
	struct oal_feature_program program;
	struct bundle_law law;
	struct model models[OAL_SETTING_MAX_BUNDLE_MODELS];
	unsigned n_models;
	const struct tree *tree; /* of role class; NULL: it has none */
	const struct sum *window; /* of role window; NULL: it has none */
	size_t size; /* of the whole */
	_Alignas(int64_t) uint8_t memory[]; /* of program and models */
};

/* A model as in the payload. */
struct opening_model {
	char role[MODEL_MAX_ROLE + 1];
	const struct model_ops *ops;
	struct part table;
	struct model_golden golden;
};

struct opening {
	const struct bundle_terms *terms;
	struct bundle_head head;
	const uint8_t *payload, *signature;
	size_t len, signature_len;
	uint64_t key_id;
	const struct trusted_key *key; /* that it was signed with; NULL: nobody asked */
	struct pb_field fields[N_BUNDLE];
	struct part program, tree, window, policy, golden, law_message;
	struct opening_model models[OAL_SETTING_MAX_BUNDLE_MODELS];
	unsigned n_models;
	struct bundle_law law;
	char *err;
	size_t err_size;
};

#define REFUSE(o, reason, ...) (snprintf((o)->err, (o)->err_size, __VA_ARGS__), OAL_BUNDLE_REASON_##reason)

/* The payload as it was signed: is it whole, of a known format, of who may sign it, for this AP, and not one of the
 * past? Fills the head, and finds models and law, whatever the format. */
enum oal_bundle_reason bundle_payload_read(struct opening *);
/* Format 1: golden vectors of a model that is not there. */
bool bundle_payload_has_spare_golden(const struct opening *);

#endif
