#include "model/bundle_parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "feature/feature.h"
#include "oal_schema.h"
#include "base/sha256.h"

/* Field numbers of bundle.proto. */
enum { PROGRAM_INTERVAL = 1, PROGRAM_OP = 2, PROGRAM_GIVEN = 11, PROGRAM_BOUND = 12, N_WORDS_GIVEN = 9 };
enum { TREE_HASH = 1, TREE_FEATURE, TREE_THRESHOLD, TREE_RIGHT, TREE_MISSING_RIGHT, TREE_CLASS, TREE_PERMILLE };
enum { WINDOW_HASH = 1, WINDOW_INPUT, WINDOW_BASE, WINDOW_SHIFT, WINDOW_LO, WINDOW_HI, WINDOW_TREE_NODES,
	WINDOW_FEATURE, WINDOW_THRESHOLD, WINDOW_RIGHT, WINDOW_MISSING_RIGHT, WINDOW_VALUE };
enum { GOLDEN_FEATURES = 1, GOLDEN_LEAF, GOLDEN_WINDOW_INPUT, GOLDEN_WINDOW_BYTES };

enum { MAX_INPUTS = 128 };
_Static_assert((int)OAL_MAX_FEATURES <= (int)MAX_INPUTS && (int)WINDOW_MAX_INPUTS <= (int)MAX_INPUTS,
               "a golden vector fits");

#define U32S (PB_U32 | PB_LIST)
#define S32S (PB_S32 | PB_LIST)
#define S64S (PB_S64 | PB_LIST)
static const uint8_t kinds[N_PARTS][PART_FIELDS] = {
	[PART_PROGRAM] = { 0, PB_U32, S32S, S32S, S32S, S32S, S64S, S32S, S64S, S64S, S64S, U32S, S64S },
	[PART_TREE] = { 0, PB_FIXED64, U32S, S64S, U32S, U32S, U32S, U32S },
	[PART_WINDOW] = { 0, PB_FIXED64, S32S, PB_S64, PB_U32, PB_S64, PB_S64, U32S, U32S, S64S, U32S, U32S, S64S },
	[PART_POLICY] = { 0, PB_U32, PB_TEXT, [OAL_POLICY_FIELD_VERSION ... OAL_POLICY_FIELD_WEIGHT_PORT - 1] = PB_U32,
	                  U32S, U32S },
	[PART_GOLDEN] = { 0, S64S, U32S, S64S, S64S },
};

int bundle_part_read(struct part *p, enum bundle_part part, char *err, size_t err_size)
{
	return pb_read(p->fields, kinds[part], PART_FIELDS, p->at, p->len, OAL_POLICY_MAX_NAME, err, err_size);
}

static struct pb_list list(const struct part *p, enum bundle_part part, uint32_t number)
{
	struct pb_list l;

	pb_list_begin(&l, p->at, p->len, number, kinds[part][number] & ~PB_LIST);
	return l;
}

static size_t within(uint32_t n, uint32_t limit)
{
	return n <= limit ? n : 0;
}

size_t bundle_part_features(const struct part *p)
{
	return within(p->fields[PROGRAM_OP].n, OAL_MAX_FEATURES);
}

size_t bundle_part_tree_nodes(const struct part *p)
{
	return within(p->fields[TREE_FEATURE].n, OAL_SETTING_MAX_TREE_NODES);
}

size_t bundle_part_window_nodes(const struct part *p)
{
	return within(p->fields[WINDOW_FEATURE].n, OAL_SETTING_MAX_WINDOW_NODES);
}

size_t bundle_part_window_trees(const struct part *p)
{
	return within(p->fields[WINDOW_TREE_NODES].n, OAL_SETTING_MAX_WINDOW_TREES);
}

size_t bundle_part_window_inputs(const struct part *p)
{
	return within(p->fields[WINDOW_INPUT].n, WINDOW_MAX_INPUTS);
}

/* --- feature program */

static void hash_be64(uint8_t *at, int64_t v)
{
	int i;

	for (i = 0; i < 8; i++)
		at[i] = (uint8_t)((uint64_t)v >> (56 - 8 * i));
}

