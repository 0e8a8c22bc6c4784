/* agent_ap.h: one AP of the agent: which bundle it has, waits for or refused, and when it next talks to the service.
 * Used by the agent's thread alone, except where a member says otherwise. Times are monotonic microseconds unless named realtime. */
#ifndef OAL_AGENT_AP_H
#define OAL_AGENT_AP_H

#include "enrol/http.h"
#include "agent/agent_peers.h"
#include "enrol/renewal.h"
#include "agent/agent_report.h"
#include "base/config.h"
#include "model/inference.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { AGENT_URL = 512 };

/* What all APs share. */
struct agent_shared {
	const struct config_agent *config;
	const struct config *all; /* the whole configuration */
	const char *site;
	struct trusted_keys keys;
	struct http *http;
	struct http_pem ca;
	uint64_t random; /* state of the generator behind the jitter */
	pthread_mutex_t lock; /* guards every agent_ap's `view`; held to copy it, never for longer */
};

struct agent_counts {
	uint32_t polls, bundles, unchanged, poll_errors; /* answers: 200, 204 or 304, neither */
	uint32_t applied, restored, rejects[OAL_N_BUNDLE_REASONS];
	uint32_t stores, store_errors;
	uint32_t control_changes; /* that the kill switch was turned, as heard */
};

/* What others may see of it. */
struct agent_view {
	struct agent_counts counts;
	struct report_counts reports;
	struct peer_counts peers;
	struct renewal_counts renewal;
	char waiting[65]; /* hash of the bundle that waits for its time; empty: none */
	int64_t waiting_until_us; /* realtime */
	char last_error[256];
};

struct agent_ap {
	struct agent_shared *shared;
	char ap_id[160];
	uint64_t boot_id;
	struct inference *inference;
	struct http_pem ca; /* that came with its renewed certificate; empty: the shared one */
	struct http_pem cert, key;
	struct http_identity identity;

	/* Bundles. */
	struct candidate *accepted; /* last one offered: in force, or about to be. Owned by `inference` */
	uint8_t *accepted_bytes; /* it as it came, for flash */
	size_t accepted_len;
	uint64_t program; /* feature program that the pipeline has or will take */
	struct candidate *waiting; /* verified; its time has not come */
	uint8_t *waiting_bytes;
	size_t waiting_len;
	int64_t waiting_until_us;
	uint64_t in_force; /* id of the bundle last seen in force */

	/* The long poll. */
	struct http_request *poll;
	uint64_t poll_at_us, poll_began_us;
	unsigned failures; /* in a row */
	unsigned no_news; /* bundles in a row that were refused, or were there already */

	struct report report;

	struct agent_peers peers;
	char peers_url[AGENT_URL];

	struct renewal renewal;

	/* Flash. */
	bool unsaved, control_unsaved;
	uint64_t saved_us; /* 0: never in this life */
	uint64_t control_save_at_us; /* not before */

	struct agent_view view, shown; /* shown: what others read, under shared->lock */
};

/* Negative errno with the reason in `err`. Reads the AP's certificate and key, and takes up the bundle on flash. */
int agent_ap_open(struct agent_ap *, struct agent_shared *, const char *ap_id, uint64_t boot_id, struct pipeline *, void (*wake)(void *ctx), void *ctx,
		  char *err, size_t err_size);
/* Takes over, before its thread runs, what the service said to the same AP of an agent that this one replaces. */
void agent_ap_inherit(struct agent_ap *, const struct agent_ap *earlier);
/* Requests are made when the thread runs; closed before shared->http is. */
void agent_ap_close_requests(struct agent_ap *);
void agent_ap_free(struct agent_ap *);

/* Its first poll: soon, each AP at another time. */
void agent_ap_schedule(struct agent_ap *, uint64_t now_us);
/* Does what is due. Returns when there is something to do next. */
uint64_t agent_ap_run(struct agent_ap *, uint64_t now_us);
/* Its poll ended. */
void agent_ap_answer(struct agent_ap *, const struct http_answer *, uint64_t now_us);
/* Its report was answered. */
void agent_ap_reported(struct agent_ap *, const struct http_answer *, uint64_t now_us);
/* Its question about peers was answered. */
void agent_ap_peers_answer(struct agent_ap *, const struct http_answer *, uint64_t now_us);
/* Its request for a new certificate was answered. True: the AP goes on with a new one, and files have changed. */
bool agent_ap_renewed(struct agent_ap *, const struct http_answer *, uint64_t now_us);
/* The thread ends: what is in force goes to flash. */
void agent_ap_run_last(struct agent_ap *, uint64_t now_us);
/* Writes to flash what is in force and not there yet. */
void agent_ap_save(struct agent_ap *, uint64_t now_us);

#endif
