#include "control/decision.h"

#include "feature/feature_vector.h"
#include "model/inference.h"
#include "pipeline/pipeline.h"

/* A bundle comes into force, and says so. */
static void enter(struct pipeline *p, struct inference *f)
{
	const struct oal_bundle_status_row *row = inference_enter(f);

	if (row)
		pipeline_row(p, OAL_BUNDLE_STATUS, row);
}

void decision_begin_tick(struct pipeline *p, struct inference *f)
{
	struct oal_bundle_status_row row;

	while (inference_next_status(f, &row))
		pipeline_row(p, OAL_BUNDLE_STATUS, &row);
	inference_advance(f);
	enter(p, f);
}

void decision_make(struct pipeline *p, struct inference *f, const struct feature_vector *x)
{
	struct oal_decision_row row;
	struct verdict v;

	enter(p, f); /* the program may have changed with this very batch */
	if (!inference_evaluate(f, x, &v))
		return;
	row = (struct oal_decision_row){
		.bundle = v.bundle,
		.source = v.source,
		.version = v.version,
		.instant_us = v.instant_us,
		.class = v.class,
		.confidence_permille = v.confidence_permille,
		.congested_permille = v.congested_permille,
		.leaf = v.leaf,
		.features_hash = v.features_hash,
		.features_missing = v.features_missing,
		.eval_ns = v.eval_ns,
	};
	pipeline_row(p, OAL_DECISION, &row);
}
