/* inference.h: what one AP predicts with: takes a verified bundle over at a tick, and evaluates its tree at each decision instant.
 *
 * Two threads. The agent's makes candidates (bundle, feature state) and frees them; the tick thread puts them in force. A candidate
 * belongs to one of the two at any time: inference_offer() hands it over, inference_reclaim() takes it back once nothing on the tick
 * path can read it any more. So the tick path takes no lock and allocates nothing.
 *
 * A bundle with another feature program is in force from the batch on with which the pipeline takes that program; until then
 * the earlier bundle goes on deciding. */
#ifndef OAL_INFERENCE_H
#define OAL_INFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/agent_flags.h"
#include "model/bundle.h"
#include "oal_features.h"
#include "oal_schema.h"
#include "pipeline/pipeline.h"

struct feature;
struct inference;
struct peers;

/* A feature program of one's own with the state to run it, until the pipeline has that. */
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
};

/* Of the tick thread. */
struct inference_stats {
	uint64_t decisions; /* made and reported */
	uint64_t undecided; /* instants without a bundle, or with one whose policy is off */
	uint32_t eval_max_ns; /* features and tree */
};

/* Negative errno: -EINVAL for a program that cannot run in this pipeline, -ENOMEM. Copies the program. Any thread. */
int candidate_features_new(struct candidate_features **, const struct pipeline *, const struct oal_feature_program *);
void candidate_free(struct candidate *);

/* `now_ns`: clock to time the tree with, or NULL. `wake` is called by the tick thread when there is news for inference_in_force(),
 * inference_reclaim() or peers_frequencies(). NULL: no memory. */
struct inference *inference_new(struct pipeline *, uint64_t (*now_ns)(void), void (*wake)(void *ctx), void *ctx);
/* Once neither thread uses it any more: after pipeline_flush(), before pipeline_free(). Frees all candidates that it holds. */
void inference_free(struct inference *);

/* The latest decision, for control. */
struct inference_last {
	uint64_t number; /* decisions so far; 0: none yet */
	uint64_t instant_us;
	uint64_t bundle; /* that made it */
	uint16_t congested_permille;
	uint8_t class;
	int64_t features[OAL_MAX_FEATURES]; /* kept only if the bundle has a window model */
};

/* --- tick thread: for the pipeline's callbacks `ticked` and `decide` */
void inference_tick(struct inference *);
void inference_decide(struct inference *, const struct decision_out *);
void inference_stats(const struct inference *, struct inference_stats *);
const struct inference_last *inference_last(const struct inference *);

/* --- agent's thread */
const struct pipeline *inference_pipeline(const struct inference *);
/* Takes `c`, and frees an offer that was not taken in the meantime. */
void inference_offer(struct inference *, struct candidate *c);
/* A row for the events batch, at the next tick. False: no room for it now. */
bool inference_status(struct inference *, const struct oal_bundle_status_row *);
/* Frees what is out of use. */
void inference_reclaim(struct inference *);
/* The kill switch, and what else the service says of this AP: written by the agent's thread. Any thread; lives as long as `f`. */
struct agent_flags *inference_flags(struct inference *);
/* The peers: the agent's thread's half of peers.h. */
struct peers *inference_peers(struct inference *);
/* The bundle in force; NULL before the first. Any thread; it is valid until the agent's thread next reclaims. */
const struct candidate *inference_in_force(const struct inference *);

/* 64-bit FNV-1a over the values, big-endian, without the highest bit. */
uint64_t inference_features_hash(const int64_t *features, unsigned n);

#endif
