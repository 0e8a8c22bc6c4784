/* model.h: a model of a bundle, whatever its kind. A kind is a `struct model_ops`; bundle.proto calls it by its name.
 *
 * A model has no memory of its own: a bundle is one allocation, of which decode() fills a piece. */
#ifndef OAL_MODEL_H
#define OAL_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "model/bundle_parts.h"
#include "model/sum.h"
#include "model/tree.h"
#include "oal_schema.h"

enum { MODEL_MAX_ROLE = 16, MODEL_MAX_INPUTS = 128 };

struct model {
	const struct model_ops *ops;
	char role[MODEL_MAX_ROLE + 1]; /* what the law takes it for */
	uint64_t feature_hash; /* first 8 bytes, big-endian, of the hash of the feature program that it is for */
	union {
		struct tree tree;
		struct sum sum;
	};
};

/* What a model says of its inputs. */
struct model_answer {
	int64_t value; /* tree: index of the leaf; sum: its value */
	struct tree_leaf leaf; /* of a tree; else zero */
};

struct model_ops {
	const char *kind; /* in bundle.proto */
	const char *title, *unit; /* in messages: what it is, and what its answer is */
	enum bundle_part part; /* the message that it comes in */
	enum oal_bundle_reason refused; /* of one that cannot be used */
	/* Of a message whose fields were counted; 0 for more than the contract allows, which decode() then refuses. */
	size_t (*memory)(const struct part *); /* bytes, a multiple of 8 */
	size_t (*nodes)(const struct part *); /* that check() needs work space for */
	/* 0, or -EINVAL with what is wrong in `err`. `memory` is aligned to 8 bytes. */
	int (*decode)(struct model *, const struct part *, void *memory, char *err, size_t err_size);
	/* 0, or -EINVAL likewise: may it be evaluated? `work`: nodes_work(nodes) bytes. */
	int (*check)(const struct model *, unsigned n_features, uint8_t *work, char *err, size_t err_size);
	/* Inputs of a row. */
	unsigned (*width)(const struct model *, unsigned n_features);
	/* `x` has width() values; OAL_MISSING for one that is not there. Neither allocates nor fails. */
	void (*eval)(const struct model *, const int64_t *x, struct model_answer *);
};

extern const struct model_ops model_tree, model_sum;

/* The kind of this name, or NULL. */
const struct model_ops *model_kind(const char *name, size_t len);

/* The golden vectors of a model: rows of inputs, and an answer for each. */
struct model_golden {
	struct pb_list input, answer;
	uint32_t n_inputs, n_answers; /* values in the lists */
};
/* 0, or -EINVAL with what is wrong in `err`: another answer, no vector, or lists that do not fit each other. */
int model_check_golden(const struct model *, unsigned n_features, struct model_golden, char *err, size_t err_size);

#endif
