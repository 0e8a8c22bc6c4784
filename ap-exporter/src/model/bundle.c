#include "model/bundle.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/bundle_parts.h"
#include "feature/feature.h"
#include "wire/protobuf.h"
#include "base/sha256.h"

/* Field numbers of SignedBundle and Bundle. */
enum { SIGNED_PAYLOAD = 1, SIGNED_KEY_ID, SIGNED_SIGNATURE, N_SIGNED };
enum { FORMAT = 1, SERIAL, TARGET, SOURCE, MODEL, VERSION, ROLLBACK_TO, FIRST_PART, N_BUNDLE = FIRST_PART + N_PARTS };
enum { KNOWN_FORMAT = 1, REGISTRY = 1, ONLINE = 2, HASH_BYTES = 32 };

struct bundle {
	struct bundle_head head;
	uint8_t rollback[BUNDLE_MAX_ROLLBACK][HASH_BYTES];
	unsigned n_rollback;
	struct oal_policy policy; /* without a name: only its mode counts */
	struct oal_feature_program program;
	struct tree tree;
	struct window window;
	bool has_window;
	size_t size; /* of the whole */
	_Alignas(int64_t) uint8_t memory[]; /* of program, tree and window model */
};

/* A bundle on its way in. */
struct opening {
	const struct bundle_terms *terms;
	struct bundle_head head;
	const uint8_t *payload, *signature;
	size_t len, signature_len;
	uint64_t key_id;
	struct pb_field fields[N_BUNDLE];
	struct part parts[N_PARTS];
	char *err;
	size_t err_size;
};

#define REFUSE(o, reason, ...) (snprintf((o)->err, (o)->err_size, __VA_ARGS__), OAL_BUNDLE_REASON_##reason)

/* --- envelope */

static enum oal_bundle_reason read_envelope(struct opening *o, const uint8_t *bytes, size_t len)
{
	static const uint8_t kinds[N_SIGNED] = { 0, PB_BYTES, PB_FIXED64, PB_BYTES };
	struct pb_field f[N_SIGNED];
	unsigned i;

	if (len > OAL_SETTING_MAX_BUNDLE_BYTES)
		return REFUSE(o, OVERSIZED, "%zu bytes; at most %d", len, OAL_SETTING_MAX_BUNDLE_BYTES);
	if (pb_read(f, kinds, N_SIGNED, bytes, len, 0, o->err, o->err_size))
		return OAL_BUNDLE_REASON_MALFORMED;
	if (!f[SIGNED_PAYLOAD].n)
		return REFUSE(o, MALFORMED, "no payload");
	o->payload = f[SIGNED_PAYLOAD].at;
	o->len = f[SIGNED_PAYLOAD].len;
	o->key_id = (uint64_t)f[SIGNED_KEY_ID].value;
	o->signature = f[SIGNED_SIGNATURE].at;
	o->signature_len = f[SIGNED_SIGNATURE].len;
	o->head.bytes = (uint32_t)len;
	sha256(o->head.hash, o->payload, o->len);
	for (i = 0; i < 8; i++)
		o->head.id = o->head.id << 8 | o->head.hash[i];
	o->head.id &= INT64_MAX;
	return o->signature_len ? OAL_BUNDLE_REASON_NONE : REFUSE(o, UNSIGNED, "no signature");
}

static enum oal_bundle_reason check_signature(struct opening *o)
{
	const struct trusted_key *key;
	int ret;

	if (!o->terms->keys)
		return OAL_BUNDLE_REASON_NONE;
	key = trusted_keys_find(o->terms->keys, o->key_id);
	if (!key)
		return REFUSE(o, UNKNOWN_KEY, "key %016llx is not among the %u trusted", (unsigned long long)o->key_id,
		              o->terms->keys->n);
	ret = o->signature_len == SIGNATURE_BYTES ? o->terms->verify(key->raw, o->signature, o->payload, o->len)
	                                          : -EBADMSG;
	if (ret == -ENOMEM)
		return REFUSE(o, NO_MEMORY, "no memory to verify the signature");
	if (ret == -ENOTSUP)
		return REFUSE(o, BAD_SIGNATURE, "built without libcrypto: no signature can be verified");
	if (ret)
		return REFUSE(o, BAD_SIGNATURE, "not made with key %s", key->name);
	return OAL_BUNDLE_REASON_NONE;
}

/* --- payload */

static enum oal_bundle_reason read_payload(struct opening *o)
{
	static const uint8_t kinds[N_BUNDLE] = { 0,          PB_U32,     PB_S64,     PB_TEXT,
	                                         PB_U32,     PB_TEXT,    PB_U32,     PB_BYTES | PB_LIST,
	                                         PB_MESSAGE, PB_MESSAGE, PB_MESSAGE, PB_MESSAGE,
	                                         PB_MESSAGE };
	const struct pb_field *const f = o->fields;
	struct pb_list rollback;
	const uint8_t *at;
	unsigned i;
	size_t len;

