/*
 * What a decision costs: the rows of a capture go through feature.c as on the AP; at each instant the features are
 * evaluated and a tree of 255 nodes and a window model of 100 trees answer. The trees are complete, their thresholds
 * values that occur, so that paths are as long and as hard to foresee as they get.
 *
 *   bench_decide CAPTURE [BATCHES]     of the capture's beginning; prints the number of decisions, rows and nanoseconds
 *   an answer
 *
 * Under callgrind, --toggle-collect=measured_features (…_rows, …_tree, …_window) counts one part. Under qemu, the
 * instructions between mark_begin() and mark_end() are those of the same parts, in this order at each decision.
 */
#include <stdint.h>

struct feature;
static const int64_t *measured_evaluate(struct feature *);
static void measured_row(struct feature *, unsigned table, unsigned entity, const void *row, uint64_t t_us);
/* offline.h's own calls are what is measured. */
#define feature_evaluate measured_evaluate
#define feature_row measured_row
#include "offline.h"
#undef feature_evaluate
#undef feature_row

#include "wire/capture_file.h"
#include "model/tree.h"
#include "model/sum.h"

#include <time.h>

/* Declared again under their own names: the header above was read under the others. */
const int64_t *feature_evaluate(struct feature *);
void feature_row(struct feature *, enum oal_table_id, unsigned entity, const void *row, uint64_t t_us);

enum {
	TREE_DEPTH = 7,
	WINDOW_TREES = 100,
	WINDOW_DEPTH = 6,
	WINDOW_INPUTS = 16,
	MAX_DECISIONS = 4096,
	ANSWERS = 200000
};

void mark_begin(void);
void mark_end(void);
const int64_t *measured_features(struct feature *);
void measured_rows(struct feature *, unsigned table, unsigned entity, const void *row, uint64_t t_us);
unsigned measured_tree(const struct tree *, const int64_t *x);
int64_t measured_window(const struct sum *, const int64_t *x);

#define NOINLINE __attribute__((noinline, noclone))
NOINLINE void mark_begin(void)
{
	__asm__ volatile("");
}

NOINLINE void mark_end(void)
{
	__asm__ volatile("");
}

NOINLINE const int64_t *measured_features(struct feature *f)
{
	return feature_evaluate(f);
}

NOINLINE void measured_rows(struct feature *f, unsigned table, unsigned entity, const void *row, uint64_t t_us)
{
	feature_row(f, (enum oal_table_id)table, entity, row, t_us);
}

NOINLINE unsigned measured_tree(const struct tree *t, const int64_t *x)
{
	return tree_apply(t, x);
}

NOINLINE int64_t measured_window(const struct sum *w, const int64_t *x)
{
	return sum_predict(w, x);
}

static uint64_t n_rows;
static unsigned n_decisions;
static int64_t vectors[MAX_DECISIONS][OAL_MAX_FEATURES];
static struct tree *tree;
static struct sum *window;

static void measured_row(struct feature *f, unsigned table, unsigned entity, const void *row, uint64_t t_us)
{
	n_rows++;
	measured_rows(f, table, entity, row, t_us);
}

static const int64_t *measured_evaluate(struct feature *f)
{
	const int64_t *x;

	mark_begin();
	x = measured_features(f);
	mark_end();
	return x;
}

static void on_instant(void *ctx, uint64_t t_us, const int64_t *x, unsigned n)
{
	if (n_decisions == MAX_DECISIONS)
		return;
	memcpy(vectors[n_decisions++], x, n * sizeof *x);
	if (!tree)
		return;
	mark_begin();
	measured_tree(tree, x);
	mark_end();
	mark_begin();
	measured_window(window, x);
	mark_end();
}

/* A complete tree in preorder; thresholds are values of recorded vectors. */
static struct node *complete(struct node *at, const struct node *root, unsigned depth, unsigned n_inputs,
                             uint64_t *random)
{
	struct node *me = at++;

	*me = (struct node){ (int64_t)(check_random(random) % 65536), 0, NODE_LEAF, 0 };
	if (!depth)
		return at;
	me->feature = (uint8_t)(check_random(random) % n_inputs);
	me->threshold = vectors[check_random(random) % n_decisions][me->feature];
	me->missing_right = check_random(random) & 1;
	at = complete(at, root, depth - 1, n_inputs, random);
	me->right = (uint16_t)(at - root);
	return complete(at, root, depth - 1, n_inputs, random);
}

