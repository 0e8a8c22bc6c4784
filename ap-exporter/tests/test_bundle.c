/* test_bundle.c: bundles after their signature: contract's golden bundles, limits, and that no damage does harm.
 * Runs on big-endian MIPS too, where there is no libcrypto; signatures are in test_daemon_signature.c. */
#include "bundle_golden.h"
#include "feature/feature.h"

/* In place of libcrypto: what golden/README.md's signatures would say. */
static int verified(const uint8_t *key, const uint8_t *signature, const uint8_t *payload, size_t len)
{
	return 0;
}

static void golden_bundles(const struct golden_bundles *g, const struct trusted_keys *keys)
{
	unsigned i, ok = 0, refused = 0;

	test("golden bundles are taken, or refused with their reason");
	for (i = 0; i < g->n; i++) {
		if (!strcmp(g->at[i].outcome, "bad_signature") && strcmp(g->at[i].name, "bad_signature_short"))
			continue;
		CHECK(golden_holds(g, &g->at[i], keys, verified));
		*(strcmp(g->at[i].outcome, "ok") ? &refused : &ok) += 1;
	}
	CHECK(ok >= 15 && refused >= 80);
}

static void golden_bundles_2(const struct golden_bundles *g, const struct trusted_keys *keys)
{
	unsigned i, ok = 0, refused = 0, fair = 0;

	test("golden bundles of format 2 are taken with their law and models, or refused with their reason");
	for (i = 0; i < g->n; i++) {
		CHECK(golden_holds(g, &g->at[i], keys, verified));
		*(strcmp(g->at[i].outcome, "ok") ? &refused : &ok) += 1;
		fair += !strcmp(g->at[i].rest, "rwnd-fair fair_window flow rwnd - class:tree,window:sum");
	}
	CHECK(ok >= 15 && refused >= 60 && fair == 1);
}

static struct bundle *opened(const struct golden_bundles *g, const char *name)
{
	const struct golden_case *c = golden_find(g, name);
	const struct bundle_terms any = { 0 };
	struct bundle *b;

	CHECK_EQ(bundle_open(&b, c->bytes, c->len, &any, NULL, NULL, 0), OAL_BUNDLE_REASON_NONE);
	return b;
}

static void policies_in_force(const struct golden_bundles *one, const struct golden_bundles *two)
{
	struct bundle *fair = opened(one, "ok_newer"), *example = opened(two, "ok_direct"), *b;
	const struct golden_case *older = golden_find(two, "ok_older");
	struct bundle_terms terms = { .in_force = { fair } };

	test("a serial is compared with that of the bundle in force of the same policy, wherever it stands among them");
	CHECK(bundle_head(fair)->serial > older->serial && bundle_head(example)->serial > older->serial);
	CHECK_EQ(bundle_open(&b, older->bytes, older->len, &terms, NULL, NULL, 0), OAL_BUNDLE_REASON_NONE);
	bundle_free(b);
	terms.in_force[3] = example;
	CHECK_EQ(bundle_open(&b, older->bytes, older->len, &terms, NULL, NULL, 0), OAL_BUNDLE_REASON_REPLAYED);
	bundle_free(fair);
	bundle_free(example);
}

static void kinds(const struct golden_bundles *two)
{
	struct bundle *b = opened(two, "ok_direct_window_first");
	const struct model *const sum = bundle_model(b, 0), *const tree = bundle_model(b, 1);
	int64_t x[MODEL_MAX_INPUTS];
	uint64_t random = 11;
	unsigned i, k;

	test("a model answers through its kind as by itself, in whatever order the models stand");
	CHECK(sum->ops == &model_sum && tree->ops == &model_tree);
	CHECK(bundle_tree(b) == &tree->tree && bundle_window(b) == &sum->sum);
	CHECK_EQ(sum->ops->width(sum, bundle_program(b)->n), sum->sum.n_inputs);
	CHECK_EQ(tree->ops->width(tree, bundle_program(b)->n), bundle_program(b)->n);
	for (i = 0; i < 100; i++) {
		struct model_answer a;
		struct tree_leaf leaf;

		for (k = 0; k < MODEL_MAX_INPUTS; k++)
			x[k] = check_random(&random) & 1 ? OAL_MISSING : (int64_t)check_random(&random) >> 40;
		tree->ops->eval(tree, x, &a);
		leaf = tree_leaf(bundle_tree(b), tree_apply(bundle_tree(b), x));
		CHECK_EQ(a.value, tree_apply(bundle_tree(b), x));
		CHECK(a.leaf.class == leaf.class && !memcmp(a.leaf.permille, leaf.permille, sizeof leaf.permille));
		sum->ops->eval(sum, x, &a);
		CHECK_EQ(a.value, sum_predict(bundle_window(b), x));
	}
	CHECK(model_kind("sum", 3) == &model_sum && !model_kind("sum", 2) && !model_kind("trees", 5) &&
	      !model_kind("", 0));
	bundle_free(b);
}

