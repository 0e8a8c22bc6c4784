#include "model/bundle_open.h"

#include <string.h>

enum { MODEL_ROLE = 1, MODEL_KIND, MODEL_TREE, MODEL_SUM, MODEL_INPUT, MODEL_ANSWER };
enum { GOLDEN_FEATURES = 1, GOLDEN_LEAF, GOLDEN_WINDOW_INPUT, GOLDEN_WINDOW_BYTES };
enum { REGISTRY = 1, ONLINE = 2 };

static const char class[] = "class", window[] = "window", rwnd_fair[] = "rwnd-fair";

/* --- the bytes */

static int read_part(struct opening *o, struct part *p, const struct pb_field *f, enum bundle_part part)
{
	p->at = f->at;
	p->len = f->len;
	return p->at ? bundle_part_read(p, part, o->err, o->err_size) : 0;
}

/* Every Model message is read, also of those that are too many. */
static int read_models(struct opening *o)
{
	struct pb_list list;
	struct part message, table;

	pb_list_begin(&list, o->payload, o->len, BUNDLE_MODELS, PB_MESSAGE);
	while (pb_list_bytes(&list, &message.at, &message.len))
		if (bundle_part_read(&message, PART_MODEL, o->err, o->err_size) ||
		    read_part(o, &table, &message.fields[MODEL_TREE], PART_TREE) ||
		    read_part(o, &table, &message.fields[MODEL_SUM], PART_SUM))
			return -1;
	return 0;
}

static enum oal_bundle_reason read_fields(struct opening *o)
{
	static const uint8_t kinds[N_BUNDLE] = {
		[BUNDLE_FORMAT] = PB_U32, [BUNDLE_SERIAL] = PB_S64, [BUNDLE_TARGET] = PB_TEXT,
		[BUNDLE_SOURCE] = PB_U32, [BUNDLE_MODEL] = PB_TEXT, [BUNDLE_VERSION] = PB_U32,
		[BUNDLE_ROLLBACK_TO] = PB_BYTES | PB_LIST,
		[BUNDLE_PROGRAM] = PB_MESSAGE, [BUNDLE_TREE] = PB_MESSAGE, [BUNDLE_WINDOW] = PB_MESSAGE,
		[BUNDLE_POLICY] = PB_MESSAGE, [BUNDLE_GOLDEN] = PB_MESSAGE,
		[BUNDLE_MODELS] = PB_MESSAGE | PB_LIST, [BUNDLE_LAW] = PB_MESSAGE, [BUNDLE_OF_POLICY] = PB_TEXT,
	};
	const struct pb_field *const f = o->fields;
	struct pb_list rollback;
	const uint8_t *at;
	unsigned i;
	size_t len;

	if (pb_read(o->fields, kinds, N_BUNDLE, o->payload, o->len, BUNDLE_MAX_TEXT, o->err, o->err_size) ||
	    read_part(o, &o->program, &f[BUNDLE_PROGRAM], PART_PROGRAM) ||
	    read_part(o, &o->tree, &f[BUNDLE_TREE], PART_TREE) ||
	    read_part(o, &o->window, &f[BUNDLE_WINDOW], PART_SUM) ||
	    read_part(o, &o->policy, &f[BUNDLE_POLICY], PART_POLICY) ||
	    read_part(o, &o->golden, &f[BUNDLE_GOLDEN], PART_GOLDEN) || read_models(o) ||
	    read_part(o, &o->law_message, &f[BUNDLE_LAW], PART_LAW))
		return OAL_BUNDLE_REASON_MALFORMED;
	pb_list_begin(&rollback, o->payload, o->len, BUNDLE_ROLLBACK_TO, PB_BYTES);
	for (i = 0; pb_list_bytes(&rollback, &at, &len); i++)
		if (len != BUNDLE_HASH_BYTES || i == BUNDLE_MAX_ROLLBACK)
			return REFUSE(o, MALFORMED, "rollback_to is not at most %d hashes", BUNDLE_MAX_ROLLBACK);
	if (f[BUNDLE_SERIAL].value <= 0 || !f[BUNDLE_TARGET].len)
		return REFUSE(o, MALFORMED, "serial %lld, target of %zu characters", (long long)f[BUNDLE_SERIAL].value,
		              f[BUNDLE_TARGET].len);
	o->head.serial = f[BUNDLE_SERIAL].value;
	o->head.version = (uint32_t)f[BUNDLE_VERSION].value;
	o->head.source = f[BUNDLE_SOURCE].value <= UINT8_MAX ? (uint8_t)f[BUNDLE_SOURCE].value : 0;
	memcpy(o->head.target, f[BUNDLE_TARGET].at, f[BUNDLE_TARGET].len);
	if (f[BUNDLE_MODEL].at)
		memcpy(o->head.model, f[BUNDLE_MODEL].at, f[BUNDLE_MODEL].len);
	return OAL_BUNDLE_REASON_NONE;
}

/* --- models and law, whatever the format */

/* A part that may be missing, as one without fields. */
static const struct part *or_nothing(const struct part *p)
{
	static const struct part nothing = { .at = (const uint8_t *)"" };

	return p->at ? p : &nothing;
}

