/* bundle_parts.h: the messages inside a bundle as what evaluates them. Each function reads one message whose fields
 * bundle_parts_read() has counted, into memory that was sized by those counts. */
#ifndef OAL_BUNDLE_PARTS_H
#define OAL_BUNDLE_PARTS_H

#include "oal_features.h"
#include "oal_policy.h"
#include "wire/protobuf.h"
#include "model/tree.h"
#include "model/window.h"

enum bundle_part { PART_PROGRAM, PART_TREE, PART_WINDOW, PART_POLICY, PART_GOLDEN, N_PARTS };
enum { PART_FIELDS = OAL_POLICY_FIELD_WEIGHT_PERMILLE + 1 };

struct part {
	const uint8_t *at; /* NULL: not there */
	size_t len;
	struct pb_field fields[PART_FIELDS]; /* by number */
};

/* 0, or -EBADMSG. */
int bundle_part_read(struct part *, enum bundle_part, char *err, size_t err_size);

/* Elements that the parts need: 0 when there are more than the contract allows, which the functions below then
 * refuse. */
size_t bundle_part_features(const struct part *program);
size_t bundle_part_tree_nodes(const struct part *tree);
size_t bundle_part_window_nodes(const struct part *window);
size_t bundle_part_window_trees(const struct part *window);
size_t bundle_part_window_inputs(const struct part *window);

/* Each: 0, or -EINVAL with what is wrong in `err`. */
int bundle_part_program(struct oal_feature_program *, int64_t (*words)[OAL_N_WORDS], const struct part *, char *err,
                        size_t err_size);
int bundle_part_tree(struct tree *, const struct part *, unsigned n_features, uint8_t *work, char *err,
                     size_t err_size);
int bundle_part_window(struct window *, const struct part *, unsigned n_features, uint8_t *work, char *err,
                       size_t err_size);
/* All zero but the mode when it has no name. */
int bundle_part_policy(struct oal_policy *, const struct part *, char *err, size_t err_size);
/* Runs the golden vectors; `window` may be NULL. */
int bundle_part_golden(const struct part *, const struct tree *, unsigned n_features, const struct window *, char *err,
                       size_t err_size);

#endif
