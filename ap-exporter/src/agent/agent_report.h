/* agent_report.h: what an AP tells the service about bundles: POST …/status, until each is delivered. Of one bundle the
 * newest state counts; of several bundles the latest few. */
#ifndef OAL_AGENT_REPORT_H
#define OAL_AGENT_REPORT_H

#include "enrol/http.h"

#include <stdbool.h>
#include <stdint.h>

/* Bundles: the last few are what the service does not know yet. Two for each policy that an AP may have. */
enum { REPORT_ROOM = 8 };

struct report_state {
	char bundle[65]; /* hash in hex */
	char policy[HTTP_POLICY]; /* that it belongs to; empty: the bytes did not say */
	int64_t serial;
	enum oal_bundle_state state;
	enum oal_bundle_reason reason;
	uint64_t ts_us; /* realtime */
};

struct report_counts {
	uint32_t delivered, errors, dropped; /* dropped: for newer ones, or refused by the service for good */
};

struct report {
	struct http_request *request;
	struct report_state waiting[REPORT_ROOM]; /* oldest first */
	unsigned n;
	bool sending; /* the first of them */
	bool sent_is_old; /* a newer state of that bundle came meanwhile */
	uint64_t at_us; /* not before */
	unsigned failures;
	struct report_counts counts;
};

void report_add(struct report *, const struct report_state *);
/* Sends the next one if it is due. Returns when there is something to do next. */
uint64_t report_run(struct report *, uint64_t boot_id, uint64_t now_us);
/* Its request ended. `retry_us`: when to try again if it failed. True when it was an error worth telling. */
bool report_answer(struct report *, const struct http_answer *, uint64_t retry_us);

#endif
