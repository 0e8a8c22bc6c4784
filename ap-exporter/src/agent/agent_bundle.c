#ifdef HAVE_AGENT
/* What becomes of a bundle: verified or refused, waiting for its time, handed to the tick thread, in force. */
#include "agent/agent_ap_state.h"

#include "base/clock.h"
#include "base/log.h"
#include "feature/feature.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A day: an activation time further ahead shows a wrong clock, here or there. */
static const int64_t FARTHEST_ACTIVATION_US = INT64_C(86400) * 1000000;

void agent_hash_text(char out[65], const uint8_t hash[32])
{
	unsigned i;

	for (i = 0; i < 32; i++)
		snprintf(out + 2 * i, 3, "%02x", hash[i]);
}

static bool is_hash(const char *text)
{
	return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
}

static void report(struct agent_ap *ap, const char *hash, int64_t serial, enum oal_bundle_state state,
		   enum oal_bundle_reason reason)
{
	struct report_state s = {.serial = serial, .state = state, .reason = reason, .ts_us = clock_realtime_us()};

	memcpy(s.bundle, hash, 65);
	report_put(&ap->report, &s);
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

void agent_bundle_refuse(struct agent_ap *ap, const struct bundle_head *head, const char *etag,
			 enum oal_bundle_reason reason, size_t len, const char *why)
{
	struct bundle_head h = *head;
	struct oal_bundle_status_row row;
	char hash[65];

	agent_hash_text(hash, h.hash);
	if (!h.id && is_hash(etag)) {
		memcpy(hash, etag, 65);
		sscanf(hash, "%16" SCNx64, &h.id);
		h.id &= INT64_MAX;
	}
	ap->view.counts.rejects[reason]++;
	agent_note_error(ap, "bundle %.16s refused (%s): %s", hash, bundle_reason_name(reason), why);
	log_warn("AP %s: %s", ap->ap_id, ap->view.last_error);
	row = status_of(&h, OAL_BUNDLE_STATE_REJECTED, reason, len);
	inference_status(ap->inference, &row);
	if (h.id)
		report(ap, hash, h.serial, OAL_BUNDLE_STATE_REJECTED, reason);
}

static void drop_waiting(struct agent_ap *ap)
{
	candidate_free(ap->waiting);
	free(ap->waiting_bytes);
	ap->waiting = NULL;
	ap->waiting_bytes = NULL;
	ap->view.waiting[0] = '\0';
	ap->view.waiting_until_us = 0;
}

enum oal_bundle_reason agent_bundle_candidate(struct agent_ap *ap, struct bundle *b, enum oal_bundle_state state,
					      size_t len, struct candidate **out)
{
	struct candidate *c = calloc(1, sizeof *c);
	int r = c ? 0 : -ENOMEM;

	if (!r) {
		c->feature_hash = feature_program_id(bundle_program(b));
		c->status = status_of(bundle_head(b), state, OAL_BUNDLE_REASON_NONE, len);
		if (c->feature_hash != ap->program)
			r = candidate_features_new(&c->features, ap->inference, bundle_program(b));
	}
	if (r) {
		free(c);
		return r == -EINVAL ? OAL_BUNDLE_REASON_BAD_PROGRAM : OAL_BUNDLE_REASON_NO_MEMORY;
	}
	c->bundle = b;
	*out = c;
	return OAL_BUNDLE_REASON_NONE;
}

void agent_bundle_accept(struct agent_ap *ap, struct candidate *c, uint8_t *bytes, size_t len)
{
	ap->program = c->feature_hash;
	ap->accepted = c;
	free(ap->accepted_bytes);
	ap->accepted_bytes = bytes;
	ap->accepted_len = len;
	inference_offer(ap->inference, c);
}

struct bundle *agent_bundle_verify(struct agent_ap *ap, const uint8_t *bytes, size_t len, const char *etag,
				   enum oal_bundle_reason *reason, struct bundle_head *head)
{
	const struct bundle_terms terms = {.keys = &ap->shared->keys,
					   .verify = signature_verify_openssl,
					   .ap_id = ap->ap_id,
					   .site = ap->shared->site,
					   .in_force = {ap->accepted ? ap->accepted->bundle : NULL}};
	struct bundle *b = NULL;
	char why[200] = "";

