/* place.h: one policy of an access point: its bundle in force, its law, its mode, and what it did. An AP has
 * CONTROL_PLACES of them, side by side; the policy rwnd-fair has the first. */
#ifndef OAL_PLACE_H
#define OAL_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "control/observation.h"
#include "effect/effects.h"
#include "oal_policy.h"

struct candidate;
struct inference;
struct pipeline;

enum { CONTROL_PLACES = EFFECTS_POLICIES };

/* What the places of an AP share. */
struct place_shared {
	struct pipeline *pipeline;
	struct observation seen; /* at the last step of any place */
	/* By kind of action: what carries it out, and the most that the AP lets it do. */
	struct effects effects[OAL_N_ACTION_KINDS];
	enum oal_policy_mode ceilings[OAL_N_ACTION_KINDS];
	bool killed; /* nothing may be done */
	const struct agent_flags *flags; /* which policies may not do anything, though others may */
	uint64_t (*monotonic_ns)(void);
};

struct place {
	unsigned number;
	struct inference *inference; /* whose bundle and verdicts are followed; NULL: the place is empty */
	struct control *control;
	const struct law_ops *law;
	enum oal_policy_mode mode; /* in force: the least of policy, ceiling and kill switch */
	uint64_t bundle, decided; /* in use: id of the bundle, number of the last verdict */
	uint64_t stepped_us;
	struct oal_policy policy;
	uint16_t name; /* of the policy, for rows */
	uint64_t sets, set_errors, releases;
	uint32_t step_max_ns;
};

/* `p` is all zero. Negative errno: -ENOMEM, -EINVAL for a pipeline beyond what control takes. */
int place_new(struct place *p, unsigned number, struct inference *, const struct place_shared *);
void place_free(struct place *);
/* What the policy's law acts by. */
enum oal_action_kind place_kind(const struct place *);
/* What is in force: takes over mode and bundle, and gives up what may not go on. `alone`: no other place enforces by
 * the same kind of action. */
void place_update(struct place *, struct place_shared *, const struct candidate *, bool alone);
/* A tick ends: the law's step, if it is due. */
void place_tick(struct place *, struct place_shared *, uint64_t t_us, const struct candidate *);
/* Gives every effect up. */
void place_release_all(struct place *, struct place_shared *, enum oal_rewrite_reason);

#endif