	if (pb_read(o->fields, kinds, N_BUNDLE, o->payload, o->len, BUNDLE_MAX_TEXT, o->err, o->err_size))
		return OAL_BUNDLE_REASON_MALFORMED;
	for (i = 0; i < N_PARTS; i++) {
		o->parts[i].at = f[FIRST_PART + i].at;
		o->parts[i].len = f[FIRST_PART + i].len;
		if (o->parts[i].at && bundle_part_read(&o->parts[i], i, o->err, o->err_size))
			return OAL_BUNDLE_REASON_MALFORMED;
	}
	pb_list_begin(&rollback, o->payload, o->len, ROLLBACK_TO, PB_BYTES);
	for (i = 0; pb_list_bytes(&rollback, &at, &len); i++)
		if (len != HASH_BYTES || i == BUNDLE_MAX_ROLLBACK)
			return REFUSE(o, MALFORMED, "rollback_to is not at most %d hashes", BUNDLE_MAX_ROLLBACK);
	if (f[SERIAL].value <= 0 || !f[TARGET].len)
		return REFUSE(o, MALFORMED, "serial %lld, target of %zu characters", (long long)f[SERIAL].value,
		              f[TARGET].len);
	o->head.serial = f[SERIAL].value;
	o->head.version = (uint32_t)f[VERSION].value;
	o->head.source = f[SOURCE].value <= UINT8_MAX ? (uint8_t)f[SOURCE].value : 0;
	memcpy(o->head.target, f[TARGET].at, f[TARGET].len);
	if (f[MODEL].at)
		memcpy(o->head.model, f[MODEL].at, f[MODEL].len);
	return OAL_BUNDLE_REASON_NONE;
}

static bool is_target(const char *target, const char *kind, const char *name)
{
	const size_t len = strlen(kind);

	return !strncmp(target, kind, len) && !strcmp(target + len, name);
}

/* Whether it is a kind of bundle that is known here, for this AP, and not one of the past. */
static enum oal_bundle_reason check_head(struct opening *o)
{
	const struct bundle_terms *const t = o->terms;
	const struct bundle *const in_force = t->in_force;
	const struct pb_field *const f = o->fields;

	if (f[FORMAT].value != KNOWN_FORMAT || f[SOURCE].value < REGISTRY || f[SOURCE].value > ONLINE ||
	    !o->parts[PART_PROGRAM].at || !o->parts[PART_TREE].at)
		return REFUSE(o, UNSUPPORTED_FORMAT, "format %lld, source %lld; program and tree are needed",
		              (long long)f[FORMAT].value, (long long)f[SOURCE].value);
	if (t->ap_id && strcmp(o->head.target, "fleet") &&
	    !is_target(o->head.target, "site/", t->site ? t->site : "") && !is_target(o->head.target, "ap/", t->ap_id))
		return REFUSE(o, WRONG_TARGET, "it is for %s", o->head.target);
	if (in_force && o->head.serial <= in_force->head.serial &&
	    memcmp(o->head.hash, in_force->head.hash, HASH_BYTES) && !bundle_allows_rollback(in_force, o->head.hash))
		return REFUSE(o, REPLAYED,
		              "serial %lld is not greater than %lld, and that one does not allow to go back to it",
		              (long long)o->head.serial, (long long)in_force->head.serial);
	return OAL_BUNDLE_REASON_NONE;
}

/* --- memory: one piece, cut by the counts in the parts */

static size_t aligned(size_t size)
{
	return (size + 7) & ~(size_t)7;
}

static struct bundle *allocate(const struct opening *o, uint8_t **work)
{
	const struct part *const window = &o->parts[PART_WINDOW];
	const size_t n_words = bundle_part_features(&o->parts[PART_PROGRAM]),
		     n_tree = bundle_part_tree_nodes(&o->parts[PART_TREE]);
	const size_t n_window = bundle_part_window_nodes(window), n_trees = bundle_part_window_trees(window),
		     n_inputs = bundle_part_window_inputs(window);
	const size_t words = n_words * OAL_N_WORDS * sizeof(int64_t), nodes = (n_tree + n_window) * sizeof(struct node);
	const size_t lists = aligned(n_trees * sizeof(uint32_t) + n_inputs * sizeof(int32_t));
	const size_t size = sizeof(struct bundle) + words + nodes + lists;
	struct bundle *b = malloc(size);

	*work = malloc(nodes_work(n_tree > n_window ? n_tree : n_window) + 1);
	if (!b || !*work) {
		free(b);
		free(*work);
		return NULL;
	}
	memset(b, 0, sizeof *b);
	b->size = size;
	b->head = o->head;
	b->tree.nodes = (struct node *)(void *)(b->memory + words);
	b->window.nodes = b->tree.nodes + n_tree;
	b->window.tree_nodes = (uint32_t *)(void *)(b->memory + words + nodes);
	b->window.inputs = (int32_t *)(void *)(b->window.tree_nodes + n_trees);
	return b;
}

/* --- content */

static enum oal_bundle_reason check_hashes(const struct bundle *b, struct opening *o)
{
	uint64_t hash = 0;
	unsigned i;

