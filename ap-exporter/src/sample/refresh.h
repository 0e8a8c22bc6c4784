/* refresh.h: how often a driver really renews its counters, from its answers alone.
 *
 * A counter that a firmware reports twice a second reads the same 125 times at 250 Hz. Its period is the shortest time
 * between two changes that was seen more than once; no finer than it was asked for, and only told where something went
 * on all the while: a counter that stands still because nothing happens says nothing. */
#ifndef OAL_REFRESH_H
#define OAL_REFRESH_H

#include "sample/samples.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	REFRESH_MOST = 9, /* counters of a table */
	REFRESH_CLOCK = 0, /* of refresh_channel: the time on the channel, which never stands still by itself */
	REFRESH_GAPS = 16, /* between changes, before a period is known, and again before it is another one */
	REFRESH_BUSY = 4, /* something has to go on in a quarter of the answers between two changes */
	REFRESH_TRY = 16, /* every so often it is asked for as configured: has it become faster? */
	REFRESH_CHANGE = 8, /* a period within an eighth of the one told is no news */
};

/* What is watched: columns of a table. */
struct refresh_table {
	enum oal_table_id table;
	uint8_t n, columns[REFRESH_MOST];
};
extern const struct refresh_table refresh_station, refresh_channel;

/* Of one entity: all zero at first. */
struct refresh_seen {
	uint32_t changed[REFRESH_MOST]; /* tick of the last change; 0: none yet */
	uint16_t answers[REFRESH_MOST], busy[REFRESH_MOST]; /* since then */
};

/* Of a device. All zero but for table and device. */
struct refresh {
	const struct refresh_table *table;
	uint16_t device; /* a name of the pipeline */
	struct {
		uint32_t shortest[2]; /* gaps of the present run, in ticks */
		uint32_t found; /* what the run before found; 0: nothing yet */
		uint32_t sent_us; /* in the last row of it */
		uint8_t gaps;
	} counters[REFRESH_MOST];
};

/* An answer about an entity at `tick`, after one that said `before`. `busy`: something went on since then. */
void refresh_observe(struct refresh *, struct refresh_seen *, const void *before, const void *now, uint32_t tick,
		     bool busy);
/* Period of the i-th counter in ticks; 0: not known. */
uint32_t refresh_ticks(const struct refresh *, unsigned i);
/* Ticks until the next request of a survey, which is due each `interval` ticks: as long as the driver takes to renew
 * the time on the channel, but now and then as configured. Where that is not known it is `interval`: noise that stays
 * the same for a second, or a channel on which nobody sends, must not make requests rare, for then their changes are
 * missed. */
uint32_t refresh_interval(const struct refresh *, uint32_t interval, uint64_t tick);
/* Takes a row of the table counter_refresh. */
typedef void (*refresh_row)(void *to, const struct oal_counter_refresh_row *);
/* Rows of the counters whose period is news. */
void refresh_send(struct refresh *, refresh_row, void *to);
/* The device went away: nothing is known any more; what was told is gone. */
void refresh_forget(struct refresh *, refresh_row gone, void *to);
/* For those whose rows go by samples.h. */
void refresh_send_samples(struct refresh *, struct samples *);
void refresh_forget_samples(struct refresh *, struct samples *);

#endif
