/* test_inference.c: bundles put in force while a pipeline runs, and what their trees say. Both threads' halves are
 * called from one. */
#include "model/inference.h"

#include "wire/batch_decode.h"
#include "bundle_golden.h"
#include "control/decision.h"
#include "feature/feature_slot.h"
#include "feature/feature_vector.h"
#include "pipeline/pipeline.h"

enum { TICK_US = 4000, BATCH_TICKS = 63, MAX_SEEN = 400 };
static const uint64_t START_US = UINT64_C(1800000000000000);

/* --- a pipeline that remembers its events */

struct seen {
	uint64_t bundle, feature_hash; /* feature_hash: of the batch's header */
	struct oal_decision_row decision;
	struct oal_bundle_status_row status;
};

static struct world {
	struct pipeline *pipeline;
	struct inference *inference;
	unsigned slot; /* that it has in the pipeline */
	struct golden_bundles golden;
	uint64_t due_us;
	unsigned wakes, n_decisions, n_states;
	struct seen decisions[MAX_SEEN], states[MAX_SEEN];
	struct {
		uint64_t t_us, hash;
		unsigned missing, n;
		int64_t x[OAL_MAX_FEATURES];
	} instants[MAX_SEEN]; /* every instant that was evaluated */
	unsigned n_instants;
} w;

static void on_batch(void *ctx, const struct batch_out *b)
{
	struct batch_cursor c;
	struct batch_view v;

	if (b->topic != OAL_TOPIC_EVENTS)
		return;
	CHECK_EQ(batch_decode(&v, b->topic, b->bytes, b->len, "ap-1", b->t0_us), BATCH_OK);
	for (batch_rows(&c, &v, OAL_DECISION);
	     w.n_decisions < MAX_SEEN && batch_next_row(&c, &w.decisions[w.n_decisions].decision); w.n_decisions++)
		w.decisions[w.n_decisions].feature_hash = v.feature_hash;
	for (batch_rows(&c, &v, OAL_BUNDLE_STATUS);
	     w.n_states < MAX_SEEN && batch_next_row(&c, &w.states[w.n_states].status); w.n_states++)
		w.states[w.n_states].feature_hash = v.feature_hash;
}

static void on_tick(void *ctx)
{
	decision_begin_tick(w.pipeline, w.inference);
}

static void on_features(void *ctx, unsigned slot, const struct feature_vector *x)
{
	unsigned i;

	if (slot != w.slot)
		return;
	w.instants[w.n_instants].t_us = x->instant_us;
	w.instants[w.n_instants].hash = x->program_id;
	w.instants[w.n_instants].n = x->n;
	w.instants[w.n_instants].missing = 0;
	for (i = 0; i < x->n; i++)
		w.instants[w.n_instants].missing += x->values[i] == OAL_MISSING;
	memcpy(w.instants[w.n_instants++ % MAX_SEEN].x, x->values, x->n * sizeof(int64_t));
	decision_make(w.pipeline, w.inference, x);
}

static void on_wake(void *ctx)
{
	w.wakes++;
}

static uint64_t now_ns(void)
{
	static uint64_t ns;

	return ns += 70;
}

/* The program of the golden bundles: the first features of today's. */
static const struct oal_feature_program *golden_program(void)
{
	static struct bundle *b;
	const struct golden_case *c = golden_find(&w.golden, "ok_255_nodes");
	const struct bundle_terms terms = {.ap_id = "ap-1", .site = "lab"};
	char err[256] = "";

	if (!b)
		CHECK_EQ(bundle_open(&b, c->bytes, c->len, &terms, NULL, err, sizeof err), OAL_BUNDLE_REASON_NONE);
	return bundle_program(b);
}

