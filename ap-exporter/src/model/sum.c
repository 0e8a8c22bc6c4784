#include "model/window.h"

#include <errno.h>
#include <stdio.h>

#include "oal_schema.h"

#define MAX_LEAF (INT64_C(1) << 40)
#define MAX_BASE (INT64_C(1) << 52)

int64_t window_predict(const struct window *w, const int64_t *x)
{
	const struct node *nodes = w->nodes;
	int64_t total = w->base;
	unsigned i;

	for (i = 0; i < w->n_trees; i++) {
		total += nodes[nodes_walk(nodes, x)].threshold;
		nodes += w->tree_nodes[i];
	}
	/* Arithmetic, defined for negative numbers too. */
	total = total < 0 ? ~(~total >> w->shift) : total >> w->shift;
	return total < w->lo ? w->lo : total > w->hi ? w->hi : total;
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

static int check_tree(const struct window *w, unsigned tree, const struct node *nodes, uint8_t *work, char *err,
                      size_t err_size)
{
	char what[128];
	unsigned i;

	if (nodes_check(nodes, w->tree_nodes[tree], w->n_inputs, work, what, sizeof what)) {
		snprintf(err, err_size, "tree %u: %s", tree, what);
		return -EINVAL;
	}
	for (i = 0; i < w->tree_nodes[tree]; i++) {
		if (nodes[i].feature == NODE_LEAF &&
		    (nodes[i].threshold <= -MAX_LEAF || nodes[i].threshold >= MAX_LEAF)) {
			snprintf(err, err_size, "tree %u: value of leaf %u is not within 2^40", tree, i);
			return -EINVAL;
		}
	}
	return 0;
}

int window_check(const struct window *w, unsigned n_features, uint8_t *work, char *err, size_t err_size)
{
	const struct node *nodes = w->nodes;
	uint64_t n_nodes = 0;
	unsigned i;

	if (w->n_inputs < 1 || w->n_inputs > WINDOW_MAX_INPUTS || w->n_trees < 1 ||
	    w->n_trees > OAL_SETTING_MAX_WINDOW_TREES || w->n_nodes > OAL_SETTING_MAX_WINDOW_NODES) {
		snprintf(err, err_size, "%u inputs, %u trees, %u nodes; at most %d, %d and %d", w->n_inputs, w->n_trees,
		         w->n_nodes, WINDOW_MAX_INPUTS, OAL_SETTING_MAX_WINDOW_TREES, OAL_SETTING_MAX_WINDOW_NODES);
		return -EINVAL;
	}
	for (i = 0; i < w->n_inputs; i++) {
		if (!is_input(w->inputs[i], n_features)) {
			snprintf(err, err_size, "input %d is neither a feature nor a column of the flow table",
			         w->inputs[i]);
			return -EINVAL;
		}
	}
	if (w->base <= -MAX_BASE || w->base >= MAX_BASE || w->shift > WINDOW_MAX_SHIFT || w->lo > w->hi) {
		snprintf(err, err_size, "base, shift %u or bounds out of range", w->shift);
		return -EINVAL;
	}
	for (i = 0; i < w->n_trees; i++)
		n_nodes += w->tree_nodes[i];
	if (n_nodes != w->n_nodes) {
		snprintf(err, err_size, "%u nodes for trees of %llu", w->n_nodes, (unsigned long long)n_nodes);
		return -EINVAL;
	}
	for (i = 0; i < w->n_trees; nodes += w->tree_nodes[i++])
		if (check_tree(w, i, nodes, work, err, err_size))
			return -EINVAL;
	return 0;
}
