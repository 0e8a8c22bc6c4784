/* Histogram CART on a window of binned items. Features are int64; MISSING marks an absent one. Pure functions on the
 * caller's buffers: nothing is allocated, nothing is kept. Thread-safe. */
#ifndef OAL_TRAINING_TREE_H
#define OAL_TRAINING_TREE_H

#include <stdint.h>

enum { OAL_CLASSES = 4, OAL_MAX_BINS = 256, OAL_MAX_ITEMS = 65535, OAL_MAX_NODES = 511 };
#define OAL_MISSING INT64_MIN

/* Bins of one column. Bin 0 holds missing values; bin b >= 1 the values x with edge[b-2] < x <= edge[b-1]. */
struct oal_bins {
	int32_t features;      /* columns */
	int32_t bins;          /* slots per column in a histogram, 4..256, the missing one included */
	int32_t stride;        /* bytes from row to row of `binned`, >= features */
	const int64_t *edges;  /* [features][bins - 2] ascending */
	const int32_t *n_edges; /* [features], 0..bins - 2 */
};

struct oal_fit {
	int32_t max_nodes;     /* odd, 1..OAL_MAX_NODES */
	int32_t max_depth;     /* edges from root to the deepest leaf */
	int32_t min_leaf;      /* items in a leaf, >= 1 */
	float min_gain;        /* weighted impurity that a split must remove, as a share of the root's weight */
	float smoothing;       /* items' worth of the parent's probabilities mixed into a node's */
	float class_weight[OAL_CLASSES];
};

/* A tree in the contract's form (schema/README.md, "Bundles"): preorder, left child next. */
struct oal_tree {
	int32_t *feature;      /* -1 at a leaf */
	int64_t *threshold;
	int32_t *right;
	uint8_t *missing_right;
	uint8_t *leaf_class;
	uint16_t *leaf_permille; /* [nodes][3]: Acceptable, Poor, Bad */
	int32_t *items;        /* items at the node */
};

/* Edges of one column: at most `max_edges`, chosen so that bins hold about equally many items; a frequent value gets
 * a bin of its own. An edge lies halfway between neighbouring values. `scratch` has room for 2 * n values. Returns
 * their number. */
int32_t oal_edges(const int64_t *column, int64_t row_stride, int32_t n, int64_t *scratch, int32_t max_edges,
		  int64_t *edges);

/* Bins of rows [n][features], all columns. */
void oal_bin_rows(const struct oal_bins *bins, const int64_t *rows, int32_t n, uint8_t *binned);

/* Bins of one column of all rows, after its edges changed. */
void oal_bin_column(const struct oal_bins *bins, int32_t feature, const int64_t *rows, int32_t n, uint8_t *binned);

/* Room that oal_tree_fit needs, bytes. */
int64_t oal_fit_bytes(const struct oal_bins *bins, const struct oal_fit *fit, int32_t n);

/* Fit on rows `row[n]` of `binned` and `classes`. Returns the number of nodes, or 0 when an argument is out of
 * range. */
int32_t oal_tree_fit(const struct oal_bins *bins, const struct oal_fit *fit, const uint8_t *binned,
		     const uint8_t *classes, const int32_t *row, int32_t n, void *room, struct oal_tree *out);

/* Leaf of each of the rows `row[n]` of `values` [..][features]. */
void oal_tree_apply(const struct oal_tree *tree, const int64_t *values, int32_t features, const int32_t *row, int32_t n,
		    int32_t *leaf);

#endif
