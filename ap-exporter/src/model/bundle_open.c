#include "model/bundle_open.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "feature/feature_program.h"
#include "wire/protobuf.h"
#include "base/sha256.h"

/* Field numbers of SignedBundle. */
enum { SIGNED_PAYLOAD = 1, SIGNED_KEY_ID, SIGNED_SIGNATURE, N_SIGNED };

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
	o->key = key;
	return OAL_BUNDLE_REASON_NONE;
}

/* --- memory: one piece, cut by the counts in the parts */

static struct bundle *allocate(const struct opening *o, uint8_t **work)
{
	size_t size = sizeof(struct bundle) + bundle_part_features(&o->program) * OAL_N_WORDS * sizeof(int64_t);
	size_t n_nodes = 0;
	struct bundle *b;
	unsigned i;

	for (i = 0; i < o->n_models; i++) {
		const struct opening_model *const m = &o->models[i];

		size += m->ops->memory(&m->table);
		if (m->ops->nodes(&m->table) > n_nodes)
			n_nodes = m->ops->nodes(&m->table);
	}
	b = malloc(size);
	*work = malloc(nodes_work(n_nodes) + 1);
	if (!b || !*work) {
		free(b);
		free(*work);
		return NULL;
	}
	memset(b, 0, sizeof *b);
	b->size = size;
	b->head = o->head;
	b->law = o->law;
	return b;
}

/* --- content */

static enum oal_bundle_reason fill_models(struct bundle *b, struct opening *o, uint8_t *work)
{
	uint8_t *memory = b->memory + b->program.n * OAL_N_WORDS * sizeof(int64_t);
	unsigned i;

	for (i = 0; i < o->n_models; i++) {
		const struct opening_model *const from = &o->models[i];
		struct model *const m = &b->models[b->n_models++];

		m->ops = from->ops;
		memcpy(m->role, from->role, sizeof m->role);
		if (m->ops->decode(m, &from->table, memory, o->err, o->err_size) ||
		    m->ops->check(m, b->program.n, work, o->err, o->err_size))
			return m->ops->refused;
		memory += m->ops->memory(&from->table);
		if (!strcmp(m->role, "class"))
			b->tree = &m->tree;
		else if (!strcmp(m->role, "window"))
			b->window = &m->sum;
	}
	return OAL_BUNDLE_REASON_NONE;
}

static enum oal_bundle_reason check_hashes(const struct bundle *b, struct opening *o)
{
	const uint64_t hash = feature_program_id(&b->program);
	unsigned i;

	for (i = 0; i < b->n_models; i++)
		if (b->models[i].feature_hash != hash)
			return REFUSE(o, FEATURE_MISMATCH, "%s is for program %016llx, not %016llx",
			              b->models[i].ops->title, (unsigned long long)b->models[i].feature_hash,
			              (unsigned long long)hash);
	return OAL_BUNDLE_REASON_NONE;
}

static enum oal_bundle_reason check_golden(const struct bundle *b, struct opening *o)
{
	unsigned i;

	for (i = 0; i < b->n_models; i++)
		if (model_check_golden(&b->models[i], b->program.n, o->models[i].golden, o->err, o->err_size))
			return OAL_BUNDLE_REASON_GOLDEN_MISMATCH;
	if (bundle_payload_has_spare_golden(o))
		return REFUSE(o, GOLDEN_MISMATCH, "vectors for a window model, and none is there");
	return OAL_BUNDLE_REASON_NONE;
}

static enum oal_bundle_reason fill(struct bundle *b, struct opening *o, uint8_t *work)
{
	int64_t (*const words)[OAL_N_WORDS] = (int64_t (*)[OAL_N_WORDS])(void *)b->memory;
	enum oal_bundle_reason reason;
	struct pb_list rollback;
	const uint8_t *at;
	size_t len;

	pb_list_begin(&rollback, o->payload, o->len, BUNDLE_ROLLBACK_TO, PB_BYTES);
	while (pb_list_bytes(&rollback, &at, &len))
		memcpy(b->rollback[b->n_rollback++], at, BUNDLE_HASH_BYTES);
	if (bundle_part_program(&b->program, words, &o->program, o->err, o->err_size))
		return OAL_BUNDLE_REASON_BAD_PROGRAM;
	reason = fill_models(b, o, work);
	if (reason != OAL_BUNDLE_REASON_NONE)
		return reason;
	if (o->policy.at && bundle_part_policy(&b->policy, &o->policy, o->err, o->err_size))
		return OAL_BUNDLE_REASON_BAD_POLICY;
	reason = check_hashes(b, o);
	return reason == OAL_BUNDLE_REASON_NONE ? check_golden(b, o) : reason;
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
		reason = bundle_payload_read(&o);
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