static void make_models(unsigned n_features)
{
	static struct tree t;
	static struct sum w;
	static struct node tree_nodes[(2 << TREE_DEPTH) - 1], window_nodes[WINDOW_TREES * ((2 << WINDOW_DEPTH) - 1)];
	static uint32_t sizes[WINDOW_TREES];
	static int32_t inputs[WINDOW_INPUTS];
	struct node *at = window_nodes;
	uint64_t random = 1;
	unsigned i;

	complete(tree_nodes, tree_nodes, TREE_DEPTH, n_features, &random);
	t = (struct tree){ (2 << TREE_DEPTH) - 1, tree_nodes };
	for (i = 0; i < WINDOW_TREES; i++) {
		at = complete(at, at, WINDOW_DEPTH, WINDOW_INPUTS, &random);
		sizes[i] = (2 << WINDOW_DEPTH) - 1;
	}
	w = (struct sum){
		.n_inputs = WINDOW_INPUTS, .n_trees = WINDOW_TREES,
		.n_nodes = WINDOW_TREES * ((2 << WINDOW_DEPTH) - 1), .inputs = inputs, .tree_nodes = sizes,
		.nodes = window_nodes, .lo = 1460, .hi = 1 << 20, .shift = 8,
	};
	tree = &t;
	window = &w;
}

/* Feeds the capture's first batches. */
static void run(const uint8_t *data, size_t size, unsigned max_batches)
{
	struct offline *o = offline_new(&oal_feature_congestion, on_instant, NULL);
	struct batch_view views[OAL_N_TOPICS];
	struct capture_record r;
	struct capture_reader reader;
	unsigned n = 0, batches = 0;

	n_decisions = 0;
	n_rows = 0;
	capture_open(&reader, data, size);
	while (batches < max_batches && capture_next(&reader, &r)) {
		struct batch_view v;

		if (r.topic == OAL_TOPIC_EVENTS || batch_decode(&v, r.topic, r.bytes, r.len, NULL, 0) != BATCH_OK)
			continue;
		if (n && (views[0].t0_us != v.t0_us || n == OAL_N_TOPICS)) {
			offline_feed(o, views, n);
			n = 0;
		}
		views[n++] = v;
		batches++;
	}
	if (n)
		offline_feed(o, views, n);
	offline_free(o);
}

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
	const unsigned max_batches = argc > 2 ? (unsigned)atoi(argv[2]) : UINT32_MAX;
	uint64_t sum = 0;
	uint8_t *data;
	double start, tree_ns, window_ns;
	unsigned i;
	size_t size;

	if (argc < 2)
		return 2;
	data = check_file(argv[1], &size);
	run(data, size, max_batches); /* for the vectors that thresholds are taken from */
	if (!n_decisions) {
		fprintf(stderr, "no decision in %s\n", argv[1]);
		return 1;
	}
	make_models(oal_feature_congestion.n);
	if (argc <= 2) { /* times; counts of instructions need no more than one answer a decision */
		start = now_ns();
		for (i = 0; i < ANSWERS; i++)
			sum += tree_apply(tree, vectors[i % n_decisions]);
		tree_ns = (now_ns() - start) / ANSWERS;
		start = now_ns();
		for (i = 0; i < ANSWERS / 50; i++)
			sum += (uint64_t)sum_predict(window, vectors[i % n_decisions]);
		window_ns = (now_ns() - start) / (ANSWERS / 50);
		printf("tree_ns %.1f window_ns %.1f sum %" PRIu64 "\n", tree_ns, window_ns, sum);
	}
	run(data, size, max_batches);
	printf("decisions %u rows %" PRIu64 "\n", n_decisions, n_rows);
	free(data);
	return 0;
}
