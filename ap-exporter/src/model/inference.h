/* inference.h: what one AP predicts with: takes a verified bundle over at a tick, and evaluates its tree at each
 * decision instant. It says what it found; who asked writes the rows.
 *
 * Two threads. The agent's makes candidates (bundle, feature state) and frees them; the tick thread puts them in force.
 * A candidate belongs to one of the two at any time: inference_offer() hands it over, inference_reclaim() takes it back
 * once nothing on the tick path can read it any more. So the tick path takes no lock and allocates nothing.
 *
 * A bundle with another feature program is in force from the batch on with which the data path takes that program;
 * until then the earlier bundle goes on deciding. */
#ifndef OAL_INFERENCE_H
#define OAL_INFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/agent_flags.h"
#include "model/bundle.h"
#include "oal_features.h"
#include "oal_schema.h"

struct feature;
struct feature_slot;
struct feature_space;
struct feature_vector;
struct inference;

/* A feature program of one's own with the state to run it, until the data path has that. */
struct candidate_features {
	struct feature *state;
	struct oal_feature_program program;
	int64_t words[][OAL_N_WORDS];
};

/* A bundle that passed every check, with what it needs to run. */
struct candidate {
	struct bundle *bundle; /* its own */
	struct candidate_features *features; /* its own; NULL: the program is that of the candidate offered before it */
	struct oal_bundle_status_row status; /* reported when it comes into force: applied or restored */
	uint64_t feature_hash; /* of its program */
	unsigned withdrawals; /* of the inference when it was offered; set there */
};

/* What was found at one decision instant. */
struct verdict {
	uint64_t instant_us;
	uint64_t bundle; /* that found it */
	uint64_t features_hash;
	uint32_t version; /* of the model */
	uint32_t eval_ns; /* features and tree */
	uint16_t leaf, confidence_permille, congested_permille;
	uint8_t source, class, features_missing;
};

/* The latest verdict, for control. */
struct inference_last {
	uint64_t number; /* verdicts so far; 0: none yet */
	struct verdict verdict;
	int64_t features[OAL_MAX_FEATURES]; /* kept only if the bundle has a window model */
};

/* Of the tick thread. */
struct inference_stats {
	uint64_t decisions; /* instants with a verdict */
	uint64_t undecided; /* instants without a bundle, or with one whose policy is off */
	uint32_t eval_max_ns; /* features and tree */
};

struct inference_config {
	struct feature_slot
		*slot; /* whose program it evaluates, and replaces. Must outlive the inference's use by a tick */
	const struct feature_space *spaces; /* sizes of the data path's tables, OAL_N_TABLES of them; copied */
	uint64_t (*now_ns)(void); /* clock to time the tree with; NULL: it is not timed */
	void (*wake)(void *ctx); /* called by the tick thread on news for inference_in_force() or inference_reclaim() */
	void *ctx;
};

/* NULL: no memory. */
struct inference *inference_new(const struct inference_config *);
/* Once neither thread uses it any more. Frees all candidates that it holds. */
void inference_free(struct inference *);

/* --- tick thread */
/* Takes over what was offered, as far as its turn has come. */
void inference_advance(struct inference *);
/* Puts the next bundle in force if its program runs by now: the row to report, valid during this tick; else NULL. */
const struct oal_bundle_status_row *inference_enter(struct inference *);
/* The next row that the agent's thread has to report. False: none. */
bool inference_next_status(struct inference *, struct oal_bundle_status_row *);
/* False: there is no verdict, for want of a bundle for this program, because its policy is off, or because its law goes
 * without a class. */
bool inference_evaluate(struct inference *, const struct feature_vector *, struct verdict *);
void inference_stats(const struct inference *, struct inference_stats *);
const struct inference_last *inference_last(const struct inference *);

/* --- agent's thread */
/* Negative errno: -EINVAL for a program that cannot run in this data path, -ENOMEM. Copies the program. Any thread. */
int candidate_features_new(struct candidate_features **, const struct inference *, const struct oal_feature_program *);
void candidate_free(struct candidate *);
/* Takes `c`, and frees an offer that was not taken in the meantime. */
void inference_offer(struct inference *, struct candidate *c);
/* The policy is given up: from the next tick on nothing is in force. What is offered afterwards enters one tick later
 * at the soonest. */
void inference_withdraw(struct inference *);
/* Has the tick thread done so? */
bool inference_withdrawn(const struct inference *);
/* A row to report at the next tick. False: no room for it now. */
bool inference_status(struct inference *, const struct oal_bundle_status_row *);
/* Frees what is out of use. */
void inference_reclaim(struct inference *);
/* The program that ran when the inference was made: before the first tick. */
uint64_t inference_first_program(const struct inference *);
/* The kill switch, and what else the service says of this AP: written by the agent's thread. Any thread; lives as long
 * as the inference. */
struct agent_flags *inference_flags(struct inference *);
/* The bundle in force; NULL before the first. Any thread; it is valid until the agent's thread next reclaims. */
const struct candidate *inference_in_force(const struct inference *);

/* 64-bit FNV-1a over the values, big-endian, without the highest bit. */
uint64_t inference_features_hash(const int64_t *features, unsigned n);

#endif
