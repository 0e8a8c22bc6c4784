/* sum.h: regression by trees of integers: clamp((base + sum of one leaf a tree) >> shift, lo, hi). The window model of
 * a bundle is one: a flow's congestion window, in bytes. */
#ifndef OAL_SUM_H
#define OAL_SUM_H

#include <stddef.h>
#include <stdint.h>

#include "model/nodes.h"

enum { SUM_MAX_INPUTS = 128, SUM_MAX_SHIFT = 40 };

struct sum {
	unsigned n_inputs, n_trees, n_nodes; /* nodes of all trees */
	int32_t *inputs; /* v >= 0: feature v; v < 0: column -1 - v of the flow table's row, data going down */
	uint32_t *tree_nodes; /* of each tree */
	struct node *nodes; /* tree after tree; a leaf's threshold is its value */
	int64_t base, lo, hi;
	unsigned shift;
};

/* The answer for n_inputs values in the order of `inputs`; OAL_MISSING for one that is not there. */
int64_t sum_predict(const struct sum *, const int64_t *x);
/* 0, or -EINVAL with what is wrong in `err`. `work`: nodes_work() bytes for the largest tree. */
int sum_check(const struct sum *, unsigned n_features, uint8_t *work, char *err, size_t err_size);

#endif
