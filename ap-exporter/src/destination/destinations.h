/* destinations.h: what policies about destinations do on this host. Each connection that ends is judged by itself, by
 * the tree of the bundle in force; the network that it went to then has a congestion control for connections that begin
 * (congestion.h), which is set anew before its time is over, and forgotten when no session says it again.
 *
 * What is in force of a policy is the least of its bundle, the host's own ceiling, and off while a kill switch is on:
 * the push service's or the kill file. In shadow everything happens but the setting. What is not known is not decided
 * upon: a session whose congestion control the contract does not name, that delivered little, or with a feature
 * missing. Allocates nothing after destinations_new(). Tick thread. */
#ifndef OAL_DESTINATIONS_H
#define OAL_DESTINATIONS_H

#include <stdint.h>

#include "oal_policy.h"
#include "oal_schema.h"
#include "pipeline/pipeline_config.h"

struct congestion;
struct destinations;
struct inference;
struct json;
struct pipeline;
struct sender_flow;

enum {
	/* Networks with a choice at once. The kernel's map has room for 4096, and kernels before 6.13 take no update of
	 * an entry where it is full. */
	DESTINATIONS_MAX = 4095,
	DESTINATIONS_TTL_MS = 60000, /* of a choice in the kernel */
	DESTINATIONS_RENEW_S = 20, /* it is set anew after this */
};

struct destinations_config {
	struct pipeline *pipeline;
	struct inference *inferences[PIPELINE_SLOTS]; /* one a policy, at the slot of its number */
	enum oal_policy_mode ceiling;
	const char *kill_file; /* NULL or empty: none. It must outlive this */
	uint64_t (*monotonic_ns)(void);
	uint64_t seed; /* of what is explored */
};

/* -ENOMEM */
int destinations_new(struct destinations **, const struct destinations_config *);
/* Gives every choice up. */
void destinations_free(struct destinations *);
/* What choices are set with from now on; NULL: nothing, at most shadow. Not owned. */
void destinations_set_with(struct destinations *, struct congestion *);
/* A connection has ended at `t_us`, realtime. */
void destinations_session(struct destinations *, const struct sender_flow *, const struct oal_sender_session_row *,
			  uint64_t t_us);
/* A tick ends: takes over modes and bundles, sets choices anew, gives up what may not go on. */
void destinations_tick(struct destinations *);
/* Its state as an object. */
void destinations_json(const struct destinations *, struct json *);

#endif
