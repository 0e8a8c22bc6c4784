/* Leaf-wise growth on histograms. A histogram's slot packs the four classes' counts in 16 bits each, so that
 * counting an item is one addition per feature, and a sibling's histogram is one subtraction per slot. Hence at most
 * 65,535 items. */
#include <string.h>

#include "tree.h"

typedef uint16_t u16x4 __attribute__((vector_size(8)));
typedef float f32x4 __attribute__((vector_size(16)));

struct split {
	float gain; /* <= 0: none */
	int32_t feature;
	int32_t bin; /* last bin that goes left */
	uint8_t missing_right;
};

struct node {
	uint64_t counts; /* packed */
	int32_t first, n; /* its rows */
	int32_t depth;
	int32_t left, right; /* 0 for a leaf: the root is nobody's child */
	int32_t histogram; /* slot in the pool, -1 for none */
	struct split split;
};

struct grower {
	const struct oal_bins *bins;
	const struct oal_fit *fit;
	const uint8_t *binned;
	const uint8_t *classes;
	int32_t *row, *spare;
	uint64_t *pool;
	int64_t slots; /* of one histogram */
	struct node *nodes;
	int32_t n_nodes;
	f32x4 weight;
	float min_gain;
};

static inline f32x4 unpack(uint64_t counts)
{
	u16x4 lanes;
	memcpy(&lanes, &counts, sizeof lanes);
	return __builtin_convertvector(lanes, f32x4);
}

static inline int32_t total(uint64_t counts)
{
	return (int32_t)((counts * 0x0001000100010001ull) >> 48);
}

static inline float sum(f32x4 x)
{
	return (x[0] + x[1]) + (x[2] + x[3]);
}

/* Sum over classes of weight squared, by weight: the purity that Gini splitting maximises. */
static inline float purity(f32x4 weights)
{
	float w = sum(weights);
	return w > 0 ? sum(weights * weights) / w : 0;
}

static inline float purity_of_both(f32x4 left, f32x4 right)
{
	float l = sum(left), r = sum(right);
	return (sum(left * left) * r + sum(right * right) * l) / (l * r);
}

static void count(const struct grower *g, const struct node *node, uint64_t *histogram)
{
	int32_t features = g->bins->features, bins = g->bins->bins;

	memset(histogram, 0, (size_t)g->slots * sizeof *histogram);
	for (int32_t i = 0; i < node->n; i++) {
		int32_t row = g->row[node->first + i];
		const uint8_t *b = g->binned + (int64_t)row * g->bins->stride;
		uint64_t one = 1ull << (16 * g->classes[row]), *h = histogram;
		int32_t f = 0;
		for (; f + 4 <= features; f += 4, h += 4 * bins) {
			h[b[f]] += one;
			h[bins + b[f + 1]] += one;
			h[2 * bins + b[f + 2]] += one;
			h[3 * bins + b[f + 3]] += one;
		}
		for (; f < features; f++, h += bins)
			h[b[f]] += one;
	}
}

/* The best split of a node, from its histogram. */
static struct split best_split(const struct grower *g, const struct node *node, const uint64_t *histogram)
{
	struct split best = { 0 };
	f32x4 all = unpack(node->counts) * g->weight;
	float here = purity(all), reached = here + g->min_gain;
	int32_t min_leaf = g->fit->min_leaf, n = node->n;

	for (int32_t f = 0; f < g->bins->features; f++) {
		const uint64_t *h = histogram + (int64_t)f * g->bins->bins;
		int32_t n_edges = g->bins->n_edges[f], n_missing = total(h[0]), n_left = 0;
		uint64_t left = 0, missing = h[0];
		for (int32_t b = 1; b <= n_edges; b++) {
			if (!h[b])
				continue;
			left += h[b];
			n_left += total(h[b]);
			if (n - n_left < min_leaf)
				break;
			int32_t with_missing = n_left + n_missing;
			if (with_missing >= min_leaf && n - with_missing >= min_leaf) {
				f32x4 l = unpack(left + missing) * g->weight;
				float score = purity_of_both(l, all - l);
				if (score > reached) {
					reached = score;
					best = (struct split){ score - here, f, b, 0 };
				}
			}
			if (n_missing && n_left >= min_leaf) {
				f32x4 l = unpack(left) * g->weight;
				float score = purity_of_both(l, all - l);
				if (score > reached) {
					reached = score;
					best = (struct split){ score - here, f, b, 1 };
				}
			}
		}
	}
	if (best.gain > 0) {
		const uint64_t *h = histogram + (int64_t)best.feature * g->bins->bins;
		int32_t next = best.bin + 1, n_edges = g->bins->n_edges[best.feature];
		/* Bins without items here may go either way: cut in their middle. */
		while (next <= n_edges && !h[next])
			next++;
		best.bin = (best.bin + next - 1) / 2;
		if (!h[0]) {
			/* No missing value seen here: the larger side takes those to come. */
			int32_t n_left = 0;
			for (int32_t b = 1; b <= best.bin; b++)
				n_left += total(h[b]);
			best.missing_right = n_left * 2 < n;
		}
	}
	return best;
}

