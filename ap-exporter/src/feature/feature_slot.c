#include "feature/feature_slot.h"

#include <errno.h>

int feature_slot_state(struct feature **out, const struct oal_feature_program *program,
                       const struct feature_space spaces[OAL_N_TABLES])
{
	/* The data path stops at decision instants of this distance, and at no others. */
	if (program->decision_interval_us != OAL_SETTING_DECISION_INTERVAL_US)
		return -EINVAL;
	return feature_new(out, program, spaces);
}

void feature_slot_free(struct feature_slot *s)
{
	feature_free(s->running);
	feature_free(s->next);
	feature_free(s->retired);
}

struct feature *feature_slot_offer(struct feature_slot *s, struct feature *next)
{
	struct feature *unused = s->next;

	s->next = next;
	s->stop = false;
	return unused;
}

struct feature *feature_slot_stop(struct feature_slot *s)
{
	struct feature *unused = feature_slot_offer(s, NULL);

	s->stop = true;
	return unused;
}

bool feature_slot_advance(struct feature_slot *s)
{
	if ((!s->next && !s->stop) || s->retired)
		return false;
	s->retired = s->running;
	s->running = s->next;
	s->next = NULL;
	s->stop = false;
	s->program_id = s->running ? feature_program_id(feature_program(s->running)) : 0;
	return true;
}

struct feature *feature_slot_retired(struct feature_slot *s)
{
	struct feature *retired = s->retired;

	s->retired = NULL;
	return retired;
}