static void begin_at(unsigned slot)
{
	const struct pipeline_config c = {
		.ap_id = "ap-1", .site = "lab", .boot_id = 1, .program = golden_program(), .now_ns = now_ns,
		.emit = on_batch, .consumer = {.begin_tick = on_tick, .features = on_features},
	};
	struct feature_space spaces[OAL_N_TABLES];

	w.n_decisions = w.n_states = w.n_instants = w.wakes = 0;
	w.due_us = START_US + 40000;
	w.slot = slot;
	CHECK_EQ(pipeline_new(&w.pipeline, &c), 0);
	pipeline_feature_spaces(w.pipeline, spaces);
	w.inference = inference_new(
		&(struct inference_config){pipeline_slot(w.pipeline, slot), spaces, now_ns, on_wake, NULL});
	CHECK(w.inference != NULL);
}

static void begin(void)
{
	begin_at(0);
}

static void end(void)
{
	pipeline_flush(w.pipeline);
	inference_free(w.inference);
	pipeline_free(w.pipeline);
}

static void ticks(unsigned n)
{
	static uint64_t state = 99;

	for (; n; n--, w.due_us += TICK_US) {
		struct oal_station_row row = {
			.mac = 2, .device = pipeline_name(w.pipeline, "wlan0"), .interval_ticks = 1,
		};

		pipeline_tick(w.pipeline, w.due_us, 0, 0);
		row.tx_bytes = (w.due_us - START_US) * 3 + check_random(&state) % 4096;
		row.tx_retries = (uint32_t)(check_random(&state) % 1000);
		row.signal_dbm = (int8_t)(-40 - (int)(check_random(&state) % 30));
		pipeline_row(w.pipeline, OAL_STATION, &row);
	}
}

/* --- candidates */

static struct oal_feature_program other_program;

static struct candidate *candidate(const char *name, const struct oal_feature_program *program)
{
	const struct golden_case *c = golden_find(&w.golden, name);
	struct candidate *out = calloc(1, sizeof *out);
	const struct bundle_terms terms = {.ap_id = "ap-1", .site = "lab"};
	char err[256] = "";

	CHECK_EQ(bundle_open(&out->bundle, c->bytes, c->len, &terms, NULL, err, sizeof err), OAL_BUNDLE_REASON_NONE);
	out->feature_hash = feature_program_id(program ? program : bundle_program(out->bundle));
	if (program)
		CHECK_EQ(candidate_features_new(&out->features, w.inference, program), 0);
	out->status = (struct oal_bundle_status_row){
		.bundle = bundle_head(out->bundle)->id, .source = 2, .version = 5, .state = OAL_BUNDLE_STATE_APPLIED,
	};
	return out;
}

static uint64_t id_of(const char *name)
{
	unsigned long long id;

	sscanf(golden_find(&w.golden, name)->hash, "%16llx", &id);
	return id & INT64_MAX;
}

/* Is every decision what the bundle's tree says of that instant's features, and none left out from the first on? */
static void check_decisions(const char *name, unsigned from, unsigned to)
{
	struct candidate *c = candidate(name, NULL);
	unsigned i, k;

	for (i = from; i < to; i++) {
		const struct oal_decision_row *d = &w.decisions[i].decision;
		struct tree_leaf leaf;

		for (k = 0; k < w.n_instants && w.instants[k].t_us != d->instant_us; k++)
			;
		CHECK(k < w.n_instants);
		if (k == w.n_instants)
			break;
		CHECK_EQ(d->bundle, id_of(name));
		CHECK_EQ(d->leaf, tree_apply(bundle_tree(c->bundle), w.instants[k].x));
		leaf = tree_leaf(bundle_tree(c->bundle), d->leaf);
		CHECK_EQ(d->class, leaf.class);
		CHECK_EQ(d->confidence_permille, leaf.permille[leaf.class]);
		CHECK_EQ(d->congested_permille, leaf.permille[2] + leaf.permille[3]);
		CHECK_EQ(d->features_hash, inference_features_hash(w.instants[k].x, w.instants[k].n));
		CHECK_EQ(d->features_missing, w.instants[k].missing);
		/* Two evaluations, each 70 by this clock. */
		CHECK(d->source == 2 && d->version == 5 && d->eval_ns == 140);
		if (i > from)
			CHECK_EQ(d->instant_us,
			         w.decisions[i - 1].decision.instant_us + OAL_SETTING_DECISION_INTERVAL_US);
	}
	candidate_free(c);
}

