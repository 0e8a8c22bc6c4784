#ifdef HAVE_AGENT
#include "agent/agent_ap.h"

#include "base/clock.h"

#include <errno.h>
#include <stdio.h>

/* First polls are spread over this: many APs may start together. */
static const uint64_t FIRST_POLL_US = SECOND_US / 5;

/* --- what is due */

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t agent_ap_run(struct agent_ap *ap, uint64_t now_us)
{
	uint64_t next_us = UINT64_MAX;
	unsigned i;

	for (i = 0; i < BUNDLE_MAX_POLICIES; i++)
		inference_reclaim(ap->policies[i].inference);
	next_us = sooner(next_us, agent_bundle_run(ap, now_us));
	agent_bundle_in_force(ap);
	next_us = sooner(next_us, agent_poll_run(ap, now_us));
	next_us = sooner(next_us, report_run(&ap->report, ap->boot_id, now_us));
	next_us = sooner(next_us, agent_kill_switch_run(ap, now_us));
	next_us = sooner(next_us, agent_flash_run(ap, now_us));
	next_us = sooner(next_us, agent_peers_run(&ap->peers, now_us));
	next_us = sooner(next_us, renewal_run(&ap->renewal, now_us));
	ap->view.renewal = ap->renewal.counts;
	ap->view.reports = ap->report.counts;
	ap->view.peers = ap->peers.counts;
	pthread_mutex_lock(&ap->shared->lock);
	ap->shown = ap->view;
	pthread_mutex_unlock(&ap->shared->lock);
	return next_us;
}

static void report_answered(struct agent_ap *ap, const struct http_answer *a, uint64_t now_us)
{
	if (!report_answer(&ap->report, a,
			   agent_retry_at_us(a, agent_backoff_us(ap->shared, ap->report.failures + 1), now_us)))
		return;
	if (a->status)
		agent_note_error(ap, "the service answered a report with %ld%s%.150s", a->status,
				 a->error[0] ? ": " : "", a->error);
	else
		agent_note_error(ap, "a report could not be delivered: %.180s", a->error);
}

static void peers_answered(struct agent_ap *ap, const struct http_answer *a, uint64_t now_us)
{
	char why[sizeof ap->view.last_error];

	if (agent_peers_answer(&ap->peers, a,
			       agent_retry_at_us(a, agent_backoff_us(ap->shared, ap->peers.failures + 1), now_us),
			       now_us, why, sizeof why))
		agent_note_error(ap, "%s", why);
}

bool agent_ap_answer(struct agent_ap *ap, const struct http_request *r, const struct http_answer *a, uint64_t now_us)
{
	if (r == ap->renewal.request)
		return agent_identity_renewed(ap, a, now_us);
	if (r == ap->poll)
		agent_poll_answer(ap, a, now_us);
	else if (r == ap->peers.request)
		peers_answered(ap, a, now_us);
	else
		report_answered(ap, a, now_us);
	return false;
}

void agent_ap_save(struct agent_ap *ap, uint64_t now_us)
{
	agent_flash_save(ap, now_us);
}

void agent_ap_run_last(struct agent_ap *ap, uint64_t now_us)
{
	agent_bundle_in_force(ap);
	agent_flash_save(ap, now_us);
	ap->control_save_at_us = 0;
	agent_kill_switch_run(ap, now_us);
}

void agent_ap_schedule(struct agent_ap *ap, uint64_t now_us)
{
	ap->poll_at_us = now_us + agent_random_below(ap->shared, FIRST_POLL_US);
	ap->peers.at_us = ap->poll_at_us + agent_random_below(ap->shared, FIRST_POLL_US);
}

/* --- begin and end */

int agent_ap_open(struct agent_ap *ap, struct agent_shared *shared, const char *ap_id, uint64_t boot_id,
		  struct inference *const *inferences, struct peers *peers, char *err, size_t err_size)
{
	const struct config_agent *c = shared->config;
	unsigned i;
	int r;

	ap->shared = shared;
	ap->boot_id = boot_id;
	for (i = 0; i < BUNDLE_MAX_POLICIES; i++) {
		ap->policies[i].place = i;
		ap->policies[i].inference = inferences[i];
		ap->policies[i].program = inference_first_program(inferences[i]);
	}
	ap->peers.peers = peers;
	ap->renewal = (struct renewal){.config = shared->all, .ap_id = ap->ap_id};
	snprintf(ap->ap_id, sizeof ap->ap_id, "%s", ap_id);
	r = agent_identity_read(ap, err, err_size);
	if (r)
		return r;
	r = agent_identity_open(ap, err, err_size);
	if (r)
		return r;
	if (c->state_dir[0]) {
		agent_flash_restore(ap);
		agent_kill_switch_restore(ap);
	}
	return 0;
}

void agent_ap_inherit(struct agent_ap *ap, const struct agent_ap *earlier)
{
	agent_kill_switch_inherit(ap, earlier);
}

void agent_ap_free(struct agent_ap *ap)
{
	agent_bundle_close(ap);
	agent_identity_free(ap);
}
#endif
