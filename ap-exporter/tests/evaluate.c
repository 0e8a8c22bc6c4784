/* evaluate.c: what an AP computes of a bundle and golden records, for `policies/oal-policy check`.
 *
 *     evaluate BUNDLE RECORDS
 *
 * Opens the bundle as an AP does, golden vectors included, but without its signature; then a line for each decision
 * instant of the records (schema/golden/README.md): the instant, every feature ("-": missing), and of each tree its
 * role and leaf. Exit status 1: the bundle is refused, with the reason; 2: wrong usage. */
#include "check.h"
#include "model/bundle.h"
#include "offline.h"

struct run {
	const struct bundle *bundle;
};

static void print_instant(void *ctx, uint64_t t_us, const int64_t *x, unsigned n)
{
	const struct run *run = ctx;

	printf("%" PRIu64, t_us);
	for (unsigned i = 0; i < n; i++)
		x[i] == OAL_MISSING ? printf(" -") : printf(" %" PRId64, x[i]);
	for (unsigned i = 0; i < bundle_n_models(run->bundle); i++) {
		const struct model *m = bundle_model(run->bundle, i);
		struct model_answer answer;

		if (m->ops != &model_tree)
			continue;
		m->ops->eval(m, x, &answer);
		printf(" %s=%" PRId64, m->role, answer.value);
	}
	putchar('\n');
}

int main(int argc, char **argv)
{
	size_t size, records_size;
	const struct bundle_terms terms = {0};
	struct bundle *bundle;
	struct batch_view view, group[2];
	struct offline *offline;
	enum oal_bundle_reason reason;
	unsigned n = 0;
	char err[256];

	if (argc != 3) {
		fprintf(stderr, "usage: evaluate BUNDLE RECORDS\n");
		return 2;
	}
	uint8_t *signed_bundle = check_file(argv[1], &size), *records = check_file(argv[2], &records_size);
	const uint8_t *at = records, *const end = records + records_size;

	if ((reason = bundle_open(&bundle, signed_bundle, size, &terms, NULL, err, sizeof err))) {
		fprintf(stderr, "evaluate: %s: %s\n", bundle_reason_name(reason), err);
		return 1;
	}
	offline = offline_new(bundle_program(bundle), print_instant, &(struct run){bundle});
	while (end - at >= 5) {
		const size_t len = (size_t)(at[1] | at[2] << 8 | at[3] << 16 | (uint32_t)at[4] << 24);

		if (len > (size_t)(end - at) - 5 || batch_decode(&view, at[0], at + 5, len, NULL, 0) != BATCH_OK) {
			fprintf(stderr, "evaluate: %s: a record cannot be read\n", argv[2]);
			return 1;
		}
		if (n && view.t0_us != group[0].t0_us) {
			offline_feed(offline, group, n);
			n = 0;
		}
		group[n++] = view;
		at += 5 + len;
	}
	if (n)
		offline_feed(offline, group, n);
	offline_free(offline);
	bundle_free(bundle);
	free(signed_bundle);
	free(records);
	return 0;
}
