#include "model/bundle_parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/sha256.h"
#include "feature/feature_program.h"
#include "oal_schema.h"

/* Field numbers of bundle.proto. */
enum { PROGRAM_INTERVAL = 1, PROGRAM_OP = 2, PROGRAM_GIVEN = 11, PROGRAM_BOUND = 12, N_WORDS_GIVEN = 9 };

#define U32S (PB_U32 | PB_LIST)
#define S32S (PB_S32 | PB_LIST)
#define S64S (PB_S64 | PB_LIST)
static const uint8_t kinds[N_PARTS][PART_FIELDS] = {
	[PART_PROGRAM] = { 0, PB_U32, S32S, S32S, S32S, S32S, S64S, S32S, S64S, S64S, S64S, U32S, S64S },
	[PART_TREE] = { 0, PB_FIXED64, U32S, S64S, U32S, U32S, U32S, U32S },
	[PART_SUM] = { 0, PB_FIXED64, S32S, PB_S64, PB_U32, PB_S64, PB_S64, U32S, U32S, S64S, U32S, U32S, S64S },
	[PART_POLICY] = { 0, PB_U32, PB_TEXT, [OAL_POLICY_FIELD_VERSION ... OAL_POLICY_FIELD_WEIGHT_PORT - 1] = PB_U32,
	                  U32S, U32S, OAL_POLICY_LATER_KINDS(PB_U32) },
	[PART_GOLDEN] = { 0, S64S, U32S, S64S, S64S },
	[PART_LAW] = { 0, PB_TEXT, PB_TEXT, PB_TEXT, S64S },
	[PART_MODEL] = { 0, PB_TEXT, PB_TEXT, PB_MESSAGE, PB_MESSAGE, S64S, S64S },
};

int bundle_part_read(struct part *p, enum bundle_part part, char *err, size_t err_size)
{
	return pb_read(p->fields, kinds[part], PART_FIELDS, p->at, p->len, OAL_POLICY_MAX_NAME, err, err_size);
}

struct pb_list bundle_part_list(const struct part *p, enum bundle_part part, uint32_t number)
{
	struct pb_list l;

	pb_list_begin(&l, p->at, p->len, number, kinds[part][number] & ~PB_LIST);
	return l;
}

/* Node columns are in the same order in both messages. */
struct node_columns bundle_part_nodes(const struct part *p, enum bundle_part part, uint32_t feature,
                                      uint32_t missing_right)
{
	return (struct node_columns){ bundle_part_list(p, part, feature), bundle_part_list(p, part, feature + 1),
	                              bundle_part_list(p, part, feature + 2),
	                              bundle_part_list(p, part, missing_right) };
}

size_t bundle_part_features(const struct part *p)
{
	return p->fields[PROGRAM_OP].n <= OAL_MAX_FEATURES ? p->fields[PROGRAM_OP].n : 0;
}

/* --- feature program */

static void hash_be64(uint8_t *at, int64_t v)
{
	int i;

	for (i = 0; i < 8; i++)
		at[i] = (uint8_t)((uint64_t)v >> (56 - 8 * i));
}

static void program_hash(struct oal_feature_program *p)
{
	static const uint8_t magic[] = { 'O', 'A', 'L', 'F', '1' };
	uint8_t bytes[21 + 8 * OAL_N_WORDS * OAL_MAX_FEATURES];
	unsigned i, k;

	memcpy(bytes, magic, sizeof magic);
	hash_be64(bytes + 5, p->decision_interval_us);
	hash_be64(bytes + 13, p->n);
	for (i = 0; i < p->n; i++)
		for (k = 0; k < OAL_N_WORDS; k++)
			hash_be64(bytes + 21 + 8 * (i * OAL_N_WORDS + k), p->words[i][k]);
	sha256(p->hash, bytes, 21 + (size_t)p->n * 8 * OAL_N_WORDS);
}

int bundle_part_program(struct oal_feature_program *p, int64_t (*words)[OAL_N_WORDS], const struct part *part,
                        char *err, size_t err_size)
{
	const struct pb_field *const f = part->fields;
	struct pb_list given = bundle_part_list(part, PART_PROGRAM, PROGRAM_GIVEN);
	struct pb_list bound = bundle_part_list(part, PART_PROGRAM, PROGRAM_BOUND);
	struct pb_list column[N_WORDS_GIVEN];
	uint32_t i, k, n_bounds = 0;
	bool wild = false;

	if (!f[PROGRAM_OP].n || f[PROGRAM_OP].n > OAL_MAX_FEATURES) {
		snprintf(err, err_size, "%u features; 1 to %d", f[PROGRAM_OP].n, OAL_MAX_FEATURES);
		return -EINVAL;
	}
	for (k = PROGRAM_OP; k <= PROGRAM_GIVEN; k++) {
		if (f[k].n != f[PROGRAM_OP].n) {
			snprintf(err, err_size, "%u operators, but %u in field %u", f[PROGRAM_OP].n, f[k].n, k);
			return -EINVAL;
		}
	}
	for (k = 0; k < N_WORDS_GIVEN; k++)
		column[k] = bundle_part_list(part, PART_PROGRAM, PROGRAM_OP + k);
	for (i = 0; i < f[PROGRAM_OP].n; i++) {
		const int64_t g = pb_list_next(&given);

		for (k = 0; k < N_WORDS_GIVEN; k++)
			words[i][k] = pb_list_next(&column[k]);
		words[i][OAL_W_LO] = g & 1 ? pb_list_next(&bound) : INT64_MIN + 1;
		words[i][OAL_W_HI] = g & 2 ? pb_list_next(&bound) : INT64_MAX;
		words[i][OAL_W_DEFAULT] = g & 4 ? pb_list_next(&bound) : OAL_MISSING;
		n_bounds += (uint32_t)((g & 1) + (g >> 1 & 1) + (g >> 2 & 1));
		wild |= g > 7;
	}
	if (wild || n_bounds != f[PROGRAM_BOUND].n) {
		snprintf(err, err_size, "%u bounds are not as many as given", f[PROGRAM_BOUND].n);
		return -EINVAL;
	}
	memset(p, 0, sizeof *p);
	p->n = f[PROGRAM_OP].n;
	p->decision_interval_us = f[PROGRAM_INTERVAL].value;
	p->words = (const int64_t(*)[OAL_N_WORDS])words;
	if (feature_program_check(p)) {
		snprintf(err, err_size, "an operator, an operand, a column or a limit of a feature is out of range");
		return -EINVAL;
	}
	program_hash(p);
	return 0;
}

