/* How often a driver renews its counters, found from its answers; and that its survey is asked for no faster. */
#include "check.h"
#include "sample/refresh.h"

static struct oal_counter_refresh_row sent[64];
static unsigned n_sent, n_gone;

void samples_row(struct samples *s, enum oal_table_id t, const void *row)
{
	if (t == OAL_COUNTER_REFRESH)
		sent[n_sent++ % 64] = *(const struct oal_counter_refresh_row *)row;
}

void samples_gone(struct samples *s, enum oal_table_id t, const void *row)
{
	n_gone += t == OAL_COUNTER_REFRESH;
}

enum { RX_BYTES, TX_BYTES, TX_RETRIES, TX_FAILED, SIGNAL, TX_RATE, RX_RATE, TX_AIRTIME, RX_AIRTIME };

static struct refresh r;
static struct refresh_seen seen;
static struct oal_station_row station;
static uint32_t tick;

/* So many ticks of a station whose airtime the firmware reports each `period` ticks; bytes are the kernel's own. */
static void play(unsigned ticks, unsigned period, bool traffic)
{
	while (ticks--) {
		const struct oal_station_row before = station;

		tick++;
		if (traffic) {
			station.tx_bytes += 1500;
			if (tick % period == 0)
				station.tx_airtime_us += 900;
		}
		refresh_observe(&r, &seen, &before, &station, tick, traffic);
	}
}

static uint32_t told(unsigned column)
{
	uint32_t us = 0;

	for (unsigned i = 0; i < n_sent; i++)
		if (sent[i].of_table == oal_tables[OAL_STATION].id &&
		    sent[i].of_field == oal_tables[OAL_STATION].columns[column].field)
			us = sent[i].period_us;
	return us;
}

/* A survey of noise alone, which changes each `period` ticks: times asked in `ticks`. */
static unsigned noise_alone(unsigned period, unsigned ticks)
{
	struct refresh of = { .table = &refresh_channel, .device = 3 };
	struct refresh_seen noise_seen = { 0 };
	struct oal_channel_row channel = { 0 };
	unsigned asked = 0;

	for (unsigned now = 1, due = 0; now <= ticks; now++) {
		const struct oal_channel_row before = channel;

		if (now < due)
			continue;
		asked++;
		channel.noise_dbm = now / period % 2 ? -80 : -95;
		refresh_observe(&of, &noise_seen, &before, &channel, now, true);
		due = now + refresh_interval(&of, 25, now);
	}
	return asked;
}

/* A survey that the driver renews each `period` ticks, asked for as refresh_interval() says: times asked in `ticks`. */
static unsigned survey(struct refresh *of, unsigned period, unsigned ticks)
{
	static struct refresh_seen channel_seen;
	static struct oal_channel_row channel;
	static uint32_t now;
	unsigned asked = 0;
	uint32_t due = now;

	for (const uint32_t end = now + ticks; now < end; now++) {
		const struct oal_channel_row before = channel;

		if (now < due)
			continue;
		asked++;
		channel.active_ms = now / period * period * 4;
		refresh_observe(of, &channel_seen, &before, &channel, now, true);
		due = now + refresh_interval(of, 25, now);
	}
	return asked;
}

int main(void)
{
	struct refresh channel = { .table = &refresh_channel, .device = 3 };
	unsigned before;

	r = (struct refresh){ .table = &refresh_station, .device = 3 };
	test("nothing is said of counters before they have changed often enough");
	play(5, 125, true);
	refresh_send_samples(&r, NULL);
	CHECK_EQ(n_sent, 0);

	test("one that the kernel counts itself is renewed at each tick, one of a firmware twice a second");
	play(20 * 125, 125, true);
	refresh_send_samples(&r, NULL);
	CHECK_EQ(told(OAL_STATION_TX_BYTES), OAL_SETTING_TICK_US);
	CHECK_EQ(told(OAL_STATION_TX_AIRTIME_US), 125 * OAL_SETTING_TICK_US);
	CHECK_EQ(sent[0].device, 3);
	test("what never changes, or is not there, has no period");
	CHECK_EQ(told(OAL_STATION_TX_FAILED), 0);
	CHECK_EQ(n_sent, 2);

	test("a period is told once, and again when it is another one");
	play(40 * 125, 125, true);
	refresh_send_samples(&r, NULL);
	CHECK_EQ(n_sent, 2);
	play(40 * 25, 25, true);
	refresh_send_samples(&r, NULL);
	CHECK_EQ(told(OAL_STATION_TX_AIRTIME_US), 25 * OAL_SETTING_TICK_US);
	play(40 * 250, 250, true);
	refresh_send_samples(&r, NULL);
	CHECK_EQ(told(OAL_STATION_TX_AIRTIME_US), 250 * OAL_SETTING_TICK_US);

	test("a counter that stands still because there is no traffic says nothing of its period");
	before = n_sent;
	for (int i = 0; i < 40; i++) {
		play(1, 1, true);
		play(500, 1, false);
	}
	refresh_send_samples(&r, NULL);
	CHECK_EQ(n_sent, before);
	CHECK_EQ(told(OAL_STATION_TX_BYTES), OAL_SETTING_TICK_US);

	test("where the device went away nothing is known any more");
	refresh_forget_samples(&r, NULL);
	CHECK_EQ(n_gone, 2);
	CHECK_EQ(refresh_ticks(&r, TX_BYTES), 0);

	test("a survey that is renewed at each question is asked for as configured");
	before = survey(&channel, 5, 10000);
	CHECK_EQ(before, 400);
	test("one that is renewed once a second is asked for little more often than that");
	survey(&channel, 250, 10000);
	before = survey(&channel, 250, 40000);
	CHECK(before >= 160 && before < 2 * 160);
	CHECK_EQ(refresh_ticks(&channel, 0), 250);
	test("and that it has become faster is found out");
	survey(&channel, 25, 40000);
	CHECK_EQ(survey(&channel, 25, 10000), 400);
	CHECK_EQ(refresh_ticks(&channel, 0), 25);

	test("noise that changes seldom does not make the survey rare where the time on the channel is not told");
	CHECK_EQ(noise_alone(125, 10000), 400);
	return done();
}