static int may_split(const struct grower *g, const struct node *node)
{
	uint64_t c = node->counts;
	int classes = !!(c & 0xffff) + !!(c >> 16 & 0xffff) + !!(c >> 32 & 0xffff) + !!(c >> 48);
	return classes > 1 && node->n >= 2 * g->fit->min_leaf && node->depth < g->fit->max_depth;
}

/* Divide the node's rows, keeping their order; returns how many go left. */
static int32_t partition(struct grower *g, const struct node *node)
{
	const struct split *s = &node->split;
	int32_t *row = g->row + node->first, left = 0, right = 0;

	for (int32_t i = 0; i < node->n; i++) {
		uint8_t b = g->binned[(int64_t)row[i] * g->bins->stride + s->feature];
		int goes_right = b ? b > s->bin : s->missing_right;
		g->spare[right] = row[i];
		row[left] = row[i];
		right += goes_right;
		left += !goes_right;
	}
	memcpy(row + left, g->spare, (size_t)right * sizeof *row);
	return left;
}

static uint64_t counts_of(const struct grower *g, int32_t first, int32_t n)
{
	uint64_t counts = 0;
	for (int32_t i = 0; i < n; i++)
		counts += 1ull << (16 * g->classes[g->row[first + i]]);
	return counts;
}

static void split_node(struct grower *g, struct node *node)
{
	int32_t n_left = partition(g, node), at = g->n_nodes;
	struct node *left = &g->nodes[at], *right = &g->nodes[at + 1];

	g->n_nodes += 2;
	*left = (struct node){ .first = node->first, .n = n_left, .depth = node->depth + 1, .histogram = -1 };
	*right = (struct node){
		.first = node->first + n_left,
		.n = node->n - n_left,
		.depth = node->depth + 1,
		.histogram = -1,
	};
	struct node *small = left->n <= right->n ? left : right, *large = small == left ? right : left;
	small->counts = counts_of(g, small->first, small->n);
	large->counts = node->counts - small->counts;
	node->left = at;
	node->right = at + 1;

	int small_may = may_split(g, small), large_may = may_split(g, large);
	/* The parent's histogram becomes the larger child's. The pool has one per leaf, and the smaller child is one
	 * leaf more. */
	uint64_t *rest = g->pool + node->histogram * g->slots;
	int32_t slot = g->n_nodes / 2;
	uint64_t *own = g->pool + slot * g->slots;
	if (small_may || large_may)
		count(g, small, own);
	if (large_may) {
		for (int64_t i = 0; i < g->slots; i++)
			rest[i] -= own[i];
		large->histogram = node->histogram;
		large->split = best_split(g, large, rest);
	}
	if (small_may) {
		small->histogram = slot;
		small->split = best_split(g, small, own);
	}
}

/* Write node `i` and what is below it; probabilities are mixed with `above`'s, the parent's. Returns the next free
 * index. */
static int32_t emit(const struct grower *g, int32_t i, const float *above, int32_t at, struct oal_tree *out)
{
	const struct node *node = &g->nodes[i];
	float p[OAL_CLASSES], m = g->fit->smoothing;

	for (int c = 0; c < OAL_CLASSES; c++)
		p[c] = ((float)(node->counts >> (16 * c) & 0xffff) + m * above[c]) / ((float)node->n + m);
	out->items[at] = node->n;
	if (!node->left) {
		int best = 0, left = 1000;
		for (int c = 1; c < OAL_CLASSES; c++)
			if (p[c] * g->fit->class_weight[c] > p[best] * g->fit->class_weight[best])
				best = c;
		for (int c = OAL_CLASSES - 1; c > 0; c--) {
			int permille = (int)(p[c] * 1000 + 0.5f);
			permille = permille > left ? left : permille;
			left -= permille;
			out->leaf_permille[3 * at + c - 1] = (uint16_t)permille;
		}
		out->feature[at] = -1;
		out->threshold[at] = 0;
		out->right[at] = 0;
		out->missing_right[at] = 0;
		out->leaf_class[at] = (uint8_t)best;
		return at + 1;
	}
	const struct split *s = &node->split;
	out->feature[at] = s->feature;
	out->threshold[at] = g->bins->edges[(int64_t)s->feature * (g->bins->bins - 2) + s->bin - 1];
	out->missing_right[at] = s->missing_right;
	out->leaf_class[at] = 0;
	memset(out->leaf_permille + 3 * at, 0, 3 * sizeof *out->leaf_permille);
	int32_t right = emit(g, node->left, p, at + 1, out);
	out->right[at] = right;
	return emit(g, node->right, p, right, out);
}

