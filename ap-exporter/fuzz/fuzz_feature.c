/* fuzz_feature.c: any bytes as a feature program; what is accepted is run on rows made from the same bytes. */
#include <stdlib.h>
#include <string.h>

#include "feature/feature.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int64_t words[OAL_MAX_FEATURES][OAL_N_WORDS];
	struct feature_space spaces[OAL_N_TABLES];
	struct oal_feature_program p;
	struct feature *f;
	uint64_t t_us = UINT64_C(1800000000000000);
	unsigned i, t;

	if (feature_program_load(&p, words, data, size))
		return 0;
	for (t = 0; t < OAL_N_TABLES; t++)
		spaces[t] = (struct feature_space){4, t == OAL_FLOW ? OAL_FLOW_DIRECTION : -1};
	if (feature_new(&f, &p, spaces))
		abort();
	feature_restart(f, t_us);
	for (i = 0; i < 60; i++, t_us += (uint64_t)p.decision_interval_us / 3 + 1) {
		_Alignas(8) uint8_t row[256];
		size_t k;

		t = i % OAL_N_TABLES;
		for (k = 0; k < sizeof row; k++)
			row[k] = data[(i * 31 + k) % size];
		while (feature_next_us(f) < t_us)
			feature_evaluate(f);
		if (oal_tables[t].topic != OAL_TOPIC_EVENTS)
			feature_row(f, (enum oal_table_id)t, i / OAL_N_TABLES % 4, row, t_us);
		if (i % 13 == 12)
			feature_drop(f, (enum oal_table_id)t, i % 4);
	}
	feature_free(f);
	return 0;
}
