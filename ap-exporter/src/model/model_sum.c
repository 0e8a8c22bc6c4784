/* Kind "sum": message WindowModel of bundle.proto. */
#include "model/model.h"

#include <errno.h>
#include <stdio.h>

enum { SUM_HASH = 1, SUM_INPUT, SUM_BASE, SUM_SHIFT, SUM_LO, SUM_HI, SUM_TREE_NODES, SUM_FEATURE, SUM_THRESHOLD,
	SUM_RIGHT, SUM_MISSING_RIGHT, SUM_VALUE };

static size_t within(uint32_t n, uint32_t limit)
{
	return n <= limit ? n : 0;
}

static size_t nodes(const struct part *p)
{
	return within(p->fields[SUM_FEATURE].n, OAL_SETTING_MAX_WINDOW_NODES);
}

static size_t memory(const struct part *p)
{
	const size_t trees = within(p->fields[SUM_TREE_NODES].n, OAL_SETTING_MAX_WINDOW_TREES) * sizeof(uint32_t);
	const size_t inputs = within(p->fields[SUM_INPUT].n, SUM_MAX_INPUTS) * sizeof(int32_t);

	return nodes(p) * sizeof(struct node) + ((trees + inputs + 7) & ~(size_t)7);
}

static int decode(struct model *m, const struct part *part, void *memory, char *err, size_t err_size)
{
	struct sum *const s = &m->sum;
	const struct pb_field *const f = part->fields;
	struct node_columns l = bundle_part_nodes(part, PART_SUM, SUM_FEATURE, SUM_MISSING_RIGHT);
	struct pb_list input = bundle_part_list(part, PART_SUM, SUM_INPUT);
	struct pb_list tree_nodes = bundle_part_list(part, PART_SUM, SUM_TREE_NODES);
	struct pb_list value = bundle_part_list(part, PART_SUM, SUM_VALUE);
	uint32_t i, n_inner;

	m->feature_hash = (uint64_t)f[SUM_HASH].value;
	s->base = f[SUM_BASE].value;
	s->lo = f[SUM_LO].value;
	s->hi = f[SUM_HI].value;
	s->shift = (unsigned)f[SUM_SHIFT].value;
	s->n_inputs = f[SUM_INPUT].n;
	s->n_trees = f[SUM_TREE_NODES].n;
	s->n_nodes = f[SUM_FEATURE].n;
	if (s->n_inputs > SUM_MAX_INPUTS || s->n_trees > OAL_SETTING_MAX_WINDOW_TREES ||
	    s->n_nodes > OAL_SETTING_MAX_WINDOW_NODES) {
		snprintf(err, err_size, "%u inputs, %u trees, %u nodes; at most %d, %d and %d", s->n_inputs, s->n_trees,
		         s->n_nodes, SUM_MAX_INPUTS, OAL_SETTING_MAX_WINDOW_TREES, OAL_SETTING_MAX_WINDOW_NODES);
		return -EINVAL;
	}
	s->nodes = memory;
	s->tree_nodes = (uint32_t *)(void *)(s->nodes + s->n_nodes);
	s->inputs = (int32_t *)(void *)(s->tree_nodes + s->n_trees);
	for (i = 0; i < s->n_inputs; i++)
		s->inputs[i] = (int32_t)pb_list_next(&input);
	for (i = 0; i < s->n_trees; i++)
		s->tree_nodes[i] = (uint32_t)pb_list_next(&tree_nodes);
	if (nodes_read(s->nodes, s->n_nodes, &l, &n_inner, err, err_size))
		return -EINVAL;
	if (f[SUM_THRESHOLD].n != n_inner || f[SUM_RIGHT].n != n_inner ||
	    f[SUM_VALUE].n != s->n_nodes - n_inner) {
		snprintf(err, err_size, "%u inner nodes and %u leaves, but %u thresholds, %u right children, %u values",
		         n_inner, s->n_nodes - n_inner, f[SUM_THRESHOLD].n, f[SUM_RIGHT].n, f[SUM_VALUE].n);
		return -EINVAL;
	}
	if (nodes_read_missing_right(s->nodes, s->n_nodes, &l, f[SUM_MISSING_RIGHT].n, err, err_size))
		return -EINVAL;
	for (i = 0; i < s->n_nodes; i++)
		if (s->nodes[i].feature == NODE_LEAF)
			s->nodes[i].threshold = pb_list_next(&value);
	return 0;
}

static int check(const struct model *m, unsigned n_features, uint8_t *work, char *err, size_t err_size)
{
	return sum_check(&m->sum, n_features, work, err, err_size);
}

static unsigned width(const struct model *m, unsigned n_features)
{
	return m->sum.n_inputs;
}

static void eval(const struct model *m, const int64_t *x, struct model_answer *out)
{
	*out = (struct model_answer){ .value = sum_predict(&m->sum, x) };
}

const struct model_ops model_sum = {
	.kind = "sum",
	.title = "window model",
	.unit = "bytes",
	.part = PART_SUM,
	.refused = OAL_BUNDLE_REASON_BAD_WINDOW_MODEL,
	.memory = memory,
	.nodes = nodes,
	.decode = decode,
	.check = check,
	.width = width,
	.eval = eval,
};
