/* bundle_golden.h: the golden bundles of the contract (schema/golden/README.md). */
#ifndef OAL_BUNDLE_GOLDEN_H
#define OAL_BUNDLE_GOLDEN_H

#include "model/bundle.h"
#include "check.h"

#define GOLDEN "../schema/golden/"
enum { MAX_CASES = 256 };

struct golden_case {
	char name[64], in_force[64], outcome[64], hash[65];
	long long serial;
	unsigned tree_nodes, window_trees;
	/* Of a good one of format 2: OF_POLICY LAW SUBJECT ACTION VALUES MODELS. Empty: as a bundle of format 1
	 * reads. */
	char rest[256];
	const uint8_t *bytes;
	size_t len;
};

struct golden_bundles {
	unsigned n;
	struct golden_case at[MAX_CASES];
	uint8_t *data;
};

/* `name`: bundles (format 1) or bundles2. */
static inline void golden_read(struct golden_bundles *g, const char *name)
{
	char path[64], listing[64];
	size_t size, text_size, pos = 0;
	char *text, *line;

	snprintf(path, sizeof path, GOLDEN "%s.bin", name);
	snprintf(listing, sizeof listing, GOLDEN "%s.txt", name);
	text = (char *)check_file(listing, &text_size);
	g->data = check_file(path, &size);
	g->n = 0;
	text[text_size - 1] = 0; /* its last line end */
	for (line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		struct golden_case *c = &g->at[g->n++];
		const uint8_t *at = g->data + pos;
		int read = 0;

		if (g->n == MAX_CASES || pos + 5 > size)
			break;
		sscanf(line, "%63s %63s %63s %64s %lld %u %u %n", c->name, c->in_force, c->outcome, c->hash, &c->serial,
		       &c->tree_nodes, &c->window_trees, &read);
		snprintf(c->rest, sizeof c->rest, "%s", read ? line + read : "");
		c->len = (size_t)(at[1] | at[2] << 8 | at[3] << 16 | (uint32_t)at[4] << 24);
		c->bytes = at + 5;
		pos += 5 + c->len;
	}
	if (pos != size) {
		printf("# %s and %s do not belong together: make -C schema golden\n", path, listing);
		exit(1);
	}
	free(text);
}

static inline void golden_free(struct golden_bundles *g)
{
	free(g->data);
}

static inline const struct golden_case *golden_find(const struct golden_bundles *g, const char *name)
{
	unsigned i;

	for (i = 0; i < g->n; i++)
		if (!strcmp(g->at[i].name, name))
			return &g->at[i];
	printf("# no golden bundle %s\n", name);
	exit(1);
}

static inline struct trusted_keys golden_keys_file(const char *path)
{
	struct trusted_keys keys;
	char err[256];

	if (trusted_keys_read(&keys, path, err, sizeof err)) {
		printf("# %s\n", err);
		exit(1);
	}
	return keys;
}

/* Those of bundles.bin, allowed to sign anything: no line of a file can say that. */
static inline struct trusted_keys golden_keys(void)
{
	struct trusted_keys keys = golden_keys_file(GOLDEN "bundles.keys");
	unsigned i;

	for (i = 0; i < keys.n; i++) {
		keys.key[i].role = "any";
		keys.key[i].sources = UINT8_MAX;
		keys.key[i].max_mode = OAL_POLICY_MODE_ENFORCE;
		memcpy(keys.key[i].scope, "fleet", sizeof "fleet");
	}
	return keys;
}

/* Policy, law and models of a bundle, as bundles2.txt has them. */
static inline void golden_rest(char *out, size_t size, const struct bundle *b)
{
	const struct bundle_law *l = bundle_law(b);
	size_t at = (size_t)snprintf(out, size, "%s %s %s %s ", bundle_head(b)->of_policy, l->name, l->subject,
	                             l->action);
	unsigned i;

	for (i = 0; i < l->n_values; i++)
		at += (size_t)snprintf(out + at, size - at, "%s%lld", i ? "," : "", (long long)l->values[i]);
	at += (size_t)snprintf(out + at, size - at, i ? " " : "- ");
	for (i = 0; i < bundle_n_models(b); i++)
		at += (size_t)snprintf(out + at, size - at, "%s%s:%s", i ? "," : "", bundle_model(b, i)->role,
		                       bundle_model(b, i)->ops->kind);
	if (!i)
		snprintf(out + at, size - at, "-");
}

/* What bundle_open() makes of a case, with the bundle in force that the case names. */
static inline enum oal_bundle_reason golden_open(struct bundle **out, const struct golden_bundles *g,
                                                 const struct golden_case *c, const struct trusted_keys *keys,
                                                 signature_verify *verify, struct bundle_head *head, char *err,
                                                 size_t err_size)
{
	struct bundle_terms terms = { .keys = keys, .verify = verify, .ap_id = "ap-1", .site = "lab" };
	const struct golden_case *f = strcmp(c->in_force, "-") ? golden_find(g, c->in_force) : NULL;
	struct bundle *in_force = NULL;
	enum oal_bundle_reason reason;

	if (f && bundle_open(&in_force, f->bytes, f->len, &terms, NULL, err, err_size))
		return OAL_N_BUNDLE_REASONS;
	terms.in_force[0] = in_force;
	reason = bundle_open(out, c->bytes, c->len, &terms, head, err, err_size);
	bundle_free(in_force);
	return reason;
}

/* Is the outcome what the case says? Prints what is not. */
static inline bool golden_holds(const struct golden_bundles *g, const struct golden_case *c,
                                const struct trusted_keys *keys, signature_verify *verify)
{
	struct bundle_head head;
	struct bundle *b = NULL;
	char err[256] = "", hash[65], rest[256];
	const enum oal_bundle_reason reason = golden_open(&b, g, c, keys, verify, &head, err, sizeof err);
	const char *const got = reason == OAL_BUNDLE_REASON_NONE ? "ok" : bundle_reason_name(reason);
	bool holds = !strcmp(got, c->outcome) && !b == (reason != OAL_BUNDLE_REASON_NONE) && !err[0] == !reason;

	if (b) {
		const bool has_window = bundle_window(b);

		golden_rest(rest, sizeof rest, b);
		holds = holds && !strcmp(rest, c->rest[0]   ? c->rest
		                               : has_window ? "rwnd-fair fair_window flow rwnd - class:tree,window:sum"
		                                            : "rwnd-fair fair_window flow rwnd - class:tree");
		for (unsigned i = 0; i < 32; i++)
			snprintf(hash + 2 * i, 3, "%02x", head.hash[i]);
		holds = holds && !strcmp(hash, c->hash) && head.serial == c->serial &&
		        (bundle_tree(b) ? bundle_tree(b)->n : 0) == c->tree_nodes &&
		        (bundle_window(b) ? bundle_window(b)->n_trees : 0) == c->window_trees &&
		        !memcmp(&head, bundle_head(b), sizeof head);
	}
	if (!holds)
		printf("# %s: %s (%s), not %s\n", c->name, got, err, c->outcome);
	bundle_free(b);
	return holds;
}

#endif