static int64_t aligned(int64_t bytes)
{
	return (bytes + 63) / 64 * 64;
}

int64_t oal_fit_bytes(const struct oal_bins *bins, const struct oal_fit *fit, int32_t n)
{
	int64_t leaves = (fit->max_nodes + 1) / 2;
	return aligned((leaves + 1) * bins->features * bins->bins * (int64_t)sizeof(uint64_t)) +
	       aligned((fit->max_nodes + 2) * (int64_t)sizeof(struct node)) + 2 * aligned(n * (int64_t)sizeof(int32_t));
}

int32_t oal_tree_fit(const struct oal_bins *bins, const struct oal_fit *fit, const uint8_t *binned,
		     const uint8_t *classes, const int32_t *row, int32_t n, void *room, struct oal_tree *out)
{
	if (n < 1 || n > OAL_MAX_ITEMS || bins->bins < 4 || bins->bins > OAL_MAX_BINS || bins->features < 1 ||
	    bins->stride < bins->features || fit->max_nodes < 1 || fit->max_nodes > OAL_MAX_NODES || fit->min_leaf < 1)
		return 0;
	for (int c = 0; c < OAL_CLASSES; c++)
		if (!(fit->class_weight[c] > 0))
			return 0;

	struct grower g = { .bins = bins, .fit = fit, .binned = binned, .classes = classes };
	int64_t leaves = (fit->max_nodes + 1) / 2;
	char *at = room;
	g.slots = (int64_t)bins->features * bins->bins;
	g.pool = (uint64_t *)at;
	at += aligned((leaves + 1) * g.slots * (int64_t)sizeof(uint64_t));
	g.nodes = (struct node *)at;
	at += aligned((fit->max_nodes + 2) * (int64_t)sizeof(struct node));
	g.row = (int32_t *)at;
	g.spare = (int32_t *)(at + aligned(n * (int64_t)sizeof(int32_t)));
	memcpy(g.row, row, (size_t)n * sizeof *row);
	memcpy(&g.weight, fit->class_weight, sizeof g.weight);

	struct node *root = &g.nodes[0];
	*root = (struct node){ .n = n, .histogram = 0, .counts = counts_of(&g, 0, n) };
	g.n_nodes = 1;
	g.min_gain = fit->min_gain * sum(unpack(root->counts) * g.weight);
	if (may_split(&g, root)) {
		count(&g, root, g.pool);
		root->split = best_split(&g, root, g.pool);
	}
	while (g.n_nodes + 2 <= fit->max_nodes) {
		struct node *best = NULL;
		for (int32_t i = 0; i < g.n_nodes; i++)
			if (!g.nodes[i].left && g.nodes[i].split.gain > (best ? best->split.gain : 0))
				best = &g.nodes[i];
		if (!best)
			break;
		split_node(&g, best);
	}
	static const float even[OAL_CLASSES] = { 0.25f, 0.25f, 0.25f, 0.25f };
	return emit(&g, 0, even, 0, out);
}

void oal_tree_apply(const struct oal_tree *tree, const int64_t *values, int32_t features, const int32_t *row, int32_t n,
		    int32_t *leaf)
{
	for (int32_t i = 0; i < n; i++) {
		const int64_t *x = values + (int64_t)row[i] * features;
		int32_t at = 0;
		while (tree->feature[at] >= 0) {
			int64_t v = x[tree->feature[at]];
			int right = v == OAL_MISSING ? tree->missing_right[at] : v > tree->threshold[at];
			at = right ? tree->right[at] : at + 1;
		}
		leaf[i] = at;
	}
}
