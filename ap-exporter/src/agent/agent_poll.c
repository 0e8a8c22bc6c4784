#ifdef HAVE_AGENT
/* The long poll: one request that the service holds until it has news. */
#include "agent/agent_ap_state.h"

#include "base/log.h"
#include "base/version.h"

#include <stdio.h>

/* A poll that brings no news should have waited at the service: after one that did not, the AP waits. */
static const uint64_t QUICK_US = SECOND_US;
/* At most ten bundles a second are verified, whatever the service sends. */
static const uint64_t BUNDLE_GAP_US = SECOND_US / 10;
/* How long a service that does not understand several policies is asked for rwnd-fair alone: it may be replaced. */
static const uint64_t ALONE_US = 60 * SECOND_US;
enum { ANSWER_MARGIN_S = 30 }; /* on top of the poll's own wait: for connecting, and for the body */

/* A service that knows of no policy but rwnd-fair takes one hash. */
static bool alone(const struct agent_ap *ap, uint64_t now_us)
{
	return now_us < ap->alone_until_us;
}

static void begin(struct agent_ap *ap, uint64_t now_us)
{
	const struct config_agent *c = ap->shared->config;
	const struct candidate *fair = ap->policies[0].accepted;
	char policies[16 + BUNDLE_MAX_POLICIES * (BUNDLE_MAX_POLICY + 1)], match[16 + BUNDLE_MAX_POLICIES * 68];
	char prefer[32], site[CONFIG_NAME + 16], hash[65];
	/* What it has of the kill switch: a service that thinks otherwise answers at once. */
	char killed[16 + OAL_SETTING_MAX_KILLED_POLICIES * (BUNDLE_MAX_POLICY + 1)];
	const char *headers[8] = {"Accept: application/vnd.oal.bundle", prefer,
				  agent_killed(ap) ? "OAL-Control: off" : "OAL-Control: on", killed};
	unsigned n = 4;

	agent_kill_switch_header(ap, killed, sizeof killed);
	snprintf(prefer, sizeof prefer, "Prefer: wait=%u", c->wait_s);
	snprintf(site, sizeof site, "OAL-Site: %s", ap->shared->site);
	match[0] = '\0';
	if (!alone(ap, now_us)) {
		agent_policies_headers(ap, policies, sizeof policies, match, sizeof match);
		headers[n++] = policies;
	} else if (fair) {
		agent_hash_text(hash, bundle_head(fair->bundle)->hash);
		snprintf(match, sizeof match, "If-None-Match: \"%s\"", hash);
	}
	if (match[0])
		headers[n++] = match;
	if (ap->shared->site[0])
		headers[n++] = site;
	headers[n] = NULL;
	ap->poll_began_us = now_us;
	if (http_get(ap->poll, headers, c->wait_s + ANSWER_MARGIN_S)) {
		ap->view.counts.polls++;
		return;
	}
	ap->view.counts.poll_errors++;
	agent_note_error(ap, "no memory for a poll");
	ap->poll_at_us = now_us + agent_backoff_us(ap->shared, ++ap->failures);
}

uint64_t agent_poll_run(struct agent_ap *ap, uint64_t now_us)
{
	if (!http_request_active(ap->poll) && now_us >= ap->poll_at_us)
		begin(ap, now_us);
	return http_request_active(ap->poll) ? UINT64_MAX : ap->poll_at_us;
}

static void poll_failed(struct agent_ap *ap, const struct http_answer *a, uint64_t now_us)
{
	const uint64_t asked_us = a->retry_after_s * SECOND_US;
	const uint64_t wait_us = agent_backoff_us(ap->shared, ++ap->failures);

	ap->view.counts.poll_errors++;
	if (a->status)
		agent_note_error(ap, "the service answered %ld%s%.160s", a->status, a->error[0] ? ": " : "", a->error);
	else
		agent_note_error(ap, "no answer: %.200s", a->error);
	if (ap->failures == 1) /* the first of a row; the others are counted */
		log_warn(OAL_HERE " %s: %s", ap->ap_id, ap->view.last_error);
	/* What the service asks for, and up to a tenth more. */
	ap->poll_at_us = now_us +
			 (asked_us > wait_us ? asked_us + agent_random_below(ap->shared, asked_us / 10 + 1) : wait_us);
}

/* A bundle that was refused, or that the AP had: a service that does not take note of reports is not asked all the
 * time. */
static void no_news(struct agent_ap *ap, uint64_t now_us)
{
	ap->poll_at_us = now_us + agent_backoff_us(ap->shared, ++ap->no_news);
}

/* An older service refuses several hashes. What the AP has of other policies stays in force. */
static bool is_of_older_service(const struct agent_ap *ap, const struct http_answer *a, uint64_t now_us)
{
	return a->status == 400 && !a->policies_said && !alone(ap, now_us) && agent_policies_count(ap) > 1;
}

void agent_poll_answer(struct agent_ap *ap, const struct http_answer *a, uint64_t now_us)
{
	const bool turned = agent_kill_switch_read(ap, a);
	bool news;

	if (a->oversized && a->status == 200) {
		char why[64];
		const struct bundle_head nobody = {0};

		snprintf(why, sizeof why, "more than %d bytes", HTTP_MAX_BODY);
		ap->view.counts.bundles++;
		agent_bundle_refuse(ap, &nobody, a, OAL_BUNDLE_REASON_OVERSIZED, HTTP_MAX_BODY, why);
		no_news(ap, now_us);
		return;
	}
	if (a->status != 200 && a->status != 204 && a->status != 304) {
		if (is_of_older_service(ap, a, now_us))
			ap->alone_until_us = now_us + ALONE_US;
		poll_failed(ap, a, now_us);
		return;
	}
	ap->failures = 0;
	news = a->policies_said && agent_policies_keep(ap, a->policies);
	if (a->status == 200) {
		if (agent_bundle_arrived(ap, a)) {
			ap->no_news = 0;
			ap->poll_at_us = now_us + BUNDLE_GAP_US;
		} else {
			no_news(ap, now_us);
		}
		return;
	}
	ap->view.counts.unchanged++;
	/* News of the kill switch, or of a policy too many, is why this one did not wait; to and fro, it is still no
	 * more than ten polls a second. */
	if (news || turned)
		ap->poll_at_us = now_us + BUNDLE_GAP_US;
	else
		ap->poll_at_us = now_us - ap->poll_began_us >= QUICK_US ? now_us
									: now_us + agent_jitter(ap->shared, QUICK_US);
}
#endif