static void every_reason(const struct golden_bundles *g)
{
	unsigned r, i;

	test("every reason but three has a golden bundle");
	for (r = 1; r < OAL_N_BUNDLE_REASONS; r++) {
		for (i = 0; i < g->n && strcmp(g->at[i].outcome, bundle_reason_name(r)); i++)
			;
		CHECK(i < g->n || r == OAL_BUNDLE_REASON_OVERSIZED || r == OAL_BUNDLE_REASON_NO_MEMORY ||
		      r == OAL_BUNDLE_REASON_NOT_PERMITTED); /* in test_trusted_keys.c */
	}
}

static void oversized(const struct golden_bundles *g, const struct trusted_keys *keys)
{
	const struct golden_case *c = golden_find(g, "ok_tree");
	const size_t len = OAL_SETTING_MAX_BUNDLE_BYTES + 1;
	const struct bundle_terms terms = { .keys = keys, .verify = verified, .ap_id = "ap-1", .site = "lab" };
	uint8_t *bytes = calloc(1, len);
	struct bundle *b;
	char err[256];

	test("a bundle of one byte more than allowed is oversized, and is not read");
	memcpy(bytes, c->bytes, c->len);
	CHECK_EQ(bundle_open(&b, bytes, len, &terms, NULL, err, sizeof err), OAL_BUNDLE_REASON_OVERSIZED);
	CHECK(!b);
	CHECK_EQ(bundle_open(&b, bytes, len - 1, &terms, NULL, err, sizeof err), OAL_BUNDLE_REASON_MALFORMED);
	free(bytes);
}

static void what_is_in_it(const struct golden_bundles *g, const struct trusted_keys *keys)
{
	struct bundle_head head;
	struct bundle *b;
	char err[256];

	test("an opened bundle is what was written");
	CHECK_EQ(golden_open(&b, g, golden_find(g, "ok_window"), keys, verified, &head, err, sizeof err), 0);
	CHECK(!strcmp(head.target, "fleet") && !strcmp(head.model, "congestion-tree"));
	CHECK_EQ(head.version, 3);
	CHECK_EQ(head.source, 1);
	CHECK_EQ(head.bytes, golden_find(g, "ok_window")->len);
	CHECK_EQ(bundle_mode(b), OAL_POLICY_MODE_SHADOW);
	/* Written when the program had 45 features: the first of today's. */
	CHECK_EQ(bundle_program(b)->n, 45);
	CHECK(!memcmp(bundle_program(b)->words, oal_feature_congestion.words,
	              45 * sizeof oal_feature_congestion.words[0]));
	CHECK_EQ(feature_program_check(bundle_program(b)), 0);
	CHECK_EQ(bundle_window(b)->n_inputs, 7);
	CHECK_EQ(bundle_window(b)->n_nodes, 300);
	CHECK(bundle_memory(b) < 20000);
	bundle_free(b);
	CHECK_EQ(golden_open(&b, g, golden_find(g, "ok_policy_off"), keys, verified, &head, err, sizeof err), 0);
	CHECK_EQ(bundle_mode(b), OAL_POLICY_MODE_OFF);
	CHECK(!bundle_window(b));
	bundle_free(b);
}

static void heads_of_refused(const struct golden_bundles *g, const struct trusted_keys *keys)
{
	const struct golden_case *good = golden_find(g, "ok_tree");
	struct bundle_head head, zero = { 0 };
	struct bundle *b;
	char err[256];

	test("after a refusal the head says what could be trusted so far");
	golden_open(&b, g, golden_find(g, "malformed_half"), keys, verified, &head, err, sizeof err);
	CHECK(!memcmp(&head, &zero, sizeof head));
	golden_open(&b, g, golden_find(g, "unknown_key"), keys, verified, &head, err, sizeof err);
	CHECK(head.id && !head.serial && !head.model[0]);
	CHECK_EQ(head.hash[0], strtol((char[]){ good->hash[0], good->hash[1], 0 }, NULL, 16));
	golden_open(&b, g, golden_find(g, "golden_mismatch_leaf"), keys, verified, &head, err, sizeof err);
	CHECK(head.id && head.serial == good->serial && head.version == 3);
}

