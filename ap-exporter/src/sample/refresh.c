#include "sample/refresh.h"

#include <string.h>

const struct refresh_table refresh_station = {
	.table = OAL_STATION,
	.n = 9,
	.columns = { OAL_STATION_RX_BYTES, OAL_STATION_TX_BYTES, OAL_STATION_TX_RETRIES, OAL_STATION_TX_FAILED,
		     OAL_STATION_SIGNAL_DBM, OAL_STATION_TX_BITRATE_KBPS, OAL_STATION_RX_BITRATE_KBPS,
		     OAL_STATION_TX_AIRTIME_US, OAL_STATION_RX_AIRTIME_US },
};

const struct refresh_table refresh_channel = {
	.table = OAL_CHANNEL,
	.n = 5,
	.columns = { OAL_CHANNEL_ACTIVE_MS, OAL_CHANNEL_BUSY_MS, OAL_CHANNEL_RX_MS, OAL_CHANNEL_TX_MS,
		     OAL_CHANNEL_NOISE_DBM },
};

static void add_gap(struct refresh *r, unsigned i, uint32_t gap)
{
	uint32_t *shortest = r->counters[i].shortest;

	if (!r->counters[i].gaps || gap < shortest[0]) {
		shortest[1] = r->counters[i].gaps ? shortest[0] : UINT32_MAX;
		shortest[0] = gap;
	} else if (gap < shortest[1]) {
		shortest[1] = gap;
	}
	if (++r->counters[i].gaps == REFRESH_GAPS) {
		r->counters[i].found = shortest[1];
		r->counters[i].gaps = 0;
	}
}

void refresh_observe(struct refresh *r, struct refresh_seen *s, const void *before, const void *now, uint32_t tick,
		     bool busy)
{
	const struct oal_table *t = &oal_tables[r->table->table];

	for (unsigned i = 0; i < r->table->n; i++) {
		const struct oal_column *c = &t->columns[r->table->columns[i]];

		if (s->answers[i] < UINT16_MAX) {
			s->answers[i]++;
			s->busy[i] += busy;
		}
		if (!memcmp((const uint8_t *)before + c->offset, (const uint8_t *)now + c->offset, c->size))
			continue;
		if (s->changed[i] && s->busy[i] * REFRESH_BUSY >= s->answers[i])
			add_gap(r, i, tick - s->changed[i]);
		s->changed[i] = tick;
		s->answers[i] = s->busy[i] = 0;
	}
}

uint32_t refresh_ticks(const struct refresh *r, unsigned i)
{
	const uint32_t found = r->counters[i].found;

	/* Two shorter ones are enough to know that it is faster now. */
	if (found && r->counters[i].gaps > 1 && r->counters[i].shortest[1] < found)
		return r->counters[i].shortest[1];
	return found;
}

uint32_t refresh_interval(const struct refresh *r, uint32_t interval, uint64_t tick)
{
	const uint32_t period = refresh_ticks(r, REFRESH_CLOCK);

	return period > interval && tick / period % REFRESH_TRY ? period : interval;
}

static bool is_news(uint32_t sent_us, uint32_t us)
{
	return us > sent_us + sent_us / REFRESH_CHANGE || us + sent_us / REFRESH_CHANGE < sent_us;
}

static struct oal_counter_refresh_row row_of(const struct refresh *r, unsigned i)
{
	const struct oal_table *t = &oal_tables[r->table->table];

	return (struct oal_counter_refresh_row){ .device = r->device,
						 .of_table = t->id,
						 .of_field = t->columns[r->table->columns[i]].field,
						 .period_us = r->counters[i].sent_us };
}

void refresh_send(struct refresh *r, refresh_row add, void *to)
{
	for (unsigned i = 0; i < r->table->n; i++) {
		const uint64_t us = (uint64_t)refresh_ticks(r, i) * OAL_SETTING_TICK_US;
		struct oal_counter_refresh_row row;

		if (!us || us > UINT32_MAX || !is_news(r->counters[i].sent_us, (uint32_t)us))
			continue;
		r->counters[i].sent_us = (uint32_t)us;
		row = row_of(r, i);
		add(to, &row);
	}
}

void refresh_forget(struct refresh *r, refresh_row gone, void *to)
{
	for (unsigned i = 0; i < r->table->n; i++) {
		const struct oal_counter_refresh_row row = row_of(r, i);

		if (row.period_us)
			gone(to, &row);
	}
	memset(r->counters, 0, sizeof r->counters);
}

static void add_sample(void *samples, const struct oal_counter_refresh_row *row)
{
	samples_row(samples, OAL_COUNTER_REFRESH, row);
}

static void gone_sample(void *samples, const struct oal_counter_refresh_row *row)
{
	samples_gone(samples, OAL_COUNTER_REFRESH, row);
}

void refresh_send_samples(struct refresh *r, struct samples *s)
{
	refresh_send(r, add_sample, s);
}

void refresh_forget_samples(struct refresh *r, struct samples *s)
{
	refresh_forget(r, gone_sample, s);
}
