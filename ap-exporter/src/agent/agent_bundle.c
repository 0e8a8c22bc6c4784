#ifdef HAVE_AGENT
/* What becomes of a bundle: verified or refused, waiting for its time, handed to the tick thread, in force. */
#include "agent/agent_ap_state.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/version.h"
#include "feature/feature.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A day: an activation time further ahead shows a wrong clock, here or there. */
static const int64_t FARTHEST_ACTIVATION_US = INT64_C(86400) * 1000000;

static bool is_hash(const char *text)
{
	return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
}

static void report(struct agent_ap *ap, const char *policy, const char *hash, int64_t serial,
		   enum oal_bundle_state state, enum oal_bundle_reason reason)
{
	struct report_state s = {.serial = serial, .state = state, .reason = reason, .ts_us = clock_realtime_us()};

	memcpy(s.bundle, hash, 65);
	snprintf(s.policy, sizeof s.policy, "%s", policy);
	report_add(&ap->report, &s);
}

static struct oal_bundle_status_row status_of(const struct bundle_head *h, enum oal_bundle_state state,
					      enum oal_bundle_reason reason, size_t len)
{
	return (struct oal_bundle_status_row){.bundle = h->id,
					      .source = h->source,
					      .version = h->version,
					      .serial = (uint64_t)h->serial,
					      .state = (uint8_t)state,
					      .reason = (uint8_t)reason,
					      .bytes = (uint32_t)len};
}

void agent_bundle_refuse(struct agent_ap *ap, const struct bundle_head *head, const struct http_answer *answer,
			 enum oal_bundle_reason reason, size_t len, const char *why)
{
	struct bundle_head h = *head;
	struct oal_bundle_status_row row;
	char hash[65];

	agent_hash_text(hash, h.hash);
	if (!h.id && answer && is_hash(answer->etag)) {
		memcpy(hash, answer->etag, 65);
		sscanf(hash, "%16" SCNx64, &h.id);
		h.id &= INT64_MAX;
	}
	ap->view.counts.rejects[reason]++;
	agent_note_error(ap, "bundle %.16s refused (%s): %s", hash, bundle_reason_name(reason), why);
	log_warn(OAL_HERE " %s: %s", ap->ap_id, ap->view.last_error);
	row = status_of(&h, OAL_BUNDLE_STATE_REJECTED, reason, len);
	inference_status(ap->policies[0].inference, &row);
	if (h.id)
		report(ap, h.of_policy[0] || !answer ? h.of_policy : answer->policy, hash, h.serial,
		       OAL_BUNDLE_STATE_REJECTED, reason);
}

void agent_bundle_drop_waiting(struct agent_ap *ap, struct agent_policy *p)
{
	candidate_free(p->waiting);
	free(p->waiting_bytes);
	p->waiting = NULL;
	p->waiting_bytes = NULL;
	ap->view.waiting[p->place].bundle[0] = '\0';
}

enum oal_bundle_reason agent_bundle_candidate(struct agent_policy *p, struct bundle *b, enum oal_bundle_state state,
					      size_t len, struct candidate **out)
{
	struct candidate *c = calloc(1, sizeof *c);
	int r = c ? 0 : -ENOMEM;

	if (!r) {
		c->feature_hash = feature_program_id(bundle_program(b));
		c->status = status_of(bundle_head(b), state, OAL_BUNDLE_REASON_NONE, len);
		if (c->feature_hash != p->program)
			r = candidate_features_new(&c->features, p->inference, bundle_program(b));
	}
	if (r) {
		free(c);
		return r == -EINVAL ? OAL_BUNDLE_REASON_BAD_PROGRAM : OAL_BUNDLE_REASON_NO_MEMORY;
	}
	c->bundle = b;
	*out = c;
	return OAL_BUNDLE_REASON_NONE;
}

void agent_bundle_accept(struct agent_policy *p, struct candidate *c, uint8_t *bytes, size_t len)
{
	snprintf(p->name, sizeof p->name, "%s", bundle_head(c->bundle)->of_policy);
	p->program = c->feature_hash;
	p->accepted = c;
	free(p->accepted_bytes);
	p->accepted_bytes = bytes;
	p->accepted_len = len;
	inference_offer(p->inference, c);
}