static void add_model_1(struct opening *o, const char *role, const struct model_ops *ops, const struct part *table,
                        uint32_t input, uint32_t answer)
{
	struct opening_model *m = &o->models[o->n_models++];
	const struct part *const golden = or_nothing(&o->golden);

	memcpy(m->role, role, strlen(role) + 1);
	m->ops = ops;
	m->table = *table;
	m->golden = (struct model_golden){ bundle_part_list(golden, PART_GOLDEN, input),
	                                   bundle_part_list(golden, PART_GOLDEN, answer), golden->fields[input].n,
	                                   golden->fields[answer].n };
}

static enum oal_bundle_reason read_format_1(struct opening *o)
{
	if (o->fields[BUNDLE_MODELS].n || o->law_message.at || o->fields[BUNDLE_OF_POLICY].len)
		return REFUSE(o, MALFORMED, "models, law or of_policy in a bundle of format 1");
	add_model_1(o, class, &model_tree, &o->tree, GOLDEN_FEATURES, GOLDEN_LEAF);
	if (o->window.at)
		add_model_1(o, window, &model_sum, &o->window, GOLDEN_WINDOW_INPUT, GOLDEN_WINDOW_BYTES);
	o->law = bundle_law_fair_window;
	memcpy(o->head.of_policy, rwnd_fair, sizeof rwnd_fair);
	return OAL_BUNDLE_REASON_NONE;
}

bool bundle_payload_has_spare_golden(const struct opening *o)
{
	const struct pb_field *const f = or_nothing(&o->golden)->fields;

	return !o->window.at && (f[GOLDEN_WINDOW_INPUT].n || f[GOLDEN_WINDOW_BYTES].n);
}

static struct opening_model *find_role(struct opening *o, const char *role)
{
	unsigned i;

	for (i = 0; i < o->n_models; i++)
		if (!strcmp(o->models[i].role, role))
			return &o->models[i];
	return NULL;
}

static enum oal_bundle_reason add_model_2(struct opening *o, const struct part *message)
{
	const struct pb_field *const f = message->fields, *const role = &f[MODEL_ROLE], *const kind = &f[MODEL_KIND];
	struct opening_model *m = &o->models[o->n_models];
	const struct pb_field *table;

	if (role->len)
		memcpy(m->role, role->at, role->len <= MODEL_MAX_ROLE ? role->len : MODEL_MAX_ROLE);
	if (!role->len || role->len > MODEL_MAX_ROLE || find_role(o, m->role))
		return REFUSE(o, UNSUPPORTED_FORMAT, "role '%.*s'; each once, 1 to %d characters", (int)role->len,
		              role->at ? (const char *)role->at : "", MODEL_MAX_ROLE);
	m->ops = model_kind((const char *)kind->at, kind->len);
	if (!m->ops)
		return REFUSE(o, UNSUPPORTED_FORMAT, "role %s: kind '%.*s' is not known", m->role, (int)kind->len,
		              kind->at ? (const char *)kind->at : "");
	table = &f[m->ops->part == PART_TREE ? MODEL_TREE : MODEL_SUM];
	if (!table->at || f[MODEL_TREE].n + f[MODEL_SUM].n != 1)
		return REFUSE(o, UNSUPPORTED_FORMAT, "role %s: kind %s is given in a field of this name, and no other",
		              m->role, m->ops->kind);
	if (read_part(o, &m->table, table, m->ops->part))
		return OAL_BUNDLE_REASON_MALFORMED; /* it was read before */
	m->golden = (struct model_golden){ bundle_part_list(message, PART_MODEL, MODEL_INPUT),
	                                   bundle_part_list(message, PART_MODEL, MODEL_ANSWER), f[MODEL_INPUT].n,
	                                   f[MODEL_ANSWER].n };
	o->n_models++;
	return OAL_BUNDLE_REASON_NONE;
}

/* Whether the models have what the law wants of them: a role of the contract is of one kind, whatever the law. */
static enum oal_bundle_reason check_roles(struct opening *o)
{
	const struct opening_model *c = find_role(o, class), *w = find_role(o, window);

	if (!c && o->law.needs_class)
		return REFUSE(o, UNSUPPORTED_FORMAT, "law %s needs a model of role class", o->law.name);
	if (c && c->ops != &model_tree)
		return REFUSE(o, UNSUPPORTED_FORMAT, "role %s is not of kind tree", class);
	if (w && w->ops != &model_sum)
		return REFUSE(o, UNSUPPORTED_FORMAT, "role %s is not of kind sum", window);
	return OAL_BUNDLE_REASON_NONE;
}

/* [a-z][a-z0-9-]{0,30} */
static bool is_policy_name(const char *name, size_t len)
{
	size_t i;

	if (!len || len > BUNDLE_MAX_POLICY || name[0] < 'a' || name[0] > 'z')
		return false;
	for (i = 1; i < len; i++)
		if ((name[i] < 'a' || name[i] > 'z') && (name[i] < '0' || name[i] > '9') && name[i] != '-')
			return false;
	return true;
}

