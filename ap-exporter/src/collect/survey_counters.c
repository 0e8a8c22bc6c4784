#include "collect/survey_counters.h"

enum {
	SLACK_MS = 100, /* drivers read their hardware at moments of their own */
	SLACK_PARTS = 8, /* and count by clocks of their own: an eighth more than has passed is possible */
};
static const uint64_t impossible_ms = UINT64_C(100) * 365 * 86400 * 1000; /* no radio is on for a hundred years */

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* Was the time on the channel cleared at the last read? Then it is nearer to what has passed than its growth is. */
static bool cleared(uint64_t last, uint64_t now, uint64_t elapsed_ms)
{
	return now && (now < last || distance(now, elapsed_ms) < distance(now - last, elapsed_ms));
}

unsigned survey_counters_mend(struct survey_counters *c, struct oal_channel_row *row, uint64_t elapsed_ms)
{
	uint64_t *const times[SURVEY_COUNTERS] = { &row->active_ms, &row->busy_ms, &row->ext_busy_ms,
						   &row->rx_ms, &row->tx_ms, &row->scan_ms };
	const uint64_t most = elapsed_ms + elapsed_ms / SLACK_PARTS + SLACK_MS;
	const bool anew = c->known && cleared(c->raw[0], row->active_ms, elapsed_ms);
	unsigned left_out = 0;

	for (unsigned i = 0; i < SURVEY_COUNTERS; i++) {
		const uint64_t raw = *times[i];
		const uint64_t grown = anew ? raw : raw - c->raw[i]; /* backwards: far above what is possible */

		if (!c->known) {
			c->sum[i] = raw < impossible_ms ? raw : 0;
			left_out += raw >= impossible_ms;
		} else if (grown <= most) {
			c->sum[i] += grown;
		} else {
			left_out++;
		}
		c->raw[i] = raw;
		*times[i] = c->sum[i];
	}
	c->known = true;
	return left_out;
}
