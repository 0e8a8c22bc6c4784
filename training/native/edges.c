/* Quantile edges of a column, and the binning of items with them. */
#include <string.h>

#include "tree.h"

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

/* Sort by the digits that differ; values minus their minimum are unsigned. Returns where the sorted values are. */
static uint64_t *sort(uint64_t *values, uint64_t *spare, int32_t n, uint64_t range)
{
	for (int shift = 0; shift < 64 && range >> shift; shift += DIGIT_BITS) {
		int32_t start[DIGITS] = { 0 };
		for (int32_t i = 0; i < n; i++)
			start[(values[i] >> shift) & (DIGITS - 1)]++;
		for (int32_t d = 0, sum = 0; d < DIGITS; d++) {
			int32_t count = start[d];
			start[d] = sum;
			sum += count;
		}
		for (int32_t i = 0; i < n; i++)
			spare[start[(values[i] >> shift) & (DIGITS - 1)]++] = values[i];
		uint64_t *swap = values;
		values = spare;
		spare = swap;
	}
	return values;
}

int32_t oal_edges(const int64_t *column, int64_t row_stride, int32_t n, int64_t *scratch, int32_t max_edges,
		  int64_t *edges)
{
	uint64_t *values = (uint64_t *)scratch;
	int64_t lowest = INT64_MAX, highest = INT64_MIN;
	int32_t present = 0;

	for (int32_t i = 0; i < n; i++) {
		int64_t x = column[i * row_stride];
		if (x == OAL_MISSING)
			continue;
		lowest = x < lowest ? x : lowest;
		highest = x > highest ? x : highest;
		values[present++] = (uint64_t)x;
	}
	if (present < 2 || lowest == highest)
		return 0;
	for (int32_t i = 0; i < present; i++)
		values[i] -= (uint64_t)lowest;
	values = sort(values, (uint64_t *)scratch + n, present, (uint64_t)highest - (uint64_t)lowest);

	int32_t distinct = 1;
	for (int32_t i = 1; i < present; i++)
		distinct += values[i] != values[i - 1];
	int32_t made = 0, in_bin = 0, left = present;
	/* A value that alone would fill a bin ends the bin before it, too. */
	for (int32_t i = 0; i < present && made < max_edges;) {
		int32_t run = i + 1;
		while (run < present && values[run] == values[i])
			run++;
		in_bin += run - i;
		int32_t next = run;
		while (next < present && values[next] == values[run])
			next++;
		int32_t share = (left + max_edges - made) / (max_edges + 1 - made);
		if (run < present && (distinct <= max_edges + 1 || in_bin >= share || next - run >= share)) {
			edges[made++] = (int64_t)((uint64_t)lowest + values[i] + (values[run] - values[i]) / 2);
			left -= in_bin;
			in_bin = 0;
		}
		i = run;
	}
	return made;
}

/* Number of edges below x, branch-free. */
static inline int32_t below(const int64_t *edges, int32_t n, int64_t x)
{
	const int64_t *base = edges;
	while (n > 1) {
		int32_t half = n / 2;
		base += base[half - 1] < x ? half : 0;
		n -= half;
	}
	return (int32_t)(base - edges) + (n == 1 && *base < x);
}

static inline uint8_t bin(const struct oal_bins *bins, int32_t feature, int64_t x)
{
	if (x == OAL_MISSING)
		return 0;
	return (uint8_t)(1 + below(bins->edges + (int64_t)feature * (bins->bins - 2), bins->n_edges[feature], x));
}

void oal_bin_rows(const struct oal_bins *bins, const int64_t *rows, int32_t n, uint8_t *binned)
{
	for (int32_t i = 0; i < n; i++)
		for (int32_t f = 0; f < bins->features; f++)
			binned[(int64_t)i * bins->stride + f] = bin(bins, f, rows[(int64_t)i * bins->features + f]);
}

void oal_bin_column(const struct oal_bins *bins, int32_t feature, const int64_t *rows, int32_t n, uint8_t *binned)
{
	for (int32_t i = 0; i < n; i++)
		binned[(int64_t)i * bins->stride + feature] =
			bin(bins, feature, rows[(int64_t)i * bins->features + feature]);
}