/* By the definition, byte after byte. */
static uint64_t plain_hash(const int64_t *x, unsigned n)
{
	uint64_t h = UINT64_C(14695981039346656037);
	unsigned i;
	int shift;

	for (i = 0; i < n; i++)
		for (shift = 56; shift >= 0; shift -= 8)
			h = (h ^ ((uint64_t)x[i] >> shift & 255)) * UINT64_C(1099511628211);
	return h & INT64_MAX;
}

static void test_decisions(void)
{
	struct inference_stats s;
	uint64_t state = 5;
	int64_t x[7];
	unsigned first, i, k;

	test("the hash of a feature vector is FNV-1a, the same on every machine");
	CHECK_EQ(inference_features_hash(NULL, 0), INT64_C(5472609002491880229));
	CHECK_EQ(inference_features_hash((const int64_t[]){1, -2, OAL_MISSING}, 3), INT64_C(6666178832529222301));

	for (i = 0; i < 20000; i++) {
		for (k = 0; k < 7; k++) {
			x[k] = (int64_t)(check_random(&state) >> check_random(&state) % 64
			                                                 << check_random(&state) % 64);
			if (!(check_random(&state) % 4))
				x[k] = check_random(&state) % 2 ? OAL_MISSING : ~x[k];
		}
		CHECK_EQ(inference_features_hash(x, 7), plain_hash(x, 7));
	}

	test("without a bundle nothing is decided; with one, every instant, by its tree");
	begin();
	ticks(100);
	CHECK(inference_in_force(w.inference) == NULL);
	inference_stats(w.inference, &s);
	CHECK(s.decisions == 0 && s.undecided >= 3);
	inference_offer(w.inference, candidate("ok_255_nodes", NULL));
	CHECK_EQ(w.wakes, 0);
	ticks(1);
	CHECK_EQ(w.wakes, 1);
	CHECK_EQ(inference_in_force(w.inference)->status.bundle, id_of("ok_255_nodes"));
	ticks(500);
	inference_stats(w.inference, &s);
	CHECK(s.decisions >= 19 && s.eval_max_ns == 140);
	first = w.n_decisions;
	CHECK(first >= 15);

	test("a newer one takes over at a tick, no instant is left out, and the one before is freed by its maker");
	inference_offer(w.inference, candidate("ok_window", NULL));
	ticks(300);
	inference_reclaim(w.inference);
	inference_offer(w.inference, candidate("ok_policy_off", NULL));
	ticks(300);
	end();
	{
		unsigned changes = 0;

		i = 0;
		while (i < w.n_decisions && w.decisions[i].decision.bundle == id_of("ok_255_nodes"))
			i++;
		check_decisions("ok_255_nodes", 0, i);
		check_decisions("ok_window", i, w.n_decisions);
		CHECK(i >= first && w.n_decisions - i >= 11);
		CHECK_EQ(w.decisions[i].decision.instant_us,
		         w.decisions[i - 1].decision.instant_us + OAL_SETTING_DECISION_INTERVAL_US);
		for (i = 0; i < w.n_states; i++)
			changes += w.states[i].status.state == OAL_BUNDLE_STATE_APPLIED;
		CHECK(w.n_states == 3 && changes == 3);
		CHECK_EQ(w.states[2].status.bundle, id_of("ok_policy_off")); /* in force, and silent */
	}
}

