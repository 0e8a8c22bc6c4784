#include "model/nodes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool is_first_parent(uint8_t *work, unsigned child)
{
	const uint8_t bit = (uint8_t)(1u << (child & 7));
	const bool first = !(work[child >> 3] & bit);

	work[child >> 3] |= bit;
	return first;
}

int nodes_check(const struct node *nodes, unsigned n, unsigned n_inputs, uint8_t *work, char *err, size_t err_size)
{
	unsigned i, n_children = 0;

	if (!n) {
		snprintf(err, err_size, "no nodes");
		return -EINVAL;
	}
	memset(work, 0, nodes_work(n));
	for (i = 0; i < n; i++) {
		const struct node *node = &nodes[i];

		if (node->feature == NODE_LEAF)
			continue;
		if (node->feature >= n_inputs) {
			snprintf(err, err_size, "node %u: feature %u of %u", i, node->feature, n_inputs);
			return -EINVAL;
		}
		if (node->right <= i + 1 || node->right >= n) {
			snprintf(err, err_size, "node %u: right child %u of %u nodes", i, node->right, n);
			return -EINVAL;
		}
		if (!is_first_parent(work, i + 1) || !is_first_parent(work, node->right)) {
			snprintf(err, err_size, "node %u shares a child with another", i);
			return -EINVAL;
		}
		n_children += 2;
	}
	if (n_children != n - 1) {
		snprintf(err, err_size, "%u of %u nodes are nobody's child", n - 1 - n_children, n);
		return -EINVAL;
	}
	return 0;
}

int nodes_read(struct node *nodes, uint32_t n, struct node_columns *l, uint32_t *n_inner, char *err, size_t err_size)
{
	uint32_t i;

	for (*n_inner = i = 0; i < n; i++) {
		const int64_t feature = pb_list_next(&l->feature);
		int64_t right;

		nodes[i] = (struct node){ 0, 0, NODE_LEAF, 0 };
		if (!feature)
			continue;
		nodes[i].threshold = pb_list_next(&l->threshold);
		right = pb_list_next(&l->right);
		if (feature > OAL_MAX_FEATURES || right > UINT16_MAX) {
			snprintf(err, err_size, "node %u: feature or right child out of range", i);
			return -EINVAL;
		}
		nodes[i].feature = (uint8_t)(feature - 1);
		nodes[i].right = (uint16_t)right;
		(*n_inner)++;
	}
	return 0;
}

int nodes_read_missing_right(struct node *nodes, uint32_t n, struct node_columns *l, uint32_t n_missing, char *err,
                             size_t err_size)
{
	int64_t last = -1;
	uint32_t i;

	for (i = 0; i < n_missing; i++) {
		const int64_t at = pb_list_next(&l->missing_right);

		if (at <= last || at >= n || nodes[at].feature == NODE_LEAF) {
			snprintf(err, err_size, "missing_right does not name inner nodes in ascending order");
			return -EINVAL;
		}
		nodes[at].missing_right = 1;
		last = at;
	}
	return 0;
}