	for (i = 0; i < 8; i++)
		hash = hash << 8 | b->program.hash[i];
	if (b->tree.feature_hash != hash || (b->has_window && b->window.feature_hash != hash))
		return REFUSE(o, FEATURE_MISMATCH, "%s is for program %016llx, not %016llx",
		              b->tree.feature_hash != hash ? "tree" : "window model",
		              (unsigned long long)(b->tree.feature_hash != hash ? b->tree.feature_hash
		                                                                : b->window.feature_hash),
		              (unsigned long long)hash);
	return OAL_BUNDLE_REASON_NONE;
}

static enum oal_bundle_reason fill(struct bundle *b, struct opening *o, uint8_t *work)
{
	static const struct part nothing = { .at = (const uint8_t *)"" };
	const struct part *const parts = o->parts, *const golden = parts[PART_GOLDEN].at ? &parts[PART_GOLDEN]
	                                                                                 : &nothing;
	enum oal_bundle_reason reason;
	struct pb_list rollback;
	const uint8_t *at;
	size_t len;

	pb_list_begin(&rollback, o->payload, o->len, ROLLBACK_TO, PB_BYTES);
	while (pb_list_bytes(&rollback, &at, &len))
		memcpy(b->rollback[b->n_rollback++], at, HASH_BYTES);
	if (bundle_part_program(&b->program, (int64_t (*)[OAL_N_WORDS])(void *)b->memory, &parts[PART_PROGRAM], o->err,
	                        o->err_size))
		return OAL_BUNDLE_REASON_BAD_PROGRAM;
	if (bundle_part_tree(&b->tree, &parts[PART_TREE], b->program.n, work, o->err, o->err_size))
		return OAL_BUNDLE_REASON_BAD_TREE;
	b->has_window = parts[PART_WINDOW].at != NULL;
	if (b->has_window &&
	    bundle_part_window(&b->window, &parts[PART_WINDOW], b->program.n, work, o->err, o->err_size))
		return OAL_BUNDLE_REASON_BAD_WINDOW_MODEL;
	if (parts[PART_POLICY].at && bundle_part_policy(&b->policy, &parts[PART_POLICY], o->err, o->err_size))
		return OAL_BUNDLE_REASON_BAD_POLICY;
	reason = check_hashes(b, o);
	if (reason == OAL_BUNDLE_REASON_NONE &&
	    bundle_part_golden(golden, &b->tree, b->program.n, bundle_window(b), o->err, o->err_size))
		reason = OAL_BUNDLE_REASON_GOLDEN_MISMATCH;
	return reason;
}

enum oal_bundle_reason bundle_open(struct bundle **out, const uint8_t *bytes, size_t len,
                                   const struct bundle_terms *terms, struct bundle_head *head, char *err,
                                   size_t err_size)
{
	struct opening o = { .terms = terms, .err = err, .err_size = err_size };
	enum oal_bundle_reason reason;
	struct bundle *b = NULL;
	uint8_t *work;

	if (err_size)
		err[0] = 0;
	reason = read_envelope(&o, bytes, len);
	if (reason == OAL_BUNDLE_REASON_NONE)
		reason = check_signature(&o);
	if (reason == OAL_BUNDLE_REASON_NONE)
		reason = read_payload(&o);
	if (reason == OAL_BUNDLE_REASON_NONE)
		reason = check_head(&o);
	if (reason == OAL_BUNDLE_REASON_NONE) {
		b = allocate(&o, &work);
		reason = b ? fill(b, &o, work) : REFUSE(&o, NO_MEMORY, "no memory for the bundle");
		if (b)
			free(work);
	}
	if (head)
		*head = o.head;
	if (reason != OAL_BUNDLE_REASON_NONE) {
		free(b);
		b = NULL;
	}
	*out = b;
	return reason;
}

void bundle_free(struct bundle *b)
{
	free(b);
}

/* --- what is in it */

const struct bundle_head *bundle_head(const struct bundle *b)
{
	return &b->head;
}

const struct oal_feature_program *bundle_program(const struct bundle *b)
{
	return &b->program;
}

const struct tree *bundle_tree(const struct bundle *b)
{
	return &b->tree;
}

const struct window *bundle_window(const struct bundle *b)
{
	return b->has_window ? &b->window : NULL;
}

enum oal_policy_mode bundle_mode(const struct bundle *b)
{
	return (enum oal_policy_mode)b->policy.mode;
}

const struct oal_policy *bundle_policy(const struct bundle *b)
{
	return b->policy.name[0] ? &b->policy : NULL;
}

bool bundle_allows_rollback(const struct bundle *b, const uint8_t hash[HASH_BYTES])
{
	unsigned i;

	for (i = 0; i < b->n_rollback; i++)
		if (!memcmp(b->rollback[i], hash, HASH_BYTES))
			return true;
	return false;
}

size_t bundle_memory(const struct bundle *b)
{
	return b->size;
}

const char *bundle_reason_name(enum oal_bundle_reason reason)
{
	static const char *const names[] = OAL_BUNDLE_REASONS;

	return reason < OAL_N_BUNDLE_REASONS ? names[reason] : "unknown";
}
