#include "model/bundle_open.h"

#include <stdlib.h>
#include <string.h>

void bundle_free(struct bundle *b)
{
	free(b);
}

const struct bundle_head *bundle_head(const struct bundle *b)
{
	return &b->head;
}

const struct oal_feature_program *bundle_program(const struct bundle *b)
{
	return &b->program;
}

const struct tree *bundle_tree(const struct bundle *b)
{
	return b->tree;
}

const struct sum *bundle_window(const struct bundle *b)
{
	return b->window;
}

const struct bundle_law *bundle_law(const struct bundle *b)
{
	return &b->law;
}

unsigned bundle_n_models(const struct bundle *b)
{
	return b->n_models;
}

const struct model *bundle_model(const struct bundle *b, unsigned i)
{
	return &b->models[i];
}

enum oal_policy_mode bundle_mode(const struct bundle *b)
{
	return (enum oal_policy_mode)b->policy.mode;
}

const struct oal_policy *bundle_policy(const struct bundle *b)
{
	return b->policy.name[0] ? &b->policy : NULL;
}

bool bundle_allows_rollback(const struct bundle *b, const uint8_t hash[BUNDLE_HASH_BYTES])
{
	unsigned i;

	for (i = 0; i < b->n_rollback; i++)
		if (!memcmp(b->rollback[i], hash, BUNDLE_HASH_BYTES))
			return true;
	return false;
}

size_t bundle_memory(const struct bundle *b)
{
	return b->size;
}

const char *bundle_reason_name(enum oal_bundle_reason reason)
{
	static const char *const names[] = OAL_BUNDLE_REASONS;

	return reason < OAL_N_BUNDLE_REASONS ? names[reason] : "unknown";
}
