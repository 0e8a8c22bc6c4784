/* agent_peers.h: asks the push service which APs of the site (its peers) share this AP's channels: GET …/neighbours,
 * one radio after the other. Agent's thread.
 *
 * Whatever comes is checked whole or refused whole. Without a good answer for a while the figures are dropped: old ones
 * say nothing. */
#ifndef OAL_AGENT_PEERS_H
#define OAL_AGENT_PEERS_H

#include "enrol/http.h"
#include "agent/peers.h"

#include <stddef.h>
#include <stdint.h>

/* One channel. */
struct peer_radio {
	uint16_t frequency_mhz;
	char etag[HTTP_ETAG]; /* of `list`; empty: none */
	uint64_t good_us; /* when the service last answered about it */
	uint64_t received_us; /* when `list` came */
	struct peer_list list;
};

struct peer_counts {
	uint32_t requests, lists, unchanged, errors,
		refused; /* lists: 200 and 204. refused: 200 that was malformed, oversized or of something else */
};

struct agent_peers {
	struct http_request *request; /* NULL: it does not ask */
	const char *url; /* …/neighbours */
	const char *ap_id, *site;
	uint64_t every_us;
	struct peers *peers;
	struct peer_radio radios[PEER_RADIOS];
	unsigned n, next; /* radios; whose turn it is */
	uint16_t requested_mhz; /* of the request under way */
	uint64_t requested_us, at_us; /* the last request; the next not before */
	unsigned failures;
	struct peer_counts counts;
};

/* Does what is due. Returns when there is something to do next. */
uint64_t agent_peers_run(struct agent_peers *, uint64_t now_us);
/* Its request ended. `retry_us`: not before, if it failed. True when it failed or was refused: `why` says how. */
bool agent_peers_answer(struct agent_peers *, const struct http_answer *, uint64_t retry_us, uint64_t now_us, char *why,
			size_t why_size);

#endif
