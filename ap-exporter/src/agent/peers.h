/* peers.h: statistics of the site's other APs on this one's channels (its peers), on their way from the agent's thread
 * to rows of the table neighbour_ap.
 *
 * Two threads, no lock, no allocation. The tick thread says which channels the radios are on and writes rows; the
 * agent's asks the push service about those channels and hands over whole lists, of which the newest counts. */
#ifndef OAL_PEERS_H
#define OAL_PEERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/peer_list.h"
#include "oal_schema.h"

struct pipeline;

enum { PEER_RADIOS = 4 }; /* of an AP: 2.4, 5, 5 and 6 GHz */

/* Of all channels together. */
struct peers_snapshot {
	struct peer_list list;
	uint64_t at_us[PEER_LIST_MAX]; /* monotonic: when the row's age was what it says */
};

struct peer_key {
	uint64_t neighbour;
	uint16_t frequency_mhz;
};

struct peers {
	struct peers_snapshot snapshots[3]; /* one for the agent to fill, one for the tick to read, one between them */
	atomic_uint between; /* its index, with FRESH when it was not yet read */
	unsigned filling; /* agent's */
	/* Tick thread's. */
	unsigned reading;
	struct peer_key present[PEER_LIST_MAX]; /* those with rows */
	unsigned n_present, ticks; /* ticks: since rows were written */
	atomic_uint frequencies[PEER_RADIOS]; /* MHz, 0: no radio more. Written by the tick thread */
};

void peers_init(struct peers *);

/* --- tick thread: at every tick, when rows of state tables may be written. `now_ns`: monotonic clock; NULL: ages stay
 * as they came. True when the radios' channels are others than before. */
bool peers_tick(struct peers *, struct pipeline *, uint64_t (*now_ns)(void));

/* --- agent's thread */
/* The radios' channels; returns how many, at most PEER_RADIOS. */
unsigned peers_frequencies(const struct peers *, uint16_t frequencies[PEER_RADIOS]);
/* The list to fill; what is in it is of long ago. */
struct peers_snapshot *peers_draft(struct peers *);
/* Hands it over: rows of who is not in it are gone from the next tick on. */
void peers_publish(struct peers *);

#endif
