#include "model/inference.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "feature/feature.h"
#include "feature/feature_slot.h"
#include "feature/feature_vector.h"

enum {
	STATUS_ROOM = 16, /* rows on their way to the tick thread; a power of two */
	RETIRED_ROOM = 16, /* things on their way back; a power of two */
	/* In one tick: a candidate, state and program superseded before their turn; the same in force until now; an
	 * offer from before a withdrawal. */
	MOST_RETIRED = 7,
};

/* One thing out of use. */
struct retired {
	struct candidate *candidate;
	struct candidate_features *features;
	struct feature *state;
};

struct inference {
	struct inference_config c; /* c.spaces: the copy below */
	struct feature_space spaces[OAL_N_TABLES];
	uint64_t first_program;

	/* Tick thread's. */
	struct inference_stats stats;
	struct inference_last last;
	struct candidate *next; /* taken, waits for its feature program */
	struct candidate_features *features_next, *features_running; /* programs that the slot will run, and runs */
	bool pausing; /* a policy was withdrawn in this tick: nothing enters in it, so that control sees the end */

	/* Between the threads. A ring's `in` has one writer, its `out` another. */
	_Atomic(struct candidate *) offer, in_force;
	struct oal_bundle_status_row status[STATUS_ROOM];
	atomic_uint withdrawals, withdrawn; /* wanted by the agent's thread; done by the tick thread */
	atomic_uint status_in, status_out;
	struct retired retired[RETIRED_ROOM];
	atomic_uint retired_in, retired_out;
	struct agent_flags flags;
};

int candidate_features_new(struct candidate_features **out, const struct inference *inference,
                           const struct oal_feature_program *program)
{
	struct candidate_features *f = calloc(1, sizeof *f + program->n * sizeof f->words[0]);
	int r;

	if (!f)
		return -ENOMEM;
	memcpy(f->words, program->words, program->n * sizeof f->words[0]);
	f->program = *program;
	f->program.words = (const int64_t(*)[OAL_N_WORDS])f->words;
	f->program.name = NULL;
	f->program.names = NULL;
	r = feature_slot_state(&f->state, &f->program, inference->spaces);
	if (r)
		free(f);
	else
		*out = f;
	return r;
}

static void features_free(struct candidate_features *f)
{
	if (f)
		feature_free(f->state);
	free(f);
}

void candidate_free(struct candidate *c)
{
	if (!c)
		return;
	features_free(c->features);
	bundle_free(c->bundle);
	free(c);
}

struct inference *inference_new(const struct inference_config *c)
{
	struct inference *f = calloc(1, sizeof *f);

	if (!f)
		return NULL;
	f->c = *c;
	memcpy(f->spaces, c->spaces, sizeof f->spaces);
	f->c.spaces = f->spaces;
	f->first_program = c->slot->program_id;
	return f;
}

void inference_free(struct inference *f)
{
	if (!f)
		return;
	inference_reclaim(f);
	candidate_free(atomic_load(&f->offer));
	candidate_free(atomic_load(&f->in_force));
	candidate_free(f->next);
	free(f->features_next); /* their states are the slot's */
	free(f->features_running);
	free(f);
}

/* --- tick thread */

static void retire(struct inference *f, const struct retired thing)
{
	const unsigned in = atomic_load_explicit(&f->retired_in, memory_order_relaxed);

	if (!thing.candidate && !thing.features && !thing.state)
		return;
	f->retired[in % RETIRED_ROOM] = thing;
	atomic_store_explicit(&f->retired_in, in + 1, memory_order_release);
}

/* Has the agent's thread left room for `n` things? */
static bool can_retire(const struct inference *f, unsigned n)
{
	const unsigned in = atomic_load_explicit(&f->retired_in, memory_order_relaxed);

	return in - atomic_load_explicit(&f->retired_out, memory_order_acquire) <= RETIRED_ROOM - n;
}

/* A newer candidate takes the place of one that still waits for its program. */
static void queue_candidate(struct inference *f, struct candidate *c)
{
	retire(f, (struct retired){.candidate = f->next});
	f->next = c;
	if (!c->features)
		return;
	retire(f, (struct retired){.state = feature_slot_offer(f->c.slot, c->features->state)});
	c->features->state = NULL;
	retire(f, (struct retired){.features = f->features_next});
	f->features_next = c->features;
	c->features = NULL;
}

