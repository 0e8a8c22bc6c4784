/* A bundle from a hostile push service, with the signature out of the way. What is taken must be usable whole. */
#include "model/bundle.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct bundle_terms any = { 0 };
	const struct oal_policy *p;
	int64_t x[OAL_MAX_FEATURES] = { 0 };
	struct bundle *b;
	char err[256];
	unsigned i, k;

	if (bundle_open(&b, data, size, &any, NULL, err, sizeof err) != OAL_BUNDLE_REASON_NONE) {
		if (b || !err[0])
			abort(); /* a refusal gives no bundle, and says why */
		return 0;
	}
	p = bundle_policy(b);
	for (i = 0; p && i < OAL_N_POLICY_FIELDS; i++) {
		const uint32_t value = oal_policy_get(p, (enum oal_policy_field)i);

		if (value < oal_policy_fields[i].min || value > oal_policy_fields[i].max)
			abort();
	}
	if ((p && (p->n_weights > OAL_POLICY_MAX_WEIGHTS || !p->version)) ||
	    (!p && bundle_mode(b) == OAL_POLICY_MODE_ENFORCE))
		abort();
	if ((!bundle_tree(b) && bundle_law(b)->needs_class) || bundle_n_models(b) > OAL_SETTING_MAX_BUNDLE_MODELS ||
	    strlen(bundle_head(b)->of_policy) > BUNDLE_MAX_POLICY || !bundle_head(b)->of_policy[0])
		abort();
	for (i = 0; i < BUNDLE_LAW_VALUES; i++)
		if (bundle_law(b)->values[i] < 0 || bundle_law(b)->values[i] > INT64_C(1) << 40)
			abort();
	for (k = 0; k < 4; k++) {
		const struct sum *w = bundle_window(b);
		const struct tree *t = bundle_tree(b);
		const unsigned leaf = t ? tree_apply(t, x) : 0;
		const struct tree_leaf l = t ? tree_leaf(t, leaf) : (struct tree_leaf){ 0 };

		if (t && (leaf >= t->n || l.class >= TREE_CLASSES || tree_congested_permille(l) > 1000))
			abort();
		if (w && (sum_predict(w, x) < w->lo || sum_predict(w, x) > w->hi))
			abort();
		for (i = 0; i < bundle_n_models(b); i++) {
			const struct model *m = bundle_model(b, i);
			struct model_answer answer;

			m->ops->eval(m, x, &answer);
			if (!m->role[0] || (m->ops == &model_tree && answer.value >= m->tree.n))
				abort();
		}
		for (i = 0; i < OAL_MAX_FEATURES; i++)
			x[i] = k ? (int64_t)(((uint64_t)i * 0x9e3779b97f4a7c15u) << k) : OAL_MISSING;
	}
	bundle_free(b);
	return 0;
}