static void program_hash(struct oal_feature_program *p)
{
	static const uint8_t magic[] = { 'O', 'A', 'L', 'F', '1' };
	uint8_t bytes[21 + 8 * OAL_N_WORDS * OAL_MAX_FEATURES];
	unsigned i, k;

	memcpy(bytes, magic, sizeof magic);
	hash_be64(bytes + 5, p->decision_interval_us);
	hash_be64(bytes + 13, p->n);
	for (i = 0; i < p->n; i++)
		for (k = 0; k < OAL_N_WORDS; k++)
			hash_be64(bytes + 21 + 8 * (i * OAL_N_WORDS + k), p->words[i][k]);
	sha256(p->hash, bytes, 21 + (size_t)p->n * 8 * OAL_N_WORDS);
}

int bundle_part_program(struct oal_feature_program *p, int64_t (*words)[OAL_N_WORDS], const struct part *part,
                        char *err, size_t err_size)
{
	const struct pb_field *const f = part->fields;
	struct pb_list column[N_WORDS_GIVEN], given = list(part, PART_PROGRAM, PROGRAM_GIVEN),
					      bound = list(part, PART_PROGRAM, PROGRAM_BOUND);
	uint32_t i, k, n_bounds = 0;
	bool wild = false;

	if (!f[PROGRAM_OP].n || f[PROGRAM_OP].n > OAL_MAX_FEATURES) {
		snprintf(err, err_size, "%u features; 1 to %d", f[PROGRAM_OP].n, OAL_MAX_FEATURES);
		return -EINVAL;
	}
	for (k = PROGRAM_OP; k <= PROGRAM_GIVEN; k++) {
		if (f[k].n != f[PROGRAM_OP].n) {
			snprintf(err, err_size, "%u operators, but %u in field %u", f[PROGRAM_OP].n, f[k].n, k);
			return -EINVAL;
		}
	}
	for (k = 0; k < N_WORDS_GIVEN; k++)
		column[k] = list(part, PART_PROGRAM, PROGRAM_OP + k);
	for (i = 0; i < f[PROGRAM_OP].n; i++) {
		const int64_t g = pb_list_next(&given);

		for (k = 0; k < N_WORDS_GIVEN; k++)
			words[i][k] = pb_list_next(&column[k]);
		words[i][OAL_W_LO] = g & 1 ? pb_list_next(&bound) : INT64_MIN + 1;
		words[i][OAL_W_HI] = g & 2 ? pb_list_next(&bound) : INT64_MAX;
		words[i][OAL_W_DEFAULT] = g & 4 ? pb_list_next(&bound) : OAL_MISSING;
		n_bounds += (uint32_t)((g & 1) + (g >> 1 & 1) + (g >> 2 & 1));
		wild |= g > 7;
	}
	if (wild || n_bounds != f[PROGRAM_BOUND].n) {
		snprintf(err, err_size, "%u bounds are not as many as given", f[PROGRAM_BOUND].n);
		return -EINVAL;
	}
	memset(p, 0, sizeof *p);
	p->n = f[PROGRAM_OP].n;
	p->decision_interval_us = f[PROGRAM_INTERVAL].value;
	p->words = (const int64_t(*)[OAL_N_WORDS])words;
	if (feature_program_check(p)) {
		snprintf(err, err_size, "an operator, an operand, a column or a limit of a feature is out of range");
		return -EINVAL;
	}
	program_hash(p);
	return 0;
}

/* --- nodes, of the tree and of window models */

struct node_lists {
	struct pb_list feature, threshold, right, missing_right;
};

/* Node columns stand in the same order in both messages. */
static struct node_lists node_lists(const struct part *p, enum bundle_part part, uint32_t feature,
                                    uint32_t missing_right)
{
	return (struct node_lists){ list(p, part, feature), list(p, part, feature + 1), list(p, part, feature + 2),
	                            list(p, part, missing_right) };
}

/* Features, thresholds and right children of `n` nodes; leaves take what `leaf` gives. Counts inner nodes. */
static int read_nodes(struct node *nodes, uint32_t n, struct node_lists *l, uint32_t *n_inner, char *err,
                      size_t err_size)
{
	uint32_t i;

	for (*n_inner = i = 0; i < n; i++) {
		const int64_t feature = pb_list_next(&l->feature);
		int64_t right;

		nodes[i] = (struct node){ 0, 0, NODE_LEAF, 0 };
		if (!feature)
			continue;
		nodes[i].threshold = pb_list_next(&l->threshold);
		right = pb_list_next(&l->right);
		if (feature > OAL_MAX_FEATURES || right > UINT16_MAX) {
			snprintf(err, err_size, "node %u: feature or right child out of range", i);
			return -EINVAL;
		}
		nodes[i].feature = (uint8_t)(feature - 1);
		nodes[i].right = (uint16_t)right;
		(*n_inner)++;
	}
	return 0;
}