static void test_offers(void)
{
	const char *const names[] = {"ok_tree", "ok_window", "ok_255_nodes"};
	unsigned i;

	test("offers that follow each other faster than ticks: the last one counts");
	begin();
	ticks(5);
	for (i = 0; i < 20; i++)
		inference_offer(w.inference, candidate(names[i % 3], NULL));
	ticks(1);
	CHECK_EQ(inference_in_force(w.inference)->status.bundle, id_of("ok_window"));
	CHECK_EQ(w.wakes, 1);

	test("an agent that does not come to free anything stops new bundles, not decisions; when it comes they go on");
	for (i = 0; i < 100; i++) {
		inference_offer(w.inference, candidate(names[i % 3], NULL));
		ticks(1);
	}
	CHECK(w.wakes > 8 && w.wakes < 20);
	inference_reclaim(w.inference);
	ticks(1);
	CHECK_EQ(inference_in_force(w.inference)->status.bundle, id_of("ok_tree"));
	ticks(100);

	test("rows of the agent go out with the next tick, as many as there is room for");
	for (i = 0; i < 40; i++)
		CHECK_EQ(inference_status(w.inference,
		                          &(struct oal_bundle_status_row){.bundle = i / 4 + 1,
		                                                          .state = OAL_BUNDLE_STATE_REJECTED,
		                                                          .reason = 3}),
		         i < 16);
	ticks(200);
	CHECK(inference_status(w.inference, &(struct oal_bundle_status_row){
		.bundle = 77, .state = OAL_BUNDLE_STATE_WAITING,
	}));
	ticks(1);
	end();
	{
		unsigned rejected = 0, waiting = 0;

		for (i = 0; i < w.n_states; i++) {
			rejected += w.states[i].status.state == OAL_BUNDLE_STATE_REJECTED &&
			            w.states[i].status.reason == 3;
			waiting += w.states[i].status.bundle == 77;
		}
		CHECK_EQ(rejected, 16);
		CHECK_EQ(waiting, 1);
	}
}

static void test_programs(void)
{
	static int64_t words[OAL_MAX_FEATURES][OAL_N_WORDS];
	unsigned i, old = 0;

	memcpy(words, golden_program()->words, golden_program()->n * sizeof words[0]);
	other_program = *golden_program();
	other_program.words = (const int64_t(*)[OAL_N_WORDS])words;
	other_program.hash[0] ^= 1;

	test("another feature program is taken where a batch begins, with its bundle; the batch's header says so");
	begin();
	inference_offer(w.inference, candidate("ok_tree", NULL));
	ticks(100);
	inference_offer(w.inference, candidate("ok_255_nodes", &other_program));
	memset(words, 0, sizeof words); /* the candidate has a copy */
	ticks(5);
	CHECK_EQ(inference_in_force(w.inference)->status.bundle, id_of("ok_tree"));
	ticks(100);
	CHECK_EQ(inference_in_force(w.inference)->status.bundle, id_of("ok_255_nodes"));
	CHECK_EQ(pipeline_slot(w.pipeline, 0)->program_id, feature_program_id(&other_program));
	ticks(200);
	end();
	while (old < w.n_decisions && w.decisions[old].decision.bundle == id_of("ok_tree"))
		old++;
	CHECK(old >= 4 && w.n_decisions - old >= 8);
	check_decisions("ok_tree", 0, old);
	check_decisions("ok_255_nodes", old, w.n_decisions);
	CHECK_EQ(w.decisions[old].decision.instant_us,
	         w.decisions[old - 1].decision.instant_us + OAL_SETTING_DECISION_INTERVAL_US);
	for (i = 0; i < w.n_instants; i++)
		CHECK_EQ(w.instants[i].hash,
		         feature_program_id(w.instants[i].t_us < w.decisions[old].decision.instant_us
						    ? golden_program()
						    : &other_program));

	test("programs that follow each other before a batch ends: the last bundle is in force with its own, and "
	     "nothing is lost");
	memcpy(words, golden_program()->words, golden_program()->n * sizeof words[0]);
	begin();
	ticks(10);
	for (i = 0; i < 6; i++) {
		struct candidate *follower = candidate("ok_window", NULL);

		inference_offer(w.inference, candidate("ok_255_nodes", &other_program));
		if (i % 2)
			ticks(1);
		/* Of the same program, so it comes without: whether the tick thread took the one before or not. */
		follower->feature_hash = feature_program_id(&other_program);
		inference_offer(w.inference, follower);
		if (i % 3)
			ticks(1);
		inference_reclaim(w.inference);
	}
	ticks(2 * BATCH_TICKS);
	CHECK_EQ(inference_in_force(w.inference)->status.bundle, id_of("ok_window"));
	inference_offer(w.inference, candidate("ok_tree", golden_program())); /* and back */
	ticks(2 * BATCH_TICKS);
	CHECK_EQ(inference_in_force(w.inference)->status.bundle, id_of("ok_tree"));
	CHECK_EQ(pipeline_slot(w.pipeline, 0)->program_id, feature_program_id(golden_program()));
	inference_offer(w.inference, candidate("ok_255_nodes", &other_program)); /* left as it is at the end */
	ticks(2);
	end();

	test("a program that this pipeline cannot run is refused when its state is made");
	begin();
	{
		struct candidate_features *f = NULL;

		other_program.decision_interval_us = 50000;
		CHECK_EQ(candidate_features_new(&f, w.inference, &other_program), -22);
		CHECK(f == NULL);
	}
	end();
}