/* The slot runs the program that it was given, or none: nothing runs on the one before any more. */
static void follow_program(struct inference *f)
{
	struct feature *old = feature_slot_retired(f->c.slot);
	const bool begun = f->features_next && !f->c.slot->next;

	retire(f, (struct retired){.state = old});
	if (!old && !begun)
		return;
	retire(f, (struct retired){.features = f->features_running});
	f->features_running = begun ? f->features_next : NULL;
	if (begun)
		f->features_next = NULL;
}

const struct oal_bundle_status_row *inference_enter(struct inference *f)
{
	struct candidate *c = f->next;

	if (!c || f->pausing || c->feature_hash != f->c.slot->program_id || !can_retire(f, 1))
		return NULL;
	f->next = NULL;
	retire(f, (struct retired){.candidate = atomic_exchange_explicit(&f->in_force, c, memory_order_acq_rel)});
	f->c.wake(f->c.ctx);
	return &c->status;
}

bool inference_next_status(struct inference *f, struct oal_bundle_status_row *row)
{
	const unsigned out = atomic_load_explicit(&f->status_out, memory_order_relaxed);

	if (out == atomic_load_explicit(&f->status_in, memory_order_acquire))
		return false;
	*row = f->status[out % STATUS_ROOM];
	atomic_store_explicit(&f->status_out, out + 1, memory_order_release);
	return true;
}

/* Nothing is in force any more; what was offered before goes with it. */
static void withdraw(struct inference *f)
{
	retire(f, (struct retired){.candidate = f->next});
	f->next = NULL;
	retire(f, (struct retired){.candidate = atomic_exchange_explicit(&f->in_force, NULL, memory_order_acq_rel)});
	retire(f, (struct retired){.state = feature_slot_stop(f->c.slot)});
	retire(f, (struct retired){.features = f->features_next});
	f->features_next = NULL;
	f->pausing = true;
}

void inference_advance(struct inference *f)
{
	struct candidate *c = NULL;
	unsigned wanted;

	f->pausing = false;
	if (!can_retire(f, MOST_RETIRED))
		return; /* the agent's thread is behind */
	follow_program(f);
	if (atomic_load_explicit(&f->offer, memory_order_relaxed))
		c = atomic_exchange_explicit(&f->offer, NULL, memory_order_acq_rel);
	/* Read after the offer, so that an offer made after a withdrawal is never seen without it. */
	wanted = atomic_load_explicit(&f->withdrawals, memory_order_acquire);
	if (wanted != atomic_load_explicit(&f->withdrawn, memory_order_relaxed)) {
		withdraw(f);
		atomic_store_explicit(&f->withdrawn, wanted, memory_order_release);
		f->c.wake(f->c.ctx);
	}
	if (c && c->withdrawals == wanted)
		queue_candidate(f, c);
	else
		retire(f, (struct retired){.candidate = c});
}

/* A byte of 0 only multiplies by the prime, and most bytes of a vector are 0: runs of them take one multiplication. */
uint64_t inference_features_hash(const int64_t *features, unsigned n)
{
	static const uint64_t power[9] = { /* of the prime */
		UINT64_C(0x0000000000000001), UINT64_C(0x00000100000001b3), UINT64_C(0x000366000002e329),
		UINT64_C(0x08a97b0004e7feab), UINT64_C(0x9ffaac085635bc91), UINT64_C(0x0caee32a7d4f6a63),
		UINT64_C(0xdc966432edf1c639), UINT64_C(0xc5527b8a51d3d2db), UINT64_C(0x1efac7090aef4a21)};
	uint64_t h = UINT64_C(14695981039346656037);
	unsigned i;

	for (i = 0; i < n; i++) {
		const uint64_t v = (uint64_t)features[i];
		int shift;

		if (!v) {
			h *= power[8];
		} else if (features[i] == OAL_MISSING) {
			h = (h ^ 0x80) * power[8];
		} else {
			shift = 63 - __builtin_clzll(v);
			shift -= shift % 8;
			for (h *= power[7 - shift / 8]; shift >= 0; shift -= 8)
				h = (h ^ (v >> shift & 255)) * power[1];
		}
	}
	return h & INT64_MAX;
}

static unsigned count_missing(const int64_t *features, unsigned n)
{
	unsigned missing = 0, i;

	for (i = 0; i < n; i++)
		missing += features[i] == OAL_MISSING;
	return missing;
}