	*reason = bundle_open(&b, bytes, len, &terms, head, why, sizeof why);
	if (!*reason && ap->accepted && !memcmp(head->hash, bundle_head(ap->accepted->bundle)->hash, 32)) {
		bundle_free(b);
		b = NULL;
	}
	if (*reason)
		agent_bundle_refuse(ap, head, etag, *reason, len, why);
	return b;
}

/* A verified bundle: now, or at its time. */
static void schedule(struct agent_ap *ap, struct candidate *c, const struct http_answer *a)
{
	const int64_t ahead_us = a->activate_at_us ? a->activate_at_us - (int64_t)clock_realtime_us() : 0;
	const struct bundle_head *h = bundle_head(c->bundle);
	uint8_t *bytes = malloc(a->len ? a->len : 1);
	char hash[65];

	drop_waiting(ap);
	if (!bytes) {
		agent_bundle_refuse(ap, h, "", OAL_BUNDLE_REASON_NO_MEMORY, a->len, "no memory to keep it");
		candidate_free(c);
		return;
	}
	memcpy(bytes, a->body, a->len);
	if (ahead_us > FARTHEST_ACTIVATION_US)
		log_warn("AP %s: a bundle is to be activated more than a day from now: one of the clocks is wrong; it "
			 "is activated at once",
			 ap->ap_id);
	if (ahead_us <= 0 || ahead_us > FARTHEST_ACTIVATION_US) {
		agent_bundle_accept(ap, c, bytes, a->len);
		return;
	}
	ap->waiting = c;
	ap->waiting_bytes = bytes;
	ap->waiting_len = a->len;
	ap->waiting_until_us = ap->view.waiting_until_us = a->activate_at_us;
	agent_hash_text(ap->view.waiting, h->hash);
	c->status.state = OAL_BUNDLE_STATE_WAITING;
	inference_status(ap->inference, &c->status);
	c->status.state = OAL_BUNDLE_STATE_APPLIED;
	agent_hash_text(hash, h->hash);
	report(ap, hash, h->serial, OAL_BUNDLE_STATE_WAITING, OAL_BUNDLE_REASON_NONE);
}

/* The one accepted last is wanted: whatever waited is not any more. */
static void wanted_again(struct agent_ap *ap)
{
	const struct bundle_head *h = bundle_head(ap->accepted->bundle);
	char hash[65];

	drop_waiting(ap);
	agent_hash_text(hash, h->hash);
	if (ap->in_force == h->id) /* the service did not know */
		report(ap, hash, h->serial, OAL_BUNDLE_STATE_APPLIED, OAL_BUNDLE_REASON_NONE);
}

bool agent_bundle_arrived(struct agent_ap *ap, const struct http_answer *a)
{
	enum oal_bundle_reason reason;
	struct bundle_head head = {0};
	struct candidate *c = NULL;
	struct bundle *b = agent_bundle_verify(ap, a->body, a->len, a->etag, &reason, &head);
	const bool waited = b && ap->waiting && !memcmp(head.hash, bundle_head(ap->waiting->bundle)->hash, 32);

	ap->view.counts.bundles++;
	if (b && (reason = agent_bundle_candidate(ap, b, OAL_BUNDLE_STATE_APPLIED, a->len, &c))) {
		agent_bundle_refuse(ap, &head, a->etag, reason, a->len, "its feature program cannot run here");
		bundle_free(b);
	}
	if (c)
		schedule(ap, c, a);
	else if (!reason)
		wanted_again(ap);
	return c && !waited;
}

void agent_bundle_in_force(struct agent_ap *ap)
{
	const struct candidate *c = inference_in_force(ap->inference);
	const struct bundle_head *h;
	char hash[65];
	bool restored;

	if (!c || c->status.bundle == ap->in_force)
		return;
	h = bundle_head(c->bundle);
	restored = c->status.state == OAL_BUNDLE_STATE_RESTORED;
	ap->in_force = c->status.bundle;
	ap->unsaved = !restored;
	*(restored ? &ap->view.counts.restored : &ap->view.counts.applied) += 1;
	agent_hash_text(hash, h->hash);
	report(ap, hash, h->serial, (enum oal_bundle_state)c->status.state, OAL_BUNDLE_REASON_NONE);
}

static void activate(struct agent_ap *ap)
{
	struct candidate *c = ap->waiting;
	uint8_t *bytes = ap->waiting_bytes;

	ap->waiting = NULL;
	ap->waiting_bytes = NULL;
	drop_waiting(ap);
	agent_bundle_accept(ap, c, bytes, ap->waiting_len);
}

/* When the waiting bundle's time comes, looking again at least once a second: the clock may be set. */
uint64_t agent_bundle_run(struct agent_ap *ap, uint64_t now_us)
{
	const int64_t left_us = ap->waiting_until_us - (int64_t)clock_realtime_us();

	if (left_us > 0 && left_us <= FARTHEST_ACTIVATION_US)
		return now_us + ((uint64_t)left_us < SECOND_US ? (uint64_t)left_us : SECOND_US);
	activate(ap);
	return UINT64_MAX;
}

void agent_bundle_close(struct agent_ap *ap)
{
	drop_waiting(ap);
	free(ap->accepted_bytes);
}
#endif
