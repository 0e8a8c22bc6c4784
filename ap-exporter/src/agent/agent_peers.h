/* agent_neighbours.h: asks the push service who shares this AP's channels: GET …/neighbours, one radio after the other. Agent's thread.
 *
 * Whatever comes is checked whole or refused whole. Without a good answer for a while the figures are dropped: old ones say nothing. */
#ifndef OAL_AGENT_NEIGHBOURS_H
#define OAL_AGENT_NEIGHBOURS_H

#include "enrol/agent_http.h"
#include "agent/peers.h"

#include <stddef.h>
#include <stdint.h>

/* One channel. */
struct neighbour_radio {
	uint16_t frequency_mhz;
	char etag[HTTP_ETAG]; /* of `list`; empty: none */
	uint64_t good_us; /* when the service last answered about it */
	uint64_t told_us; /* when it told `list` */
	struct neighbour_list list;
};

struct neighbour_counts {
	uint32_t asked, told, unchanged, errors, refused; /* told: 200 and 204. refused: 200 that was malformed, oversized or of something else */
};

struct agent_neighbours {
	struct http_request *request; /* NULL: it does not ask */
	const char *url; /* …/neighbours */
	const char *ap_id, *site;
	uint64_t every_us;
	struct neighbours *neighbours;
	struct neighbour_radio radios[NEIGHBOURS_RADIOS];
	unsigned n, next; /* radios; whose turn it is */
	uint16_t asking_mhz; /* of the request under way */
	uint64_t asked_us, at_us; /* the last request; the next not before */
	unsigned failures;
	struct neighbour_counts counts;
};

/* Does what is due. Returns when there is something to do next. */
uint64_t agent_neighbours_run(struct agent_neighbours *, uint64_t now_us);
/* Its request ended. `retry_us`: not before, if it failed. True when it failed or was refused: `why` says how. */
bool agent_neighbours_answer(struct agent_neighbours *, const struct http_answer *, uint64_t retry_us, uint64_t now_us, char *why, size_t why_size);

#endif