bool inference_evaluate(struct inference *f, const struct feature_vector *x, struct verdict *out)
{
	const struct candidate *c = atomic_load_explicit(&f->in_force, memory_order_relaxed);
	const struct tree *tree = c ? bundle_tree(c->bundle) : NULL;
	struct tree_leaf leaf;
	uint64_t start_ns;

	if (c && !tree)
		return false;
	if (!c || c->feature_hash != x->program_id || bundle_mode(c->bundle) == OAL_POLICY_MODE_OFF) {
		f->stats.undecided++;
		return false;
	}
	start_ns = f->c.now_ns ? f->c.now_ns() : 0;
	out->leaf = (uint16_t)tree_apply(tree, x->values);
	out->eval_ns = x->took_ns + (f->c.now_ns ? (uint32_t)(f->c.now_ns() - start_ns) : 0);
	leaf = tree_leaf(tree, out->leaf);
	out->instant_us = x->instant_us;
	out->bundle = c->status.bundle;
	out->source = c->status.source;
	out->version = c->status.version;
	out->class = leaf.class;
	out->confidence_permille = leaf.permille[leaf.class];
	out->congested_permille = (uint16_t)tree_congested_permille(leaf);
	out->features_hash = inference_features_hash(x->values, x->n);
	out->features_missing = (uint8_t)count_missing(x->values, x->n);
	f->stats.decisions++;
	if (out->eval_ns > f->stats.eval_max_ns)
		f->stats.eval_max_ns = out->eval_ns;
	f->last.number++;
	f->last.verdict = *out;
	if (bundle_window(c->bundle))
		memcpy(f->last.features, x->values, x->n * sizeof *x->values);
	return true;
}

void inference_stats(const struct inference *f, struct inference_stats *out)
{
	*out = f->stats;
}

const struct inference_last *inference_last(const struct inference *f)
{
	return &f->last;
}

/* --- agent's thread */

uint64_t inference_first_program(const struct inference *f)
{
	return f->first_program;
}

struct agent_flags *inference_flags(struct inference *f)
{
	return &f->flags;
}

void inference_offer(struct inference *f, struct candidate *c)
{
	struct candidate *missed = atomic_exchange_explicit(&f->offer, NULL, memory_order_acq_rel);

	/* The new one may count on the program that came with one which the tick thread never saw. */
	if (missed && !c->features && missed->feature_hash == c->feature_hash) {
		c->features = missed->features;
		missed->features = NULL;
	}
	candidate_free(missed);
	c->withdrawals = atomic_load_explicit(&f->withdrawals, memory_order_relaxed);
	atomic_store_explicit(&f->offer, c, memory_order_release);
}

void inference_withdraw(struct inference *f)
{
	candidate_free(atomic_exchange_explicit(&f->offer, NULL, memory_order_acq_rel));
	atomic_fetch_add_explicit(&f->withdrawals, 1, memory_order_release);
}

bool inference_withdrawn(const struct inference *f)
{
	return atomic_load_explicit(&f->withdrawn, memory_order_acquire) ==
	       atomic_load_explicit(&f->withdrawals, memory_order_relaxed);
}

bool inference_status(struct inference *f, const struct oal_bundle_status_row *row)
{
	const unsigned in = atomic_load_explicit(&f->status_in, memory_order_relaxed);

	if (in - atomic_load_explicit(&f->status_out, memory_order_acquire) == STATUS_ROOM)
		return false;
	f->status[in % STATUS_ROOM] = *row;
	atomic_store_explicit(&f->status_in, in + 1, memory_order_release);
	return true;
}

void inference_reclaim(struct inference *f)
{
	const unsigned in = atomic_load_explicit(&f->retired_in, memory_order_acquire);
	unsigned out = atomic_load_explicit(&f->retired_out, memory_order_relaxed);

	for (; out != in; out++) {
		const struct retired *r = &f->retired[out % RETIRED_ROOM];

		candidate_free(r->candidate);
		features_free(r->features);
		feature_free(r->state);
	}
	atomic_store_explicit(&f->retired_out, out, memory_order_release);
}

const struct candidate *inference_in_force(const struct inference *f)
{
	return atomic_load_explicit(&f->in_force, memory_order_acquire);
}