static int read_missing_right(struct node *nodes, uint32_t n, struct node_lists *l, uint32_t n_missing, char *err,
                              size_t err_size)
{
	int64_t last = -1;
	uint32_t i;

	for (i = 0; i < n_missing; i++) {
		const int64_t at = pb_list_next(&l->missing_right);

		if (at <= last || at >= n || nodes[at].feature == NODE_LEAF) {
			snprintf(err, err_size, "missing_right does not name inner nodes in ascending order");
			return -EINVAL;
		}
		nodes[at].missing_right = 1;
		last = at;
	}
	return 0;
}

int bundle_part_tree(struct tree *t, const struct part *part, unsigned n_features, uint8_t *work, char *err,
                     size_t err_size)
{
	const struct pb_field *const f = part->fields;
	struct node_lists l = node_lists(part, PART_TREE, TREE_FEATURE, TREE_MISSING_RIGHT);
	struct pb_list class = list(part, PART_TREE, TREE_CLASS), permille = list(part, PART_TREE, TREE_PERMILLE);
	uint32_t i, k, n_inner, n_leaves;

	t->feature_hash = (uint64_t)f[TREE_HASH].value;
	t->n = f[TREE_FEATURE].n;
	if (!t->n || t->n > OAL_SETTING_MAX_TREE_NODES) {
		snprintf(err, err_size, "%u nodes; 1 to %d", t->n, OAL_SETTING_MAX_TREE_NODES);
		return -EINVAL;
	}
	if (read_nodes(t->nodes, t->n, &l, &n_inner, err, err_size))
		return -EINVAL;
	n_leaves = t->n - n_inner;
	if (f[TREE_THRESHOLD].n != n_inner || f[TREE_RIGHT].n != n_inner || f[TREE_CLASS].n != n_leaves ||
	    f[TREE_PERMILLE].n != 3 * n_leaves) {
		snprintf(err, err_size,
		         "%u inner nodes and %u leaves, but %u thresholds, %u right children, %u classes, %u "
		         "probabilities",
		         n_inner, n_leaves, f[TREE_THRESHOLD].n, f[TREE_RIGHT].n, f[TREE_CLASS].n, f[TREE_PERMILLE].n);
		return -EINVAL;
	}
	if (read_missing_right(t->nodes, t->n, &l, f[TREE_MISSING_RIGHT].n, err, err_size))
		return -EINVAL;
	for (i = 0; i < t->n; i++) {
		uint16_t p[3];
		int64_t c;

		if (t->nodes[i].feature != NODE_LEAF)
			continue;
		c = pb_list_next(&class);
		for (k = 0; k < 3; k++) {
			const int64_t v = pb_list_next(&permille);

			p[k] = (uint16_t)(v > 1000 ? 1001 : v); /* which tree_check() refuses */
		}
		t->nodes[i] = tree_leaf_node((unsigned)(c >= TREE_CLASSES ? TREE_CLASSES : c), p);
	}
	return tree_check(t, n_features, work, err, err_size);
}

/* --- window model */