static enum oal_bundle_reason read_format_2(struct opening *o)
{
	const struct pb_field *const policy = &o->fields[BUNDLE_OF_POLICY];
	enum oal_bundle_reason reason = OAL_BUNDLE_REASON_NONE;
	struct part message;
	struct pb_list list;

	if (o->fields[BUNDLE_MODELS].n > OAL_SETTING_MAX_BUNDLE_MODELS)
		return REFUSE(o, UNSUPPORTED_FORMAT, "%u models; at most %d", o->fields[BUNDLE_MODELS].n,
		              OAL_SETTING_MAX_BUNDLE_MODELS);
	pb_list_begin(&list, o->payload, o->len, BUNDLE_MODELS, PB_MESSAGE);
	while (reason == OAL_BUNDLE_REASON_NONE && pb_list_bytes(&list, &message.at, &message.len)) {
		bundle_part_read(&message, PART_MODEL, o->err, o->err_size);
		reason = add_model_2(o, &message);
	}
	if (reason != OAL_BUNDLE_REASON_NONE)
		return reason;
	if (!o->law_message.at)
		return REFUSE(o, UNSUPPORTED_FORMAT, "no law");
	if (bundle_law_read(&o->law, &o->law_message, o->err, o->err_size))
		return OAL_BUNDLE_REASON_UNSUPPORTED_FORMAT;
	reason = check_roles(o);
	if (reason != OAL_BUNDLE_REASON_NONE)
		return reason;
	if (o->tree.at || o->window.at || o->golden.at)
		return REFUSE(o, MALFORMED, "tree, window or golden in a bundle of format 2");
	if (!is_policy_name((const char *)policy->at, policy->len))
		return REFUSE(o, MALFORMED, "of_policy is not [a-z][a-z0-9-]{0,%d}", BUNDLE_MAX_POLICY - 1);
	memcpy(o->head.of_policy, policy->at, policy->len);
	return OAL_BUNDLE_REASON_NONE;
}

static enum oal_bundle_reason read_format(struct opening *o)
{
	const int64_t format = o->fields[BUNDLE_FORMAT].value, source = o->fields[BUNDLE_SOURCE].value;

	if ((format != 1 && format != 2) || source < REGISTRY || source > ONLINE || !o->program.at ||
	    (format == 1 && !o->tree.at))
		return REFUSE(o, UNSUPPORTED_FORMAT, "format %lld, source %lld; program and tree are needed",
		              (long long)format, (long long)source);
	return format == 1 ? read_format_1(o) : read_format_2(o);
}

/* --- may its key sign this, is it for this AP, now? */

static enum oal_bundle_reason check_grant(struct opening *o)
{
	const struct trusted_key_use use = {
		.source = o->head.source, .target = o->head.target, .ap_id = o->terms->ap_id, .site = o->terms->site,
		.mode = o->policy.at ? o->policy.fields[OAL_POLICY_FIELD_MODE].value : OAL_POLICY_MODE_OFF,
	};

	return !o->key || trusted_key_may(o->key, &use, o->err, o->err_size) ? OAL_BUNDLE_REASON_NONE
	                                                                      : OAL_BUNDLE_REASON_NOT_PERMITTED;
}

static bool is_target(const char *target, const char *kind, const char *name)
{
	const size_t len = strlen(kind);

	return !strncmp(target, kind, len) && !strcmp(target + len, name);
}

static const struct bundle *in_force_of(const struct bundle_terms *t, const char *policy)
{
	unsigned i;

	for (i = 0; i < BUNDLE_MAX_POLICIES; i++)
		if (t->in_force[i] && !strcmp(bundle_head(t->in_force[i])->of_policy, policy))
			return t->in_force[i];
	return NULL;
}

static enum oal_bundle_reason check_place(struct opening *o)
{
	const struct bundle_terms *const t = o->terms;
	const struct bundle *const b = in_force_of(t, o->head.of_policy);
	const struct bundle_head *const in_force = b ? bundle_head(b) : NULL;
	const char *const target = o->head.target;

	if (t->ap_id && strcmp(target, "fleet") && !is_target(target, "site/", t->site ? t->site : "") &&
	    !is_target(target, "ap/", t->ap_id))
		return REFUSE(o, WRONG_TARGET, "it is for %s", target);
	if (in_force && o->head.serial <= in_force->serial &&
	    memcmp(o->head.hash, in_force->hash, BUNDLE_HASH_BYTES) && !bundle_allows_rollback(b, o->head.hash))
		return REFUSE(o, REPLAYED,
		              "serial %lld is not greater than %lld, and that one does not allow to go back to it",
		              (long long)o->head.serial, (long long)in_force->serial);
	return OAL_BUNDLE_REASON_NONE;
}

enum oal_bundle_reason bundle_payload_read(struct opening *o)
{
	enum oal_bundle_reason reason = read_fields(o);

	if (reason == OAL_BUNDLE_REASON_NONE)
		reason = read_format(o);
	if (reason == OAL_BUNDLE_REASON_NONE)
		reason = check_grant(o);
	if (reason == OAL_BUNDLE_REASON_NONE)
		reason = check_place(o);
	return reason;
}
