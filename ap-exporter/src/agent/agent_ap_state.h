/* agent_ap_state.h: the inside of agent_ap.h: what one AP of the agent remembers, and its parts. Only agent's own files
 * include this. Used by the agent's thread alone, except where a member says otherwise. Times are monotonic
 * microseconds unless named realtime. */
#ifndef OAL_AGENT_AP_STATE_H
#define OAL_AGENT_AP_STATE_H

#include "agent/agent_peers.h"
#include "agent/agent_report.h"
#include "base/config.h"
#include "enrol/http.h"
#include "enrol/renewal.h"
#include "model/bundle.h"
#include "model/inference.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define SECOND_US UINT64_C(1000000)
enum { AGENT_URL = 512 }; /* bytes of a URL, its end included */

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
	uint32_t control_changes; /* times that the service turned the kill switch */
	uint32_t given_up; /* policies that the service no longer wants here */
};

/* A bundle that waits for its time. */
struct agent_waiting {
	char policy[BUNDLE_MAX_POLICY + 1];
	char bundle[65]; /* its hash; empty: none waits */
	int64_t until_us; /* realtime */
};

/* What others may see of it. */
struct agent_view {
	struct agent_counts counts;
	struct report_counts reports;
	struct peer_counts peers;
	struct renewal_counts renewal;
	struct agent_waiting waiting[BUNDLE_MAX_POLICIES]; /* a policy each, at its place */
	/* By the kill switch off by themselves, one space between two. What is off with all is in `inference`. */
	char killed_policies[OAL_SETTING_MAX_KILLED_POLICIES * (BUNDLE_MAX_POLICY + 1)];
	char last_error[256];
};

/* One policy of the AP. It is in use while a bundle of it is accepted, or waits. */
struct agent_policy {
	unsigned place; /* number of it among the AP's */
	char name[BUNDLE_MAX_POLICY + 1];
	struct inference *inference;
	struct candidate *accepted; /* last one offered: in force, or about to be. Owned by `inference` */
	uint8_t *accepted_bytes; /* it as it came, for flash */
	size_t accepted_len;
	uint64_t program; /* feature program that the pipeline has or will take; 0: none */
	struct candidate *waiting; /* verified; its time has not come */
	uint8_t *waiting_bytes;
	size_t waiting_len;
	int64_t waiting_until_us;
	uint64_t in_force; /* id of the bundle last seen in force */
	bool unsaved; /* what is in force is not on flash */
	uint64_t saved_us; /* 0: never in this life */
};

struct agent_ap {
	struct agent_shared *shared;
	char ap_id[160];
	uint64_t boot_id;
	struct agent_policy policies[BUNDLE_MAX_POLICIES]; /* rwnd-fair has the first, and nothing else has it */
	struct http_pem ca; /* that came with its renewed certificate; empty: the shared one */
	struct http_pem cert, key;
	struct http_identity identity;

	/* The long poll. */
	struct http_request *poll;
	uint64_t poll_at_us, poll_began_us;
	unsigned failures; /* in a row */
	unsigned no_news; /* bundles in a row that were refused, or were there already */
	uint64_t alone_until_us; /* until then polls are of rwnd-fair alone: the service knows of no other policy */

	struct report report;

	struct agent_peers peers;
	char peers_url[AGENT_URL];

	struct renewal renewal;

	/* Flash. */
	bool control_unsaved;
	uint64_t control_save_at_us; /* not before */

	struct agent_view view, shown; /* shown: what others read, under shared->lock */
};

/* --- agent_failure.c */
/* What went wrong last, for the status. */
__attribute__((format(printf, 2, 3))) void agent_note_error(struct agent_ap *, const char *format, ...);
/* 0 … n - 1; 0 for n = 0. */
uint64_t agent_random_below(struct agent_shared *, uint64_t n);
/* Half of it to all of it. */
uint64_t agent_jitter(struct agent_shared *, uint64_t us);
/* How long to wait after so many failures in a row. */
uint64_t agent_backoff_us(struct agent_shared *, unsigned failures);
/* When to try again after this answer: not before the service asks for it, nor before our own wait is over. */
uint64_t agent_retry_at_us(const struct http_answer *, uint64_t wait_us, uint64_t now_us);

