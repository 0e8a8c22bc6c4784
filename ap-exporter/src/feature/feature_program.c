#include "feature/feature_program.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/sha256.h"
#include "oal_schema.h"

/* Of EWMA: a larger shift leaves nothing of an integer. */
enum { MAX_EWMA_SHIFT = 16 };

/* May the feature `by` choose the entity for one that reads the table and filter of `w`? */
static bool chooses(const int64_t *by, const int64_t *w)
{
	return by[OAL_W_OP] >= OAL_OP_LAST && by[OAL_W_OP] <= OAL_OP_MEAN &&
	       (by[OAL_W_GROUP] == OAL_GROUP_MAX || by[OAL_W_GROUP] == OAL_GROUP_MIN) &&
	       by[OAL_W_TABLE] == w[OAL_W_TABLE] && by[OAL_W_FILTER_COLUMN] == w[OAL_W_FILTER_COLUMN] &&
	       by[OAL_W_FILTER_VALUE] == w[OAL_W_FILTER_VALUE];
}

static bool is_number(const struct oal_column *c)
{
	return c->type != OAL_T_MAC && c->type != OAL_T_NAME && c->type != OAL_T_FLOW;
}

static int check_base(const int64_t (*words)[OAL_N_WORDS], uint32_t index)
{
	const int64_t *w = words[index];
	const int64_t chooser = w[OAL_W_GROUP] < OAL_GROUP_AT ? -1 : w[OAL_W_GROUP] - OAL_GROUP_AT;
	const struct oal_table *t;
	const struct oal_column *c;

	if (w[OAL_W_TABLE] < 0 || w[OAL_W_TABLE] >= OAL_N_TABLES)
		return -EINVAL;
	t = &oal_tables[w[OAL_W_TABLE]];
	if (w[OAL_W_COLUMN] < 0 || w[OAL_W_COLUMN] >= t->n_columns || t->topic == OAL_TOPIC_EVENTS)
		return -EINVAL;
	c = &t->columns[w[OAL_W_COLUMN]];
	if (c->kind == OAL_TICK || c->kind == OAL_TIME_US)
		return -EINVAL;
	if (c->kind == OAL_KEY && (w[OAL_W_OP] != OAL_OP_LAST || !is_number(c)))
		return -EINVAL;
	if (t->event != (w[OAL_W_OP] == OAL_OP_SUM || w[OAL_W_OP] == OAL_OP_COUNT))
		return -EINVAL;
	if (w[OAL_W_FILTER_COLUMN] < -1 || w[OAL_W_FILTER_COLUMN] >= t->n_keys)
		return -EINVAL;
	if (chooser >= 0 ? chooser >= index || !chooses(words[chooser], w)
	                 : w[OAL_W_GROUP] < OAL_GROUP_SUM || w[OAL_W_GROUP] > OAL_GROUP_TOTAL)
		return -EINVAL;
	return w[OAL_W_A] >= 1 && w[OAL_W_B] >= 1 ? 0 : -EINVAL;
}

static int check_feature(const int64_t (*words)[OAL_N_WORDS], uint32_t index)
{
	const int64_t *w = words[index];
	int64_t max_window = OAL_MAX_WINDOW;

	switch (w[OAL_W_OP]) {
	case OAL_OP_LAST: case OAL_OP_DELTA: case OAL_OP_RATE: case OAL_OP_MAX: case OAL_OP_MIN: case OAL_OP_MEAN:
	case OAL_OP_SUM: case OAL_OP_COUNT:
		if (check_base(words, index))
			return -EINVAL;
		break;
	case OAL_OP_DIFF: case OAL_OP_ADD: case OAL_OP_RATIO:
		if (w[OAL_W_B] < 0 || w[OAL_W_B] >= index)
			return -EINVAL;
		/* fall through */
	case OAL_OP_EWMA: case OAL_OP_LAG: case OAL_OP_CHANGE:
		if (w[OAL_W_A] < 0 || w[OAL_W_A] >= index)
			return -EINVAL;
		break;
	default:
		return -EINVAL;
	}
	if (w[OAL_W_OP] == OAL_OP_EWMA)
		max_window = MAX_EWMA_SHIFT;
	if (w[OAL_W_OP] != OAL_OP_RATIO && (w[OAL_W_WINDOW] < 1 || w[OAL_W_WINDOW] > max_window))
		return -EINVAL;
	return 0;
}

int feature_program_check(const struct oal_feature_program *p)
{
	uint32_t i;

	/* An interval of an hour is more than anybody means, and keeps every product of times within 64 bits. */
	if (p->n > OAL_MAX_FEATURES || p->decision_interval_us < 1000 || p->decision_interval_us > INT64_C(3600000000))
		return -EINVAL;
	for (i = 0; i < p->n; i++)
		if (check_feature(p->words, i))
			return -EINVAL;
	return 0;
}

static int64_t be64(const uint8_t *p)
{
	uint64_t v = 0;
	int i;

	for (i = 0; i < 8; i++)
		v = v << 8 | p[i];
	return (int64_t)v;
}

int feature_program_load(struct oal_feature_program *p, int64_t (*words)[OAL_N_WORDS], const uint8_t *bytes, size_t len)
{
	int64_t n;
	unsigned i, k;

	if (len < 21 || memcmp(bytes, "OALF1", 5))
		return -EINVAL;
	n = be64(bytes + 13);
	if (n < 0 || n > OAL_MAX_FEATURES || len != 21 + (size_t)n * OAL_N_WORDS * 8)
		return -EINVAL;
	memset(p, 0, sizeof *p);
	p->n = (uint32_t)n;
	p->decision_interval_us = be64(bytes + 5);
	p->words = (const int64_t(*)[OAL_N_WORDS])words;
	for (i = 0; i < p->n; i++)
		for (k = 0; k < OAL_N_WORDS; k++)
			words[i][k] = be64(bytes + 21 + 8 * (i * OAL_N_WORDS + k));
	sha256(p->hash, bytes, len);
	return feature_program_check(p);
}

uint64_t feature_program_id(const struct oal_feature_program *p)
{
	uint64_t id = 0;
	unsigned i;

	for (i = 0; i < 8; i++)
		id = id << 8 | p->hash[i];
	return id;
}