static bool is_accepted(struct agent_ap *ap, const struct bundle_head *head)
{
	const struct agent_policy *p = agent_policy_place(ap, head->of_policy);

	return p && p->accepted && !memcmp(head->hash, bundle_head(p->accepted->bundle)->hash, sizeof head->hash);
}

struct bundle *agent_bundle_verify(struct agent_ap *ap, const uint8_t *bytes, size_t len,
				   const struct http_answer *answer, enum oal_bundle_reason *reason,
				   struct bundle_head *head)
{
	struct bundle_terms terms = {.keys = &ap->shared->keys,
				     .verify = signature_verify_openssl,
				     .ap_id = ap->ap_id,
				     .site = ap->shared->site};
	struct bundle *b = NULL;
	char why[200] = "";
	unsigned i;

	for (i = 0; i < BUNDLE_MAX_POLICIES; i++)
		terms.in_force[i] = ap->policies[i].accepted ? ap->policies[i].accepted->bundle : NULL;
	*reason = bundle_open(&b, bytes, len, &terms, head, why, sizeof why);
	if (!*reason && is_accepted(ap, head)) {
		bundle_free(b);
		b = NULL;
	}
	if (*reason)
		agent_bundle_refuse(ap, head, answer, *reason, len, why);
	return b;
}

static void keep_waiting(struct agent_ap *ap, struct agent_policy *p, struct candidate *c, uint8_t *bytes,
			 const struct http_answer *a)
{
	const struct bundle_head *h = bundle_head(c->bundle);
	struct agent_waiting *shown = &ap->view.waiting[p->place];

	snprintf(p->name, sizeof p->name, "%s", h->of_policy);
	p->waiting = c;
	p->waiting_bytes = bytes;
	p->waiting_len = a->len;
	p->waiting_until_us = shown->until_us = a->activate_at_us;
	memcpy(shown->policy, p->name, sizeof shown->policy);
	agent_hash_text(shown->bundle, h->hash);
	c->status.state = OAL_BUNDLE_STATE_WAITING;
	inference_status(p->inference, &c->status);
	c->status.state = OAL_BUNDLE_STATE_APPLIED;
	report(ap, p->name, shown->bundle, h->serial, OAL_BUNDLE_STATE_WAITING, OAL_BUNDLE_REASON_NONE);
}

/* A verified bundle: now, or at its time. */
static void schedule(struct agent_ap *ap, struct agent_policy *p, struct candidate *c, const struct http_answer *a)
{
	const int64_t ahead_us = a->activate_at_us ? a->activate_at_us - (int64_t)clock_realtime_us() : 0;
	uint8_t *bytes = malloc(a->len ? a->len : 1);

	agent_bundle_drop_waiting(ap, p);
	if (!bytes) {
		agent_bundle_refuse(ap, bundle_head(c->bundle), a, OAL_BUNDLE_REASON_NO_MEMORY, a->len,
				    "no memory to keep it");
		candidate_free(c);
		return;
	}
	memcpy(bytes, a->body, a->len);
	if (ahead_us > FARTHEST_ACTIVATION_US)
		log_warn(OAL_HERE " %s: a bundle is to be activated more than a day from now: one of the clocks is "
			 "wrong; it is activated at once",
			 ap->ap_id);
	if (ahead_us <= 0 || ahead_us > FARTHEST_ACTIVATION_US)
		agent_bundle_accept(p, c, bytes, a->len);
	else
		keep_waiting(ap, p, c, bytes, a);
}

/* The one accepted last is wanted: whatever waited is not any more. */
static void wanted_again(struct agent_ap *ap, struct agent_policy *p)
{
	const struct bundle_head *h = bundle_head(p->accepted->bundle);
	char hash[65];

	agent_bundle_drop_waiting(ap, p);
	agent_hash_text(hash, h->hash);
	if (p->in_force == h->id) /* the service did not know */
		report(ap, p->name, hash, h->serial, OAL_BUNDLE_STATE_APPLIED, OAL_BUNDLE_REASON_NONE);
}

