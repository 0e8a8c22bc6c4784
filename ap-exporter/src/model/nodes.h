/* nodes.h: decision trees as flat tables of integers (schema/README.md, "Bundles"): what the congestion tree and the
 * trees of a window model share.
 *
 * A tree is `n` nodes in preorder: node 0 is the root, the left child of inner node i is i + 1. */
#ifndef OAL_NODES_H
#define OAL_NODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "oal_features.h"
#include "wire/protobuf.h"

enum { NODE_LEAF = 0xff };

struct node {
	int64_t threshold; /* of an inner node; what a leaf says is its owner's */
	uint16_t right;
	uint8_t feature; /* index into the inputs, or NODE_LEAF */
	uint8_t missing_right;
};

/* Index of the leaf for inputs `x`. The tree must have passed nodes_check(): then every step leads to a higher
 * index. */
static inline unsigned nodes_walk(const struct node *nodes, const int64_t *x)
{
	const struct node *n = nodes;

	while (n->feature != NODE_LEAF) {
		const int64_t v = x[n->feature];
		/* A missing value is the smallest of all, so without missing_right it goes left by itself. */
		const bool right = (v > n->threshold) | ((v == OAL_MISSING) & n->missing_right);

		n = right ? nodes + n->right : n + 1;
	}
	return (unsigned)(n - nodes);
}

/* Size of the work space that nodes_check() needs for `n` nodes. */
static inline size_t nodes_work(size_t n)
{
	return (n + 7) / 8;
}

/* 0, or -EINVAL: features within `n_inputs`, right children after left ones and in range, every node but the root the
 * child of exactly one. `work`: nodes_work(n) bytes. `err` (may be NULL) gets what is wrong. */
int nodes_check(const struct node *, unsigned n, unsigned n_inputs, uint8_t *work, char *err, size_t err_size);

/* Columns of nodes as they come in a message, each a list. */
struct node_columns {
	struct pb_list feature, threshold, right, missing_right;
};
/* Features, thresholds and right children of `n` nodes, the thresholds of leaves 0; counts the inner ones. Each: 0, or
 * -EINVAL with what is wrong in `err`. */
int nodes_read(struct node *, uint32_t n, struct node_columns *, uint32_t *n_inner, char *err, size_t err_size);
int nodes_read_missing_right(struct node *, uint32_t n, struct node_columns *, uint32_t n_missing, char *err,
                             size_t err_size);

#endif