/* --- agent_policies.c: which policy has which place */
extern const char agent_rwnd_fair[];
void agent_hash_text(char out[65], const uint8_t hash[32]);
bool agent_policy_used(const struct agent_policy *);
/* Where the policy of this name is, or may begin. NULL: others have all the places. */
struct agent_policy *agent_policy_place(struct agent_ap *, const char *name);
/* Header lines of a poll: the policies in use, and their bundles' hashes. */
void agent_policies_headers(const struct agent_ap *, char *policies, size_t policies_size, char *match,
			    size_t match_size);
/* Of how many the AP has a bundle. */
unsigned agent_policies_count(const struct agent_ap *);

/* --- agent_bundle.c */
/* All checks. A bundle; or NULL and the reason, which was reported; or NULL and no reason: it is the one of its policy
 * accepted last. `answer`: the one that it came with, for one whose bytes do not say who it is; NULL: none. */
struct bundle *agent_bundle_verify(struct agent_ap *, const uint8_t *bytes, size_t len,
				   const struct http_answer *answer, enum oal_bundle_reason *, struct bundle_head *);
/* Makes everything that the bundle needs to run, off the tick path. When that fails the bundle stays the caller's. */
enum oal_bundle_reason agent_bundle_candidate(struct agent_policy *, struct bundle *, enum oal_bundle_state, size_t len,
					      struct candidate **);
/* The tick thread may have it. Both are the agent's from now on. */
void agent_bundle_accept(struct agent_policy *, struct candidate *, uint8_t *bytes, size_t len);
/* Counts, logs and reports that it is refused, and why. */
void agent_bundle_refuse(struct agent_ap *, const struct bundle_head *, const struct http_answer *answer,
			 enum oal_bundle_reason, size_t len, const char *why);
/* The service sent one. True: it is news. */
bool agent_bundle_arrived(struct agent_ap *, const struct http_answer *);
/* Notes which bundles the tick thread has put in force, and reports those that are new. */
void agent_bundle_in_force(struct agent_ap *);
/* Activates waiting bundles when their time comes. Returns when to call again. */
uint64_t agent_bundle_run(struct agent_ap *, uint64_t now_us);
/* Whatever waits of this policy is not wanted any more. */
void agent_bundle_drop_waiting(struct agent_ap *, struct agent_policy *);
void agent_bundle_close(struct agent_ap *);

/* --- agent_flash.c: bundles on flash */
void agent_flash_restore(struct agent_ap *);
/* Writes what is in force and not there yet, of each policy not more often than store_interval_s. Returns when to call
 * again. */
uint64_t agent_flash_run(struct agent_ap *, uint64_t now_us);
/* The same, now. */
void agent_flash_save(struct agent_ap *, uint64_t now_us);
/* The policy has no bundle any more. */
void agent_flash_remove(struct agent_ap *, const struct agent_policy *);

/* --- agent_withdraw.c */
/* Gives up every policy that is not in the list (names, one space between two), but rwnd-fair. True: there was one. */
bool agent_policies_keep(struct agent_ap *, const char *list);

/* --- agent_kill_switch.c */
/* Does it turn control off, of all policies? */
bool agent_killed(const struct agent_ap *);
/* The header of a poll that says which policies are off by themselves. */
void agent_kill_switch_header(const struct agent_ap *, char *buf, size_t size);
/* What an answer of the service says of it, in force at once; flash follows. True: it is news. */
bool agent_kill_switch_read(struct agent_ap *, const struct http_answer *);
void agent_kill_switch_restore(struct agent_ap *);
/* Takes it over from the same AP of an agent that this one replaces. */
void agent_kill_switch_inherit(struct agent_ap *, const struct agent_ap *earlier);
/* Writes it to flash if that is due. Returns when to call again. */
uint64_t agent_kill_switch_run(struct agent_ap *, uint64_t now_us);

/* --- agent_poll.c */
/* Begins a poll if one is due. Returns when to call again. */
uint64_t agent_poll_run(struct agent_ap *, uint64_t now_us);
/* It ended. */
void agent_poll_answer(struct agent_ap *, const struct http_answer *, uint64_t now_us);

/* --- agent_identity.c */
/* Reads certificate and key. Negative errno with the reason in `err`. */
int agent_identity_read(struct agent_ap *, char *err, size_t err_size);
/* Makes the requests that use them. The same. */
int agent_identity_open(struct agent_ap *, char *err, size_t err_size);
/* The request for a new certificate was answered. True: the AP goes on with a new one, and files have changed. */
bool agent_identity_renewed(struct agent_ap *, const struct http_answer *, uint64_t now_us);
/* Closes the requests: before shared->http is closed. */
void agent_identity_close(struct agent_ap *);
void agent_identity_free(struct agent_ap *);

#endif
