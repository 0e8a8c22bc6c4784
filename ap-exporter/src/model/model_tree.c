/* Kind "tree": message Tree of bundle.proto. */
#include "model/model.h"

#include <errno.h>
#include <stdio.h>

enum { TREE_HASH = 1, TREE_FEATURE, TREE_THRESHOLD, TREE_RIGHT, TREE_MISSING_RIGHT, TREE_CLASS, TREE_PERMILLE };

static size_t nodes(const struct part *p)
{
	return p->fields[TREE_FEATURE].n <= OAL_SETTING_MAX_TREE_NODES ? p->fields[TREE_FEATURE].n : 0;
}

static size_t memory(const struct part *p)
{
	return nodes(p) * sizeof(struct node);
}

static int decode(struct model *m, const struct part *part, void *memory, char *err, size_t err_size)
{
	struct tree *const t = &m->tree;
	const struct pb_field *const f = part->fields;
	struct node_columns l = bundle_part_nodes(part, PART_TREE, TREE_FEATURE, TREE_MISSING_RIGHT);
	struct pb_list class = bundle_part_list(part, PART_TREE, TREE_CLASS);
	struct pb_list permille = bundle_part_list(part, PART_TREE, TREE_PERMILLE);
	uint32_t i, k, n_inner, n_leaves;

	m->feature_hash = (uint64_t)f[TREE_HASH].value;
	t->nodes = memory;
	t->n = f[TREE_FEATURE].n;
	if (!t->n || t->n > OAL_SETTING_MAX_TREE_NODES) {
		snprintf(err, err_size, "%u nodes; 1 to %d", t->n, OAL_SETTING_MAX_TREE_NODES);
		return -EINVAL;
	}
	if (nodes_read(t->nodes, t->n, &l, &n_inner, err, err_size))
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
	if (nodes_read_missing_right(t->nodes, t->n, &l, f[TREE_MISSING_RIGHT].n, err, err_size))
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
	return 0;
}

static int check(const struct model *m, unsigned n_features, uint8_t *work, char *err, size_t err_size)
{
	return tree_check(&m->tree, n_features, work, err, err_size);
}

static unsigned width(const struct model *m, unsigned n_features)
{
	return n_features;
}

static void eval(const struct model *m, const int64_t *x, struct model_answer *out)
{
	const unsigned leaf = tree_apply(&m->tree, x);

	*out = (struct model_answer){ leaf, tree_leaf(&m->tree, leaf) };
}

const struct model_ops model_tree = {
	.kind = "tree",
	.title = "tree",
	.unit = "leaf",
	.part = PART_TREE,
	.refused = OAL_BUNDLE_REASON_BAD_TREE,
	.memory = memory,
	.nodes = nodes,
	.decode = decode,
	.check = check,
	.width = width,
	.eval = eval,
};
