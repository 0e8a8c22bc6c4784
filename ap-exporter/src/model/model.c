#include "model/model.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

_Static_assert((int)OAL_MAX_FEATURES <= (int)MODEL_MAX_INPUTS && (int)SUM_MAX_INPUTS <= (int)MODEL_MAX_INPUTS,
               "a golden vector fits");

const struct model_ops *model_kind(const char *name, size_t len)
{
	static const struct model_ops *const kinds[] = { &model_tree, &model_sum };
	unsigned i;

	for (i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (strlen(kinds[i]->kind) == len && !memcmp(kinds[i]->kind, name, len))
			return kinds[i];
	return NULL;
}

int model_check_golden(const struct model *m, unsigned n_features, struct model_golden g, char *err, size_t err_size)
{
	const struct model_ops *const o = m->ops;
	const unsigned width = o->width(m, n_features);
	int64_t x[MODEL_MAX_INPUTS];
	struct model_answer got;
	uint32_t i, k;

	if (!g.n_answers || g.n_inputs != (uint64_t)g.n_answers * width) {
		snprintf(err, err_size, "%s: %u answers and %u values for %u inputs", o->title, g.n_answers, g.n_inputs,
		         width);
		return -EINVAL;
	}
	for (i = 0; i < g.n_answers; i++) {
		int64_t want;

		for (k = 0; k < width; k++)
			x[k] = pb_list_next(&g.input);
		want = pb_list_next(&g.answer);
		o->eval(m, x, &got);
		if (got.value != want) {
			snprintf(err, err_size, "%s, vector %u: %s %lld, not %lld", o->title, i, o->unit,
			         (long long)got.value, (long long)want);
			return -EINVAL;
		}
	}
	return 0;
}