int bundle_part_window(struct window *w, const struct part *part, unsigned n_features, uint8_t *work, char *err,
                       size_t err_size)
{
	const struct pb_field *const f = part->fields;
	struct node_lists l = node_lists(part, PART_WINDOW, WINDOW_FEATURE, WINDOW_MISSING_RIGHT);
	struct pb_list input = list(part, PART_WINDOW, WINDOW_INPUT),
		       tree_nodes = list(part, PART_WINDOW, WINDOW_TREE_NODES);
	struct pb_list value = list(part, PART_WINDOW, WINDOW_VALUE);
	uint32_t i, n_inner;

	w->feature_hash = (uint64_t)f[WINDOW_HASH].value;
	w->base = f[WINDOW_BASE].value;
	w->lo = f[WINDOW_LO].value;
	w->hi = f[WINDOW_HI].value;
	w->shift = (unsigned)f[WINDOW_SHIFT].value;
	w->n_inputs = f[WINDOW_INPUT].n;
	w->n_trees = f[WINDOW_TREE_NODES].n;
	w->n_nodes = f[WINDOW_FEATURE].n;
	if (w->n_inputs > WINDOW_MAX_INPUTS || w->n_trees > OAL_SETTING_MAX_WINDOW_TREES ||
	    w->n_nodes > OAL_SETTING_MAX_WINDOW_NODES) {
		snprintf(err, err_size, "%u inputs, %u trees, %u nodes; at most %d, %d and %d", w->n_inputs, w->n_trees,
		         w->n_nodes, WINDOW_MAX_INPUTS, OAL_SETTING_MAX_WINDOW_TREES, OAL_SETTING_MAX_WINDOW_NODES);
		return -EINVAL;
	}
	for (i = 0; i < w->n_inputs; i++)
		w->inputs[i] = (int32_t)pb_list_next(&input);
	for (i = 0; i < w->n_trees; i++)
		w->tree_nodes[i] = (uint32_t)pb_list_next(&tree_nodes);
	if (read_nodes(w->nodes, w->n_nodes, &l, &n_inner, err, err_size))
		return -EINVAL;
	if (f[WINDOW_THRESHOLD].n != n_inner || f[WINDOW_RIGHT].n != n_inner ||
	    f[WINDOW_VALUE].n != w->n_nodes - n_inner) {
		snprintf(err, err_size, "%u inner nodes and %u leaves, but %u thresholds, %u right children, %u values",
		         n_inner, w->n_nodes - n_inner, f[WINDOW_THRESHOLD].n, f[WINDOW_RIGHT].n, f[WINDOW_VALUE].n);
		return -EINVAL;
	}
	if (read_missing_right(w->nodes, w->n_nodes, &l, f[WINDOW_MISSING_RIGHT].n, err, err_size))
		return -EINVAL;
	for (i = 0; i < w->n_nodes; i++)
		if (w->nodes[i].feature == NODE_LEAF)
			w->nodes[i].threshold = pb_list_next(&value);
	return window_check(w, n_features, work, err, err_size);
}

/* --- golden vectors */

/* Vectors of one model: `n_values` inputs and `n_answers` answers. */
static int check_counts(const char *model, uint32_t n_values, uint32_t n_answers, unsigned width, char *err,
                        size_t err_size)
{
	if (n_answers && n_values == (uint64_t)n_answers * width)
		return 0;
	snprintf(err, err_size, "%s: %u answers and %u values for %u inputs", model, n_answers, n_values, width);
	return -EINVAL;
}

int bundle_part_golden(const struct part *part, const struct tree *t, unsigned n_features, const struct window *w,
                       char *err, size_t err_size)
{
	const struct pb_field *const f = part->fields;
	struct pb_list in = list(part, PART_GOLDEN, GOLDEN_FEATURES), answer = list(part, PART_GOLDEN, GOLDEN_LEAF);
	int64_t x[MAX_INPUTS];
	uint32_t i, k;

	if (check_counts("tree", f[GOLDEN_FEATURES].n, f[GOLDEN_LEAF].n, n_features, err, err_size))
		return -EINVAL;
	for (i = 0; i < f[GOLDEN_LEAF].n; i++) {
		int64_t want;

		for (k = 0; k < n_features; k++)
			x[k] = pb_list_next(&in);
		want = pb_list_next(&answer);
		if (tree_apply(t, x) != want) {
			snprintf(err, err_size, "vector %u: leaf %u, not %lld", i, tree_apply(t, x), (long long)want);
			return -EINVAL;
		}
	}
	if (!w && (f[GOLDEN_WINDOW_INPUT].n || f[GOLDEN_WINDOW_BYTES].n)) {
		snprintf(err, err_size, "vectors for a window model, and none is there");
		return -EINVAL;
	}
	if (!w)
		return 0;
	if (check_counts("window model", f[GOLDEN_WINDOW_INPUT].n, f[GOLDEN_WINDOW_BYTES].n, w->n_inputs, err,
	                 err_size))
		return -EINVAL;
	in = list(part, PART_GOLDEN, GOLDEN_WINDOW_INPUT);
	answer = list(part, PART_GOLDEN, GOLDEN_WINDOW_BYTES);
	for (i = 0; i < f[GOLDEN_WINDOW_BYTES].n; i++) {
		int64_t want;

		for (k = 0; k < w->n_inputs; k++)
			x[k] = pb_list_next(&in);
		want = pb_list_next(&answer);
		if (window_predict(w, x) != want) {
			snprintf(err, err_size, "window vector %u: %lld bytes, not %lld", i,
			         (long long)window_predict(w, x), (long long)want);
			return -EINVAL;
		}
	}
	return 0;
}
