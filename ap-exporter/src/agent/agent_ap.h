/* agent_ap.h: one AP of the agent: which bundles it has, waits for or refused, and when it next talks to the service.
 * Called by the agent's thread once it runs. Times are monotonic microseconds. */
#ifndef OAL_AGENT_AP_H
#define OAL_AGENT_AP_H

#include "agent/agent_ap_state.h"

#include <stdint.h>

struct json;

/* Negative errno with the reason in `err`. Reads the AP's certificate and key, and the bundles on flash. Inferences:
 * one a policy, BUNDLE_MAX_POLICIES of them, rwnd-fair's first. */
int agent_ap_open(struct agent_ap *, struct agent_shared *, const char *ap_id, uint64_t boot_id,
		  struct inference *const *, struct peers *, char *err, size_t err_size);
/* Takes over, before its thread runs, what the service said to the same AP of an agent that this one replaces. */
void agent_ap_inherit(struct agent_ap *, const struct agent_ap *earlier);
void agent_ap_free(struct agent_ap *);

/* Its first poll: soon, each AP at another time. */
void agent_ap_schedule(struct agent_ap *, uint64_t now_us);
/* Does what is due. Returns when there is something to do next. */
uint64_t agent_ap_run(struct agent_ap *, uint64_t now_us);
/* A request of this AP was answered. True: files with certificates or keys have changed. */
bool agent_ap_answer(struct agent_ap *, const struct http_request *, const struct http_answer *, uint64_t now_us);
/* The thread ends: what is in force goes to flash. */
void agent_ap_run_last(struct agent_ap *, uint64_t now_us);
/* Writes to flash what is in force and not there yet. */
void agent_ap_save(struct agent_ap *, uint64_t now_us);

/* --- agent_ap_json.c: by the tick thread */
/* Adds what it counted. */
void agent_ap_sum(struct agent_ap *, struct agent_view *sum, struct inference_stats *decided);
/* Its state as an object. */
void agent_ap_json(struct agent_ap *, struct json *);

#endif
