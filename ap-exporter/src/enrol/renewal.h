/* renewal.h: an AP's certificate is renewed when less than a third of its life is left: POST …/certificate with a
 * request for a new key. Agent's thread.
 *
 * What comes is checked whole and put into the files that the configuration names, all or none; until that is done, and
 * if it fails, the old ones stay. */
#ifndef OAL_RENEWAL_H
#define OAL_RENEWAL_H

#include "enrol/http.h"
#include "base/config.h"
#include "enrol/issued.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct renewal_counts {
	uint32_t renewed, errors;
	int64_t not_after_us; /* realtime; 0: the certificate could not be read */
	char last_error[200];
};

struct renewal {
	struct http_request *request; /* NULL: it does not renew */
	const struct config *config;
	const char *ap_id;
	int64_t due_us; /* realtime */
	char *key; /* of the request under way */
	uint64_t at_us; /* not before, after a failure */
	unsigned failures; /* in a row */
	struct renewal_counts counts;
};

/* Takes note of the certificate in use. False: it is not this AP's own, so that it is not this AP's to renew. `spread`
 * (a random number) keeps a fleet that was enrolled together from renewing together. */
bool renewal_begin(struct renewal *, const char *certificate, uint64_t spread);
/* Asks if it is time. Returns when there is something to do next. */
uint64_t renewal_run(struct renewal *, uint64_t now_us);
/* Its request ended. True: files are written, `issued` (to be freed) and `*key` (likewise) hold them. False: it failed,
 * as counted; `retry_us` is when it is tried again. */
bool renewal_answer(struct renewal *, const struct http_answer *, uint64_t retry_us, struct issued *, char **key);

#endif
