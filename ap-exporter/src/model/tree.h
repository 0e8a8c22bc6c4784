/* tree.h: the congestion tree: a class and its probabilities from a feature vector, in integers only. */
#ifndef OAL_TREE_H
#define OAL_TREE_H

#include <stddef.h>
#include <stdint.h>

#include "model/nodes.h"

/* Good, Acceptable, Poor, Bad */
enum { TREE_CLASSES = 4 };

/* What a leaf says. */
struct tree_leaf {
	uint8_t class;
	uint16_t permille[TREE_CLASSES];
};

struct tree {
	unsigned n;
	struct node *nodes;
};

/* Index of the leaf for a feature vector. The tree must have passed tree_check(). */
unsigned tree_apply(const struct tree *, const int64_t *features);
struct tree_leaf tree_leaf(const struct tree *, unsigned leaf);
/* Probability that the class is Poor or Bad. */
unsigned tree_congested_permille(struct tree_leaf);

/* A leaf's node. */
struct node tree_leaf_node(unsigned class, const uint16_t acceptable_poor_bad[3]);
/* 0, or -EINVAL with what is wrong in `err`. `work`: nodes_work(n) bytes. */
int tree_check(const struct tree *, unsigned n_features, uint8_t *work, char *err, size_t err_size);

#endif
