#ifdef HAVE_AGENT
#include "agent/agent_report.h"

#include "model/bundle.h"
#include "base/version.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TIMEOUT_S = 30 }; /* for a whole answer; a report that was not delivered is sent again */

static void drop_first(struct report *r)
{
	memmove(r->waiting, r->waiting + 1, --r->n * sizeof r->waiting[0]);
}

void report_add(struct report *r, const struct report_state *s)
{
	unsigned i;

	for (i = 0; i < r->n; i++)
		if (!strcmp(r->waiting[i].bundle, s->bundle)) {
			r->waiting[i] = *s;
			r->sent_is_old |= r->sending && i == 0;
			return;
		}
	if (r->n == REPORT_ROOM) {
		const unsigned oldest = r->sending; /* the one under way is done with by itself */

		memmove(r->waiting + oldest, r->waiting + oldest + 1, (--r->n - oldest) * sizeof r->waiting[0]);
		r->counts.dropped++;
	}
	r->waiting[r->n++] = *s;
}

uint64_t report_run(struct report *r, uint64_t boot_id, uint64_t now_us)
{
	static const char *const states[] = OAL_BUNDLE_STATES;
	const struct report_state *s = r->waiting;
	const bool named = s->policy[0];
	char json[512];

	if (!r->n || r->sending)
		return UINT64_MAX;
	if (now_us < r->at_us)
		return r->at_us;
	snprintf(json, sizeof json,
		 "{\"bundle\":\"%.64s\"%s%.31s%s,\"serial\":%" PRId64
		 ",\"state\":\"%s\",\"reason\":\"%s\",\"ts_us\":%" PRIu64
		 ",\"boot_id\":\"%" PRIu64 "\",\"agent\":\"" OAL_VERSION "\"}",
		 s->bundle, named ? ",\"policy\":\"" : "", s->policy, named ? "\"" : "", s->serial, states[s->state],
		 bundle_reason_name(s->reason), s->ts_us, boot_id);
	r->sending = http_post(r->request, json, TIMEOUT_S);
	r->sent_is_old = false;
	if (r->sending)
		return UINT64_MAX;
	r->at_us = now_us + 1000000; /* no memory now */
	return r->at_us;
}

/* Answers that the same report will always get. */
static bool final(long status)
{
	return status == 400 || status == 404 || status == 413 || status == 422;
}

bool report_answer(struct report *r, const struct http_answer *a, uint64_t retry_us)
{
	const bool good = a->status >= 200 && a->status < 300;

	r->sending = false;
	if (good || final(a->status)) {
		*(good ? &r->counts.delivered : &r->counts.dropped) += 1;
		if (!r->sent_is_old)
			drop_first(r);
		r->failures = 0;
		r->at_us = 0;
	} else {
		r->failures++;
		r->at_us = retry_us;
	}
	r->counts.errors += !good;
	return !good;
}
#endif