static void without_terms(const struct golden_bundles *g)
{
	const struct golden_case *c = golden_find(g, "wrong_target_ap");
	const struct bundle_terms any = { 0 };
	struct bundle *b;

	test("a tool that names no AP and no keys sees any bundle, with or without room for the reason");
	CHECK_EQ(bundle_open(&b, c->bytes, c->len, &any, NULL, NULL, 0), OAL_BUNDLE_REASON_NONE);
	bundle_free(b);
	c = golden_find(g, "bad_tree_cycle");
	CHECK_EQ(bundle_open(&b, c->bytes, c->len, &any, NULL, NULL, 0), OAL_BUNDLE_REASON_BAD_TREE);
	CHECK(!b);
}

/* A policy as policies.txt has it. */
static void policy_line(char *line, size_t size, const struct bundle *b)
{
	const struct oal_policy *p = bundle_policy(b);
	size_t at;
	unsigned i;

	if (!p) {
		snprintf(line, size, "%d 0 - - -", bundle_mode(b));
		return;
	}
	at = (size_t)snprintf(line, size, "%u %u", p->mode, p->version);
	for (i = 0; i < OAL_N_POLICY_FIELDS; i++)
		at += (size_t)snprintf(line + at, size - at, " %u", oal_policy_get(p, (enum oal_policy_field)i));
	for (i = 0; i < p->n_weights; i++)
		at += (size_t)snprintf(line + at, size - at, "%s%u:%u", i ? "," : " ", p->weight_port[i],
		                       p->weight_permille[i]);
	snprintf(line + at, size - at, "%s %s", p->n_weights ? "" : " -", p->name);
}

static void policies(const struct golden_bundles *g)
{
	const struct bundle_terms any = { 0 };
	unsigned good = 0, bad = 0, beyond = 0, i;
	char *text, *line, *next;
	size_t size;

	test("a policy is read as it was written, or refused with the field, its value and its bounds");
	text = (char *)check_file(GOLDEN "policies.txt", &size);
	text[size - 1] = 0; /* its last line end */
	for (line = text; line; line = next) {
		char name[64], err[256], got[512];
		const struct golden_case *c;
		struct bundle *b;

		next = strchr(line, '\n');
		if (next)
			*next++ = 0;
		sscanf(line, "%63s", name);
		c = golden_find(g, name);
		if (bundle_open(&b, c->bytes, c->len, &any, NULL, err, sizeof err) == OAL_BUNDLE_REASON_NONE) {
			policy_line(got, sizeof got, b);
			good++;
		} else {
			snprintf(got, sizeof got, "%s", err);
			bad++;
		}
		if (!strcmp(line + strlen(name) + 1, "-")) /* no policy at all */
			CHECK(b && !bundle_policy(b) && bundle_mode(b) == OAL_POLICY_MODE_OFF);
		else
			CHECK(!strcmp(got, line + strlen(name) + 1));
		bundle_free(b);
	}
	free(text);
	for (i = 0; i < OAL_N_POLICY_FIELDS; i++) /* each beyond each of its bounds that there is something beyond */
		beyond += (oal_policy_fields[i].min > 0) + (oal_policy_fields[i].max < UINT32_MAX);
	CHECK(good >= 9 && bad >= beyond);
}

static void policy_table(void)
{
	struct oal_policy p;
	uint64_t given = 0;
	unsigned i;

	test("defaults of a policy are those of the list, within their bounds and rules, and each number has a place "
	     "of its own");
	memset(&p, 0xff, sizeof p);
	oal_policy_defaults(&p);
	CHECK(!p.name[0] && !p.version && p.mode == OAL_POLICY_MODE_OFF && !p.n_weights);
	CHECK_EQ(p.floor_mss, 4);
	CHECK_EQ(p.ttl_us, 600000);
	for (i = 0; i < OAL_N_POLICY_FIELDS; i++) {
		const struct oal_policy_field_spec *s = &oal_policy_fields[i];

		CHECK(s->field > OAL_POLICY_FIELD_VERSION && s->field <= OAL_POLICY_MAX_FIELD &&
		      s->field != OAL_POLICY_FIELD_WEIGHT_PORT && s->field != OAL_POLICY_FIELD_WEIGHT_PERMILLE);
		CHECK(!(given >> s->field & 1));
		given |= UINT64_C(1) << s->field;
		CHECK(s->min <= s->normal && s->normal <= s->max);
		CHECK_EQ(oal_policy_get(&p, (enum oal_policy_field)i), s->normal);
		oal_policy_set(&p, (enum oal_policy_field)i, 1000 + i);
	}
	for (i = 0; i < OAL_N_POLICY_FIELDS; i++)
		CHECK_EQ(oal_policy_get(&p, (enum oal_policy_field)i), 1000 + i);
	CHECK_EQ(p.guard_backoff_us, 1000 + OAL_POLICY_GUARD_BACKOFF_US);
}

