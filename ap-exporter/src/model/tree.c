#include "model/tree.h"

#include <errno.h>
#include <stdio.h>

#include "oal_schema.h"

/* A leaf's threshold holds its class and three probabilities, 16 bits each. */
enum { CLASS_SHIFT = 48 };

unsigned tree_apply(const struct tree *t, const int64_t *features)
{
	return nodes_walk(t->nodes, features);
}

struct tree_leaf tree_leaf(const struct tree *t, unsigned leaf)
{
	const uint64_t v = (uint64_t)t->nodes[leaf].threshold;
	const uint16_t acceptable = v & 0xffff, poor = v >> 16 & 0xffff, bad = v >> 32 & 0xffff;

	return (struct tree_leaf){ (uint8_t)(v >> CLASS_SHIFT),
	                           { (uint16_t)(1000 - acceptable - poor - bad), acceptable, poor, bad } };
}

unsigned tree_congested_permille(struct tree_leaf leaf)
{
	return leaf.permille[2] + leaf.permille[3];
}

struct node tree_leaf_node(unsigned class, const uint16_t p[3])
{
	return (struct node){ (int64_t)((uint64_t)class << CLASS_SHIFT | (uint64_t)p[2] << 32 | (uint64_t)p[1] << 16 |
	                                p[0]),
	                      0, NODE_LEAF, 0 };
}

int tree_check(const struct tree *t, unsigned n_features, uint8_t *work, char *err, size_t err_size)
{
	unsigned i;

	if (t->n > OAL_SETTING_MAX_TREE_NODES) {
		snprintf(err, err_size, "%u nodes; at most %d", t->n, OAL_SETTING_MAX_TREE_NODES);
		return -EINVAL;
	}
	if (nodes_check(t->nodes, t->n, n_features, work, err, err_size))
		return -EINVAL;
	for (i = 0; i < t->n; i++) {
		const uint64_t v = (uint64_t)t->nodes[i].threshold;

		if (t->nodes[i].feature != NODE_LEAF)
			continue;
		if (v >> CLASS_SHIFT >= TREE_CLASSES || (v & 0xffff) + (v >> 16 & 0xffff) + (v >> 32 & 0xffff) > 1000) {
			snprintf(err, err_size, "leaf %u: class or probabilities out of range", i);
			return -EINVAL;
		}
	}
	return 0;
}
