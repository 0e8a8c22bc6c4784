/* bundle_parts.h: the messages inside a bundle, and those of them that are no model. Each function reads one message
 * whose fields bundle_part_read() has counted, into memory that was sized by those counts. */
#ifndef OAL_BUNDLE_PARTS_H
#define OAL_BUNDLE_PARTS_H

#include "model/nodes.h"
#include "oal_features.h"
#include "oal_policy.h"
#include "wire/protobuf.h"

enum bundle_part { PART_PROGRAM, PART_TREE, PART_SUM, PART_POLICY, PART_GOLDEN, PART_LAW, PART_MODEL, N_PARTS };
enum { PART_FIELDS = OAL_POLICY_MAX_FIELD + 1 };

struct part {
	const uint8_t *at; /* NULL: not there */
	size_t len;
	struct pb_field fields[PART_FIELDS]; /* by number */
};

/* 0, or -EBADMSG. */
int bundle_part_read(struct part *, enum bundle_part, char *err, size_t err_size);
/* A list of it, by its field's number. */
struct pb_list bundle_part_list(const struct part *, enum bundle_part, uint32_t number);
/* The columns of its nodes: feature, threshold and right one after another, and missing_right. */
struct node_columns bundle_part_nodes(const struct part *, enum bundle_part, uint32_t feature, uint32_t missing_right);

/* Of a program; 0 when there are more than the contract allows, which bundle_part_program() then refuses. */
size_t bundle_part_features(const struct part *program);

/* Each: 0, or -EINVAL with what is wrong in `err`. */
int bundle_part_program(struct oal_feature_program *, int64_t (*words)[OAL_N_WORDS], const struct part *, char *err,
                        size_t err_size);
/* All zero but the mode when it has no name. */
int bundle_part_policy(struct oal_policy *, const struct part *, char *err, size_t err_size);

#endif