/* A place for it, and what it needs to run there. False: it was refused. */
static bool prepare(struct agent_ap *ap, struct bundle *b, const struct http_answer *a, struct agent_policy **place,
		    struct candidate **c)
{
	const struct bundle_head *h = bundle_head(b);
	const char *why = "its feature program cannot run here";
	enum oal_bundle_reason reason = OAL_BUNDLE_REASON_NO_MEMORY;
	char full[96];

	*place = agent_policy_place(ap, h->of_policy);
	if (*place)
		reason = agent_bundle_candidate(*place, b, OAL_BUNDLE_STATE_APPLIED, a->len, c);
	else
		snprintf(full, sizeof full, "no place for policy %s beside the other %u", h->of_policy,
			 agent_policies_count(ap));
	if (!reason)
		return true;
	agent_bundle_refuse(ap, h, a, reason, a->len, *place ? why : full);
	bundle_free(b);
	return false;
}

bool agent_bundle_arrived(struct agent_ap *ap, const struct http_answer *a)
{
	enum oal_bundle_reason reason;
	struct bundle_head head = {0};
	struct agent_policy *p;
	struct candidate *c;
	struct bundle *b = agent_bundle_verify(ap, a->body, a->len, a, &reason, &head);
	bool waited;

	ap->view.counts.bundles++;
	if (!b && !reason)
		wanted_again(ap, agent_policy_place(ap, head.of_policy));
	if (!b || !prepare(ap, b, a, &p, &c))
		return false;
	waited = p->waiting && !memcmp(head.hash, bundle_head(p->waiting->bundle)->hash, 32);
	schedule(ap, p, c, a);
	return !waited;
}

static void note_in_force(struct agent_ap *ap, struct agent_policy *p)
{
	const struct candidate *c = inference_in_force(p->inference);
	const struct bundle_head *h;
	char hash[65];
	bool restored;

	if (!c || c->status.bundle == p->in_force || !inference_withdrawn(p->inference))
		return;
	h = bundle_head(c->bundle);
	restored = c->status.state == OAL_BUNDLE_STATE_RESTORED;
	p->in_force = c->status.bundle;
	p->unsaved = !restored;
	*(restored ? &ap->view.counts.restored : &ap->view.counts.applied) += 1;
	agent_hash_text(hash, h->hash);
	report(ap, p->name, hash, h->serial, (enum oal_bundle_state)c->status.state, OAL_BUNDLE_REASON_NONE);
}

void agent_bundle_in_force(struct agent_ap *ap)
{
	unsigned i;

	for (i = 0; i < BUNDLE_MAX_POLICIES; i++)
		note_in_force(ap, &ap->policies[i]);
}

static void activate(struct agent_ap *ap, struct agent_policy *p)
{
	struct candidate *c = p->waiting;
	uint8_t *bytes = p->waiting_bytes;

	p->waiting = NULL;
	p->waiting_bytes = NULL;
	agent_bundle_drop_waiting(ap, p);
	agent_bundle_accept(p, c, bytes, p->waiting_len);
}

/* When the waiting bundles' times come, looking again at least once a second: the clock may be set. */
uint64_t agent_bundle_run(struct agent_ap *ap, uint64_t now_us)
{
	uint64_t next_us = UINT64_MAX;
	unsigned i;

	for (i = 0; i < BUNDLE_MAX_POLICIES; i++) {
		struct agent_policy *p = &ap->policies[i];
		const int64_t left_us = p->waiting ? p->waiting_until_us - (int64_t)clock_realtime_us() : 0;
		uint64_t at_us;

		if (!p->waiting)
			continue;
		if (left_us <= 0 || left_us > FARTHEST_ACTIVATION_US) {
			activate(ap, p);
			continue;
		}
		at_us = now_us + ((uint64_t)left_us < SECOND_US ? (uint64_t)left_us : SECOND_US);
		next_us = at_us < next_us ? at_us : next_us;
	}
	return next_us;
}

void agent_bundle_close(struct agent_ap *ap)
{
	unsigned i;

	for (i = 0; i < BUNDLE_MAX_POLICIES; i++) {
		agent_bundle_drop_waiting(ap, &ap->policies[i]);
		free(ap->policies[i].accepted_bytes);
	}
}
#endif