static void damage(const struct golden_bundles *one, const struct golden_bundles *two)
{
	const struct bundle_terms any = { 0 };
	const char *const names[] = { "ok_tree", "ok_window", "ok_unpacked", "ok_direct", "ok_direct_four_models" };
	uint64_t random = 7;
	unsigned i, k, taken = 0, refused = 0;

	test("a bundle cut anywhere or with flipped bits is refused or whole, never half");
	for (i = 0; i < sizeof names / sizeof names[0]; i++) {
		const struct golden_case *c = golden_find(i < 3 ? one : two, names[i]);
		uint8_t *bytes = malloc(c->len);
		size_t cut;

		for (cut = 0; cut < c->len; cut++) { /* a copy of just that length, for the sanitizer to see */
			uint8_t *part = malloc(cut + !cut);
			struct bundle *b;
			char err[256];

			memcpy(part, c->bytes, cut);
			CHECK(bundle_open(&b, part, cut, &any, NULL, err, sizeof err) != OAL_BUNDLE_REASON_NONE && !b &&
			      err[0]);
			free(part);
		}
		for (k = 0; k < 1500; k++) {
			struct bundle *b;
			char err[256];

			memcpy(bytes, c->bytes, c->len);
			bytes[check_random(&random) % c->len] ^= (uint8_t)(1u << (check_random(&random) & 7));
			if (bundle_open(&b, bytes, c->len, &any, NULL, err, sizeof err) == OAL_BUNDLE_REASON_NONE) {
				int64_t x[OAL_MAX_FEATURES];
				unsigned f;

				for (f = 0; f < OAL_MAX_FEATURES; f++)
					x[f] = f & 1 ? (int64_t)check_random(&random) : OAL_MISSING;
				CHECK(tree_apply(bundle_tree(b), x) < bundle_tree(b)->n);
				taken++;
			} else {
				CHECK(err[0]);
				refused++;
			}
			CHECK(!b == !!err[0]);
			bundle_free(b);
		}
		free(bytes);
	}
	CHECK(taken && refused);
}

static void leaves(const struct golden_bundles *g)
{
	const struct bundle_terms any = { 0 };
	const struct golden_case *c = golden_find(g, "ok_255_nodes");
	struct bundle *b;
	unsigned i, n = 0;

	test("a leaf's probabilities sum to 1000 permille");
	CHECK_EQ(bundle_open(&b, c->bytes, c->len, &any, NULL, NULL, 0), OAL_BUNDLE_REASON_NONE);
	for (i = 0; i < bundle_tree(b)->n; i++) {
		struct tree_leaf l;

		if (bundle_tree(b)->nodes[i].feature != NODE_LEAF)
			continue;
		l = tree_leaf(bundle_tree(b), i);
		CHECK_EQ(l.permille[0] + l.permille[1] + l.permille[2] + l.permille[3], 1000);
		CHECK_EQ(tree_congested_permille(l), l.permille[2] + l.permille[3]);
		CHECK(l.class < TREE_CLASSES);
		n++;
	}
	CHECK_EQ(n, 128);
	bundle_free(b);
}

int main(void)
{
	static struct golden_bundles g, two;
	const struct trusted_keys keys = golden_keys();

	golden_read(&g, "bundles");
	golden_read(&two, "bundles2");
	golden_bundles(&g, &keys);
	golden_bundles_2(&two, &keys);
	policies_in_force(&g, &two);
	kinds(&two);
	every_reason(&g);
	oversized(&g, &keys);
	what_is_in_it(&g, &keys);
	heads_of_refused(&g, &keys);
	without_terms(&g);
	policies(&g);
	policy_table();
	leaves(&g);
	damage(&g, &two);
	golden_free(&g);
	golden_free(&two);
	return done();
}
