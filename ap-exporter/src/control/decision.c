#include "control/decision.h"

#include "base/clock.h"
#include "feature/feature_slot.h"
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

static void write_row(struct pipeline *p, const struct verdict *v)
{
	const struct oal_decision_row row = {
		.bundle = v->bundle,
		.source = v->source,
		.version = v->version,
		.instant_us = v->instant_us,
		.class = v->class,
		.confidence_permille = v->confidence_permille,
		.congested_permille = v->congested_permille,
		.leaf = v->leaf,
		.features_hash = v->features_hash,
		.features_missing = v->features_missing,
		.eval_ns = v->eval_ns,
	};

	pipeline_row(p, OAL_DECISION, &row);
}

/* Is its bundle about rows, and says nothing of an instant? */
static bool is_about_rows(const struct inference *f)
{
	const struct candidate *c = inference_in_force(f);

	return c && bundle_law_of_rows(bundle_law(c->bundle));
}

void decision_make(struct pipeline *p, struct inference *f, const struct feature_vector *x)
{
	struct verdict v;

	enter(p, f); /* the program may have changed with this very batch */
	if (!is_about_rows(f) && inference_evaluate(f, x, &v))
		write_row(p, &v);
}

bool decision_of_row(struct pipeline *p, unsigned slot, struct inference *f, enum oal_table_id t, const void *row,
		     uint64_t t_us, struct verdict *v)
{
	const struct feature_slot *s = pipeline_slot(p, slot);
	struct feature_vector x = { .program_id = s->program_id };
	const uint64_t began_ns = clock_monotonic_ns();

	if (!s->running || !feature_reads(s->running, t) || !is_about_rows(f))
		return false;
	feature_restart(s->running, t_us);
	x.instant_us = feature_next_us(s->running);
	x.n = feature_program(s->running)->n;
	feature_row(s->running, t, 0, row, x.instant_us);
	x.values = feature_evaluate(s->running);
	x.took_ns = (uint32_t)(clock_monotonic_ns() - began_ns);
	if (!inference_evaluate(f, &x, v))
		return false;
	write_row(p, v);
	return true;
}