static uint64_t id_in_force(void)
{
	const struct candidate *c = inference_in_force(w.inference);

	return c ? c->status.bundle : 0;
}

/* In a place where nothing runs at first, as that of every policy but the first. */
static void test_withdrawals(void)
{
	unsigned before, i;

	test("a policy that is withdrawn decides nothing from the next tick on; its program ends where a batch begins");
	begin_at(1);
	inference_offer(w.inference, candidate("ok_tree", golden_program()));
	ticks(4 * BATCH_TICKS);
	CHECK_EQ(id_in_force(), id_of("ok_tree"));
	CHECK(w.n_decisions > 0);
	inference_withdraw(w.inference);
	CHECK(!inference_withdrawn(w.inference));
	ticks(1);
	CHECK(inference_withdrawn(w.inference));
	CHECK_EQ(id_in_force(), 0);
	inference_reclaim(w.inference);
	before = w.n_decisions;
	ticks(2 * BATCH_TICKS);
	CHECK(w.n_decisions <= before + 10); /* those that were made before, and come with their batch */
	CHECK_EQ(pipeline_slot(w.pipeline, 1)->program_id, 0);
	inference_reclaim(w.inference);

	test("what is offered after a withdrawal enters, one tick later at the soonest; what was before does not");
	inference_offer(w.inference, candidate("ok_tree", golden_program()));
	inference_withdraw(w.inference);
	ticks(2 * BATCH_TICKS);
	CHECK_EQ(id_in_force(), 0);
	inference_offer(w.inference, candidate("ok_tree", golden_program()));
	ticks(2 * BATCH_TICKS);
	CHECK_EQ(id_in_force(), id_of("ok_tree"));
	for (i = 0; i < 5; i++) { /* the program runs on: the same one is there for the next bundle */
		inference_withdraw(w.inference);
		inference_offer(w.inference, candidate("ok_window", golden_program()));
		ticks(1);
		CHECK_EQ(id_in_force(), 0);
		inference_reclaim(w.inference);
		ticks(1 + i);
		CHECK_EQ(id_in_force(), id_of("ok_window"));
		inference_reclaim(w.inference);
	}
	ticks(2 * BATCH_TICKS);
	inference_reclaim(w.inference);
	CHECK_EQ(id_in_force(), id_of("ok_window"));
	before = w.n_decisions;
	ticks(4 * BATCH_TICKS);
	CHECK(w.n_decisions > before);
	inference_withdraw(w.inference); /* left as it is at the end */
	inference_offer(w.inference, candidate("ok_tree", golden_program()));
	ticks(1);
	end();
}

int main(void)
{
	golden_read(&w.golden, "bundles");
	test_decisions();
	test_offers();
	test_programs();
	test_withdrawals();
	golden_free(&w.golden);
	return done();
}
