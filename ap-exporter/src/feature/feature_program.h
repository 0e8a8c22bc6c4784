/* feature_program.h: a feature program as bytes, and whether it may be interpreted (schema/README.md, "Feature
 * programs"). */
#ifndef OAL_FEATURE_PROGRAM_H
#define OAL_FEATURE_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "oal_features.h"

/* A program in its file form ("OALF1", …). `words` has room for OAL_MAX_FEATURES; program->words points there, names
 * and name are NULL. -EINVAL for anything that is not a valid program. */
int feature_program_load(struct oal_feature_program *, int64_t (*words)[OAL_N_WORDS], const uint8_t *bytes, size_t len);
/* 0, or -EINVAL: every index within its table, operands earlier than their use, windows and divisors within bounds. */
int feature_program_check(const struct oal_feature_program *);
/* How headers, items and models name a program: the first 8 bytes of its hash, big-endian. */
uint64_t feature_program_id(const struct oal_feature_program *);

#endif
