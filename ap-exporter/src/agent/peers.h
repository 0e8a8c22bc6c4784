/* neighbours.h: statistics of other APs on this one's channels, on their way from the agent's thread to rows of the table neighbour_ap.
 *
 * Two threads, no lock, no allocation. The tick thread says which channels the radios are on and writes rows; the agent's asks the push
 * service about those channels and hands over whole lists, of which the newest counts. */
#ifndef OAL_NEIGHBOURS_H
#define OAL_NEIGHBOURS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/peer_list.h"
#include "oal_schema.h"
#include "pipeline/pipeline.h"

enum { NEIGHBOURS_RADIOS = 4 };

/* Of all channels together. */
struct neighbours_told {
	struct neighbour_list list;
	uint64_t at_us[NEIGHBOUR_LIST_MAX]; /* monotonic: when the row's age was what it says */
};

struct neighbour_key {
	uint64_t neighbour;
	uint16_t frequency_mhz;
};

struct neighbours {
	struct neighbours_told told[3]; /* one is the agent's to fill, one the tick thread's to read, one is between them */
	atomic_uint between; /* its index, with FRESH when it was not yet read */
	unsigned filling; /* agent's */
	/* Tick thread's. */
	unsigned reading;
	struct neighbour_key shown[NEIGHBOUR_LIST_MAX]; /* those with rows */
	unsigned n_shown, ticks; /* ticks: since rows were written */
	atomic_uint frequencies[NEIGHBOURS_RADIOS]; /* MHz, 0: no radio more. Written by the tick thread */
};

void neighbours_init(struct neighbours *);

/* --- tick thread: at every tick, when rows of state tables may be written. `now_ns`: monotonic clock; NULL: ages stay as they came.
 * True when the radios' channels are others than before. */
bool neighbours_tick(struct neighbours *, struct pipeline *, uint64_t (*now_ns)(void));

/* --- agent's thread */
/* The radios' channels; returns how many, at most NEIGHBOURS_RADIOS. */
unsigned neighbours_frequencies(const struct neighbours *, uint16_t frequencies[NEIGHBOURS_RADIOS]);
/* The list to fill; what is in it is of long ago. */
struct neighbours_told *neighbours_draft(struct neighbours *);
/* Hands it over: rows of who is not in it are gone from the next tick on. */
void neighbours_tell(struct neighbours *);

#endif
