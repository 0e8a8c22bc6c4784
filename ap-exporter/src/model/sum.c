#include "model/sum.h"

#include <errno.h>
#include <stdio.h>

#include "oal_schema.h"

#define MAX_LEAF (INT64_C(1) << 40)
#define MAX_BASE (INT64_C(1) << 52)

int64_t sum_predict(const struct sum *s, const int64_t *x)
{
	const struct node *nodes = s->nodes;
	int64_t total = s->base;
	unsigned i;

	for (i = 0; i < s->n_trees; i++) {
		total += nodes[nodes_walk(nodes, x)].threshold;
		nodes += s->tree_nodes[i];
	}
	/* Arithmetic, defined for negative numbers too. */
	total = total < 0 ? ~(~total >> s->shift) : total >> s->shift;
	return total < s->lo ? s->lo : total > s->hi ? s->hi : total;
}

static bool is_input(int32_t v, unsigned n_features)
{
	const struct oal_table *flow = &oal_tables[OAL_FLOW];
	const struct oal_column *c;

	if (v >= 0)
		return (uint32_t)v < n_features;
	if (-1 - (int64_t)v >= flow->n_columns)
		return false;
	c = &flow->columns[-1 - v];
	return c->kind != OAL_KEY && c->kind != OAL_TICK && c->kind != OAL_TIME_US;
}

static int check_tree(const struct sum *s, unsigned tree, const struct node *nodes, uint8_t *work, char *err,
                      size_t err_size)
{
	char what[128];
	unsigned i;

	if (nodes_check(nodes, s->tree_nodes[tree], s->n_inputs, work, what, sizeof what)) {
		snprintf(err, err_size, "tree %u: %s", tree, what);
		return -EINVAL;
	}
	for (i = 0; i < s->tree_nodes[tree]; i++) {
		if (nodes[i].feature == NODE_LEAF &&
		    (nodes[i].threshold <= -MAX_LEAF || nodes[i].threshold >= MAX_LEAF)) {
			snprintf(err, err_size, "tree %u: value of leaf %u is not within 2^40", tree, i);
			return -EINVAL;
		}
	}
	return 0;
}

int sum_check(const struct sum *s, unsigned n_features, uint8_t *work, char *err, size_t err_size)
{
	const struct node *nodes = s->nodes;
	uint64_t n_nodes = 0;
	unsigned i;

	if (s->n_inputs < 1 || s->n_inputs > SUM_MAX_INPUTS || s->n_trees < 1 ||
	    s->n_trees > OAL_SETTING_MAX_WINDOW_TREES || s->n_nodes > OAL_SETTING_MAX_WINDOW_NODES) {
		snprintf(err, err_size, "%u inputs, %u trees, %u nodes; at most %d, %d and %d", s->n_inputs, s->n_trees,
		         s->n_nodes, SUM_MAX_INPUTS, OAL_SETTING_MAX_WINDOW_TREES, OAL_SETTING_MAX_WINDOW_NODES);
		return -EINVAL;
	}
	for (i = 0; i < s->n_inputs; i++) {
		if (!is_input(s->inputs[i], n_features)) {
			snprintf(err, err_size, "input %d is neither a feature nor a column of the flow table",
			         s->inputs[i]);
			return -EINVAL;
		}
	}
	if (s->base <= -MAX_BASE || s->base >= MAX_BASE || s->shift > SUM_MAX_SHIFT || s->lo > s->hi) {
		snprintf(err, err_size, "base, shift %u or bounds out of range", s->shift);
		return -EINVAL;
	}
	for (i = 0; i < s->n_trees; i++)
		n_nodes += s->tree_nodes[i];
	if (n_nodes != s->n_nodes) {
		snprintf(err, err_size, "%u nodes for trees of %llu", s->n_nodes, (unsigned long long)n_nodes);
		return -EINVAL;
	}
	for (i = 0; i < s->n_trees; nodes += s->tree_nodes[i++])
		if (check_tree(s, i, nodes, work, err, err_size))
			return -EINVAL;
	return 0;
}
