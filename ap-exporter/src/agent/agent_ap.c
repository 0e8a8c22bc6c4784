#ifdef HAVE_AGENT
#include "agent/agent_ap.h"

#include "base/clock.h"
#include "model/feature.h"
#include "base/log.h"
#include "base/state_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND_US UINT64_C(1000000)
/* A poll that brings no news should have waited: after one that did not, wait here. */
#define QUICK_US SECOND_US
/* At most ten bundles a second are verified, whatever the service sends. */
#define BUNDLE_GAP_US (SECOND_US / 10)
/* An activation time further ahead shows a wrong clock, here or there. */
#define FARTHEST_ACTIVATION_US (INT64_C(86400) * 1000000)
/* First polls are spread over this: many APs may start together. */
#define FIRST_POLL_US (SECOND_US / 5)
#define ANSWER_MARGIN_S 30 /* for connecting, and for the body */
#define CONTROL_FILE_MAX 16

/* --- small things */

static uint64_t random_below(struct agent_shared *s, uint64_t n)
{
	s->random ^= s->random >> 12;
	s->random ^= s->random << 25;
	s->random ^= s->random >> 27;
	return n ? s->random * UINT64_C(2685821657736338717) % n : 0;
}

/* Half of it to all of it: APs that lost the service together do not come back together. */
static uint64_t jitter(struct agent_shared *s, uint64_t us)
{
	return us - random_below(s, us / 2 + 1);
}

static uint64_t backoff_us(struct agent_shared *s, unsigned failures)
{
	const uint64_t most = s->config->retry_max_s * SECOND_US;
	uint64_t us = SECOND_US / 2;

	while (--failures && us < most)
		us *= 2;
	return jitter(s, us < most ? us : most);
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void to_hex(char out[65], const uint8_t hash[32])
{
	unsigned i;

	for (i = 0; i < 32; i++)
		snprintf(out + 2 * i, 3, "%02x", hash[i]);
}

static bool is_hash(const char *text)
{
	return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
}

__attribute__((format(printf, 2, 3))) static void note_error(struct agent_ap *ap, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(ap->view.last_error, sizeof ap->view.last_error, format, args);
	va_end(args);
}

/* --- what becomes of a bundle */

static void tell(struct agent_ap *ap, const char *hash, int64_t serial, enum oal_bundle_state state, enum oal_bundle_reason reason)
{
	struct report_state s = {.serial = serial, .state = state, .reason = reason, .ts_us = clock_realtime_us()};

	memcpy(s.bundle, hash, 65);
	report_put(&ap->report, &s);
}

static struct oal_bundle_status_row status_of(const struct bundle_head *h, enum oal_bundle_state state, enum oal_bundle_reason reason, size_t len)
{
	return (struct oal_bundle_status_row){.bundle = h->id, .source = h->source, .version = h->version, .serial = (uint64_t)h->serial, .state = (uint8_t)state,
					      .reason = (uint8_t)reason, .bytes = (uint32_t)len};
}

/* `etag`: what the service called it, for one whose bytes do not say who it is. */
static void refuse(struct agent_ap *ap, const struct bundle_head *head, const char *etag, enum oal_bundle_reason reason, size_t len, const char *why)
{
	struct bundle_head h = *head;
	struct oal_bundle_status_row row;
	char hash[65];

	to_hex(hash, h.hash);
	if (!h.id && is_hash(etag)) {
		memcpy(hash, etag, 65);
		sscanf(hash, "%16" SCNx64, &h.id);
		h.id &= INT64_MAX;
	}
	ap->view.counts.rejects[reason]++;
	note_error(ap, "bundle %.16s refused (%s): %s", hash, bundle_reason_name(reason), why);
	log_warn("AP %s: %s", ap->ap_id, ap->view.last_error);
	row = status_of(&h, OAL_BUNDLE_STATE_REJECTED, reason, len);
	inference_status(ap->inference, &row);
	if (h.id)
		tell(ap, hash, h.serial, OAL_BUNDLE_STATE_REJECTED, reason);
}

static void forget_waiting(struct agent_ap *ap)
{
	candidate_free(ap->waiting);
	free(ap->waiting_bytes);
	ap->waiting = NULL;
	ap->waiting_bytes = NULL;
	ap->view.waiting[0] = '\0';
	ap->view.waiting_until_us = 0;
}

/* Everything it needs to run is made here, off the tick path. */
static enum oal_bundle_reason make_candidate(struct agent_ap *ap, struct bundle *b, enum oal_bundle_state state, size_t len, struct candidate **out)
{
	struct candidate *c = calloc(1, sizeof *c);
	int r = c ? 0 : -ENOMEM;

	if (!r) {
		c->feature_hash = feature_program_id(bundle_program(b));
		c->status = status_of(bundle_head(b), state, OAL_BUNDLE_REASON_NONE, len);
		if (c->feature_hash != ap->program)
			r = candidate_features_new(&c->features, inference_pipeline(ap->inference), bundle_program(b));
	}
	if (r) {
		free(c);
		return r == -EINVAL ? OAL_BUNDLE_REASON_BAD_PROGRAM : OAL_BUNDLE_REASON_NO_MEMORY;
	}
	c->bundle = b;
	*out = c;
	return OAL_BUNDLE_REASON_NONE;
}

/* The tick thread may have it. Takes both. */
static void accept(struct agent_ap *ap, struct candidate *c, uint8_t *bytes, size_t len)
{
	ap->program = c->feature_hash;
	ap->accepted = c;
	free(ap->accepted_bytes);
	ap->accepted_bytes = bytes;
	ap->accepted_len = len;
	inference_offer(ap->inference, c);
}

/* All checks. A bundle; or NULL and the reason, which was told; or NULL and no reason: it is the one accepted last. */
static struct bundle *verify(struct agent_ap *ap, const uint8_t *bytes, size_t len, const char *etag, enum oal_bundle_reason *reason, struct bundle_head *head)
{
	const struct bundle_terms terms = {.keys = &ap->shared->keys, .verify = signature_verify_openssl, .ap_id = ap->ap_id, .site = ap->shared->site,
					   .in_force = ap->accepted ? ap->accepted->bundle : NULL};
	struct bundle *b = NULL;
	char why[200] = "";

	*reason = bundle_open(&b, bytes, len, &terms, head, why, sizeof why);
	if (!*reason && ap->accepted && !memcmp(head->hash, bundle_head(ap->accepted->bundle)->hash, 32)) {
		bundle_free(b);
		b = NULL;
	}
	if (*reason)
		refuse(ap, head, etag, *reason, len, why);
	return b;
}

/* --- from flash */

static void restore(struct agent_ap *ap)
{
	const char *folder = ap->shared->config->state_dir;
	enum oal_bundle_reason reason;
	struct bundle_head head = {0};
	struct candidate *c;
	struct bundle *b;
	uint8_t *bytes;
	size_t len;
	int r = state_file_read(folder, ap->ap_id, "bundle", OAL_SETTING_MAX_BUNDLE_BYTES, &bytes, &len);

	if (r == -ENOENT)
		return;
	if (r) {
		ap->view.counts.store_errors++;
		note_error(ap, "cannot read the bundle kept in %s: %s", folder, strerror(-r));
		log_warn("AP %s: %s", ap->ap_id, ap->view.last_error);
		return;
	}
	b = verify(ap, bytes, len, "", &reason, &head);
	if (b && (reason = make_candidate(ap, b, OAL_BUNDLE_STATE_RESTORED, len, &c))) {
		refuse(ap, &head, "", reason, len, "the program cannot run here");
		bundle_free(b);
		b = NULL;
	}
	if (!b) {
		free(bytes);
		return;
	}
	accept(ap, c, bytes, len);
	log_info("AP %s: bundle of serial %" PRId64 " (%s version %u) restored from %s", ap->ap_id, head.serial, head.model, head.version, folder);
}

void agent_ap_save(struct agent_ap *ap, uint64_t now_us)
{
	const char *folder = ap->shared->config->state_dir;
	int r;

	if (!ap->unsaved || !folder[0] || !ap->accepted || ap->accepted->status.bundle != ap->in_force)
		return;
	ap->saved_us = now_us;
	r = state_file_write(folder, ap->ap_id, "bundle", ap->accepted_bytes, ap->accepted_len);
	if (!r) {
		ap->unsaved = false;
		ap->view.counts.stores++;
		return;
	}
	if (!ap->view.counts.store_errors++)
		log_warn("AP %s: cannot keep the bundle in %s: %s; trying again every %u s", ap->ap_id, folder, strerror(-r), ap->shared->config->store_interval_s);
	note_error(ap, "cannot keep the bundle in %s: %s", folder, strerror(-r));
}

/* --- the kill switch */

static bool killed(const struct agent_ap *ap)
{
	return agent_flags_killed(inference_flags(ap->inference));
}

static void set_killed(struct agent_ap *ap, bool off)
{
	atomic_store_explicit(&inference_flags(ap->inference)->killed, off, memory_order_release);
}

/* At once; the file follows. */
static void hear_control(struct agent_ap *ap, enum http_control control)
{
	const bool off = control == HTTP_CONTROL_OFF;

	if (control == HTTP_CONTROL_UNSAID || off == killed(ap))
		return;
	set_killed(ap, off);
	ap->view.counts.control_changes++;
	ap->control_unsaved = ap->shared->config->state_dir[0];
	ap->control_save_at_us = 0;
	log_warn("AP %s: control is %s by the push service's kill switch", ap->ap_id, off ? "off" : "on again");
}

static uint64_t save_control(struct agent_ap *ap, uint64_t now_us)
{
	const char *folder = ap->shared->config->state_dir;
	const char *text = killed(ap) ? "off\n" : "on\n";
	int r;

	if (!ap->control_unsaved)
		return UINT64_MAX;
	if (now_us < ap->control_save_at_us)
		return ap->control_save_at_us;
	r = state_file_write(folder, ap->ap_id, "control", text, strlen(text));
	ap->control_unsaved = r;
	if (!r)
		return UINT64_MAX;
	if (!ap->view.counts.store_errors++)
		log_warn("AP %s: cannot keep the kill switch in %s: %s; trying again every second", ap->ap_id, folder, strerror(-r));
	note_error(ap, "cannot keep the kill switch in %s: %s", folder, strerror(-r));
	ap->control_save_at_us = now_us + SECOND_US;
	return ap->control_save_at_us;
}

/* A file that is there and does not say `on` means off: that can only take power away, and lasts until the service's first answer. */
static void restore_control(struct agent_ap *ap)
{
	const char *folder = ap->shared->config->state_dir;
	uint8_t *bytes = NULL;
	size_t len = 0;
	const int r = state_file_read(folder, ap->ap_id, "control", CONTROL_FILE_MAX, &bytes, &len);
	const bool on = !r && len == 3 && !memcmp(bytes, "on\n", 3), off = !r && len == 4 && !memcmp(bytes, "off\n", 4);

	free(bytes);
	if (r == -ENOENT || on)
		return;
	set_killed(ap, true);
	if (off) {
		log_warn("AP %s: control is off, as the push service's kill switch had it", ap->ap_id);
		return;
	}
	ap->view.counts.store_errors++;
	note_error(ap, "the kill switch kept in %s cannot be read: %s; control is off until the service is reached", folder, r ? strerror(-r) : "neither on nor off");
	log_warn("AP %s: %s", ap->ap_id, ap->view.last_error);
}

/* --- the long poll */

static void begin_poll(struct agent_ap *ap, uint64_t now_us)
{
	const struct config_agent *c = ap->shared->config;
	char match[96], hash[65], prefer[32], site[CONFIG_NAME + 16];
	/* What it has of the kill switch: a service that thinks otherwise answers at once. */
	const char *headers[6] = {"Accept: application/vnd.oal.bundle", prefer, killed(ap) ? "OAL-Control: off" : "OAL-Control: on"};
	unsigned n = 3;

	snprintf(prefer, sizeof prefer, "Prefer: wait=%u", c->wait_s);
	snprintf(site, sizeof site, "OAL-Site: %s", ap->shared->site);
	if (ap->accepted) { /* in force, or will be in a moment. What waits or was refused the service has from our reports */
		to_hex(hash, bundle_head(ap->accepted->bundle)->hash);
		snprintf(match, sizeof match, "If-None-Match: \"%s\"", hash);
		headers[n++] = match;
	}
	if (ap->shared->site[0])
		headers[n++] = site;
	headers[n] = NULL;
	ap->poll_began_us = now_us;
	if (http_get(ap->poll, headers, c->wait_s + ANSWER_MARGIN_S)) {
		ap->view.counts.polls++;
		return;
	}
	ap->view.counts.poll_errors++;
	note_error(ap, "no memory for a poll");
	ap->poll_at_us = now_us + backoff_us(ap->shared, ++ap->failures);
}

static void poll_failed(struct agent_ap *ap, const struct http_answer *a, uint64_t now_us)
{
	const uint64_t asked_us = a->retry_after_s * SECOND_US;
	const uint64_t wait_us = backoff_us(ap->shared, ++ap->failures);

	ap->view.counts.poll_errors++;
	if (a->status)
		note_error(ap, "the service answered %ld%s%.160s", a->status, a->error[0] ? ": " : "", a->error);
	else
		note_error(ap, "no answer: %.200s", a->error);
	if (ap->failures == 1) /* the first of a row; the others are counted */
		log_warn("AP %s: %s", ap->ap_id, ap->view.last_error);
	/* What the service asks for, and up to a tenth more. */
	ap->poll_at_us = now_us + (asked_us > wait_us ? asked_us + random_below(ap->shared, asked_us / 10 + 1) : wait_us);
}

/* A bundle that was refused, or that the AP had: a service that does not take note of reports is not asked all the time. */
static void no_news(struct agent_ap *ap, uint64_t now_us)
{
	ap->poll_at_us = now_us + backoff_us(ap->shared, ++ap->no_news);
}

/* A verified bundle: now, or at its time. */
static void take(struct agent_ap *ap, struct candidate *c, const struct http_answer *a)
{
	const int64_t ahead_us = a->activate_at_us ? a->activate_at_us - (int64_t)clock_realtime_us() : 0;
	const struct bundle_head *h = bundle_head(c->bundle);
	uint8_t *bytes = malloc(a->len ? a->len : 1);
	char hash[65];

	forget_waiting(ap);
	if (!bytes) {
		refuse(ap, h, "", OAL_BUNDLE_REASON_NO_MEMORY, a->len, "no memory to keep it");
		candidate_free(c);
		return;
	}
	memcpy(bytes, a->body, a->len);
	if (ahead_us > FARTHEST_ACTIVATION_US)
		log_warn("AP %s: a bundle is to be activated more than a day from now: one of the clocks is wrong; it is activated at once", ap->ap_id);
	if (ahead_us <= 0 || ahead_us > FARTHEST_ACTIVATION_US) {
		accept(ap, c, bytes, a->len);
		return;
	}
	ap->waiting = c;
	ap->waiting_bytes = bytes;
	ap->waiting_len = a->len;
	ap->waiting_until_us = ap->view.waiting_until_us = a->activate_at_us;
	to_hex(ap->view.waiting, h->hash);
	c->status.state = OAL_BUNDLE_STATE_WAITING;
	inference_status(ap->inference, &c->status);
	c->status.state = OAL_BUNDLE_STATE_APPLIED;
	to_hex(hash, h->hash);
	tell(ap, hash, h->serial, OAL_BUNDLE_STATE_WAITING, OAL_BUNDLE_REASON_NONE);
}

/* The one accepted last is wanted: whatever waited is not any more. */
static void wanted_again(struct agent_ap *ap)
{
	const struct bundle_head *h = bundle_head(ap->accepted->bundle);
	char hash[65];

	forget_waiting(ap);
	to_hex(hash, h->hash);
	if (ap->in_force == h->id) /* the service did not know */
		tell(ap, hash, h->serial, OAL_BUNDLE_STATE_APPLIED, OAL_BUNDLE_REASON_NONE);
}

static void bundle_arrived(struct agent_ap *ap, const struct http_answer *a, uint64_t now_us)
{
	enum oal_bundle_reason reason;
	struct bundle_head head = {0};
	struct candidate *c = NULL;
	struct bundle *b = verify(ap, a->body, a->len, a->etag, &reason, &head);
	const bool waited = b && ap->waiting && !memcmp(head.hash, bundle_head(ap->waiting->bundle)->hash, 32);

	ap->view.counts.bundles++;
	if (b && (reason = make_candidate(ap, b, OAL_BUNDLE_STATE_APPLIED, a->len, &c))) {
		refuse(ap, &head, a->etag, reason, a->len, "its feature program cannot run here");
		bundle_free(b);
	}
	if (c)
		take(ap, c, a);
	else if (!reason)
		wanted_again(ap);
	if (!c || waited) {
		no_news(ap, now_us);
	} else {
		ap->no_news = 0;
		ap->poll_at_us = now_us + BUNDLE_GAP_US;
	}
}

void agent_ap_answer(struct agent_ap *ap, const struct http_answer *a, uint64_t now_us)
{
	const bool was = killed(ap);

	hear_control(ap, a->control);
	if (a->oversized && a->status == 200) {
		char why[64];
		const struct bundle_head nobody = {0};

		snprintf(why, sizeof why, "more than %d bytes", HTTP_MAX_BODY);
		ap->view.counts.bundles++;
		refuse(ap, &nobody, a->etag, OAL_BUNDLE_REASON_OVERSIZED, HTTP_MAX_BODY, why);
		no_news(ap, now_us);
		return;
	}
	if (a->status != 200 && a->status != 204 && a->status != 304) {
		poll_failed(ap, a, now_us);
		return;
	}
	ap->failures = 0;
	if (a->status == 200) {
		bundle_arrived(ap, a, now_us);
		return;
	}
	ap->view.counts.unchanged++;
	/* News of the kill switch is why this one did not wait; switched to and fro, it is still no more than ten polls a second. */
	if (killed(ap) != was)
		ap->poll_at_us = now_us + BUNDLE_GAP_US;
	else
		ap->poll_at_us = now_us - ap->poll_began_us >= QUICK_US ? now_us : now_us + jitter(ap->shared, QUICK_US);
}

/* --- in force */

static void see_in_force(struct agent_ap *ap)
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
	to_hex(hash, h->hash);
	tell(ap, hash, h->serial, (enum oal_bundle_state)c->status.state, OAL_BUNDLE_REASON_NONE);
}

static void activate(struct agent_ap *ap)
{
	struct candidate *c = ap->waiting;
	uint8_t *bytes = ap->waiting_bytes;

	ap->waiting = NULL;
	ap->waiting_bytes = NULL;
	forget_waiting(ap);
	accept(ap, c, bytes, ap->waiting_len);
}

/* When the waiting bundle's time comes, looking again at least once a second: the clock may be set. */
static uint64_t run_waiting(struct agent_ap *ap, uint64_t now_us)
{
	const int64_t left_us = ap->waiting_until_us - (int64_t)clock_realtime_us();

	if (left_us > 0 && left_us <= FARTHEST_ACTIVATION_US)
		return now_us + sooner((uint64_t)left_us, SECOND_US);
	activate(ap);
	return UINT64_MAX;
}

static uint64_t run_save(struct agent_ap *ap, uint64_t now_us)
{
	const uint64_t at_us = ap->saved_us ? ap->saved_us + ap->shared->config->store_interval_s * SECOND_US : 0;

	if (!ap->unsaved || !ap->shared->config->state_dir[0])
		return UINT64_MAX;
	if (now_us < at_us)
		return at_us;
	agent_ap_save(ap, now_us);
	return ap->unsaved ? now_us + SECOND_US : UINT64_MAX;
}

uint64_t agent_ap_run(struct agent_ap *ap, uint64_t now_us)
{
	uint64_t next_us = UINT64_MAX;

	inference_reclaim(ap->inference);
	if (ap->waiting)
		next_us = sooner(next_us, run_waiting(ap, now_us));
	see_in_force(ap);
	if (!http_request_active(ap->poll)) {
		if (now_us >= ap->poll_at_us)
			begin_poll(ap, now_us);
		if (!http_request_active(ap->poll))
			next_us = sooner(next_us, ap->poll_at_us);
	}
	next_us = sooner(next_us, report_run(&ap->report, ap->boot_id, now_us));
	next_us = sooner(next_us, save_control(ap, now_us));
	next_us = sooner(next_us, run_save(ap, now_us));
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

/* When to try again after this answer: not before the service asks for it, nor before our own wait is over. */
static uint64_t retry_at_us(const struct http_answer *a, uint64_t wait_us, uint64_t now_us)
{
	const uint64_t asked_us = a->retry_after_s * SECOND_US;

	return now_us + (asked_us > wait_us ? asked_us : wait_us);
}

void agent_ap_reported(struct agent_ap *ap, const struct http_answer *a, uint64_t now_us)
{
	if (!report_answer(&ap->report, a, retry_at_us(a, backoff_us(ap->shared, ap->report.failures + 1), now_us)))
		return;
	if (a->status)
		note_error(ap, "the service answered a report with %ld%s%.150s", a->status, a->error[0] ? ": " : "", a->error);
	else
		note_error(ap, "a report could not be delivered: %.180s", a->error);
}

void agent_ap_peers_answer(struct agent_ap *ap, const struct http_answer *a, uint64_t now_us)
{
	char why[sizeof ap->view.last_error];

	if (agent_peers_answer(&ap->peers, a, retry_at_us(a, backoff_us(ap->shared, ap->peers.failures + 1), now_us), now_us, why, sizeof why))
		note_error(ap, "%s", why);
}

void agent_ap_run_last(struct agent_ap *ap, uint64_t now_us)
{
	see_in_force(ap);
	agent_ap_save(ap, now_us);
	ap->control_save_at_us = 0;
	save_control(ap, now_us);
}

void agent_ap_schedule(struct agent_ap *ap, uint64_t now_us)
{
	ap->poll_at_us = now_us + random_below(ap->shared, FIRST_POLL_US);
	ap->peers.at_us = ap->poll_at_us + random_below(ap->shared, FIRST_POLL_US);
}

/* --- begin and end */

static int read_pem(struct http_pem *pem, const char *pattern, const char *ap_id, char *err, size_t err_size)
{
	char path[CONFIG_FILE + sizeof ((struct agent_ap *)0)->ap_id];

	config_ap_path(path, sizeof path, pattern, ap_id);
	return http_pem_read(pem, path, err, err_size);
}

static void close_requests(struct http_request *r[4])
{
	for (unsigned i = 0; i < 4; i++)
		http_request_free(r[i]);
}

/* All the requests of an AP with this identity, or none: poll, report, peers, renewal. */
static int make_requests(struct agent_ap *ap, const struct http_identity *identity, bool renews, struct http_request *r[4], char *err, size_t err_size)
{
	static const struct {
		const char *path;
		size_t most;
	} kinds[4] = {{"bundle", HTTP_MAX_BODY}, {"status", HTTP_MAX_BODY}, {"neighbours", PEER_LIST_BYTES}, {"certificate", ISSUED_MAX_BYTES}};
	const bool wanted[4] = {true, true, ap->shared->config->neighbours_s && ap->shared->site[0], renews};
	const char *base = ap->shared->config->url;
	int len = (int)strlen(base);
	char url[AGENT_URL];

	while (len && base[len - 1] == '/')
		len--;
	for (unsigned i = 0; i < 4; i++) {
		r[i] = NULL;
		if (!wanted[i])
			continue;
		snprintf(url, sizeof url, "%.*s/v1/aps/%s/%s", len, base, ap->ap_id, kinds[i].path);
		r[i] = http_request_new(ap->shared->http, url, identity, ap, kinds[i].most, err, err_size);
		if (!r[i]) {
			while (i--)
				http_request_free(r[i]);
			return -ENOMEM;
		}
		if (i == 2)
			memcpy(ap->peers_url, url, sizeof url);
	}
	return 0;
}

static void take_requests(struct agent_ap *ap, struct http_request *r[4])
{
	ap->poll = r[0];
	ap->report.request = r[1];
	ap->peers.request = r[2];
	ap->renewal.request = r[3];
}

static int open_requests(struct agent_ap *ap, char *err, size_t err_size)
{
	const bool renews = renewal_begin(&ap->renewal, ap->cert.text, random_below(ap->shared, UINT64_MAX));
	struct http_request *r[4];
	int ret;

	ap->identity = (struct http_identity){&ap->shared->ca, &ap->cert, &ap->key};
	ret = make_requests(ap, &ap->identity, renews, r, err, err_size);
	if (ret)
		return ret;
	ap->peers = (struct agent_peers){.url = ap->peers_url, .ap_id = ap->ap_id, .site = ap->shared->site,
						   .every_us = ap->shared->config->neighbours_s * SECOND_US, .peers = inference_peers(ap->inference)};
	take_requests(ap, r);
	ap->view.renewal = ap->shown.renewal = ap->renewal.counts; /* its thread does not run yet */
	return 0;
}

static struct http_pem pem_of(const char *text)
{
	struct http_pem p = {strdup(text), strlen(text)};

	return p;
}

bool agent_ap_renewed(struct agent_ap *ap, const struct http_answer *a, uint64_t now_us)
{
	const unsigned failures = ap->renewal.failures < 12 ? ap->renewal.failures : 12;
	const uint64_t wait_us = jitter(ap->shared, SECOND_US << failures); /* from a second to about an hour */
	struct http_request *r[4], *old[4] = {ap->poll, ap->report.request, ap->peers.request, ap->renewal.request};
	struct http_pem ca, cert, key;
	struct issued issued;
	struct trusted_keys trusted;
	char *new_key, err[256];

	if (!renewal_answer(&ap->renewal, a, retry_at_us(a, wait_us, now_us), &issued, &new_key)) {
		note_error(ap, "the certificate is not renewed: %.200s", ap->renewal.counts.last_error);
		return false;
	}
	ca = pem_of(issued.ca);
	cert = pem_of(issued.certificate);
	key = (struct http_pem){new_key, strlen(new_key)};
	if (issued.trusted_keys[0] && !trusted_keys_parse(&trusted, issued.trusted_keys, strlen(issued.trusted_keys), ap->shared->config->trusted_keys, err, sizeof err))
		ap->shared->keys = trusted;
	issued_free(&issued);
	renewal_begin(&ap->renewal, cert.text ? cert.text : "", random_below(ap->shared, UINT64_MAX));
	if (!ca.text || !cert.text || make_requests(ap, &(struct http_identity){&ca, &cert, &key}, true, r, err, sizeof err)) {
		http_pem_free(&ca);
		http_pem_free(&cert);
		http_pem_free(&key);
		note_error(ap, "no memory for the new certificate: it is used from the next start on");
		return true; /* the files have it */
	}
	close_requests(old);
	http_pem_free(&ap->ca);
	http_pem_free(&ap->cert);
	http_pem_free(&ap->key);
	ap->ca = ca; /* the texts stay where the requests look for them */
	ap->cert = cert;
	ap->key = key;
	ap->identity = (struct http_identity){&ap->ca, &ap->cert, &ap->key};
	take_requests(ap, r);
	ap->report.sending = false; /* what was under way is sent again */
	ap->poll_at_us = now_us;
	log_info("AP %s: certificate renewed", ap->ap_id);
	return true;
}

int agent_ap_open(struct agent_ap *ap, struct agent_shared *shared, const char *ap_id, uint64_t boot_id, struct pipeline *pipeline, void (*wake)(void *),
		  void *ctx, char *err, size_t err_size)
{
	const struct config_agent *c = shared->config;
	int r;

	ap->shared = shared;
	ap->boot_id = boot_id;
	ap->program = pipeline_feature_id(pipeline);
	ap->renewal = (struct renewal){.config = shared->all, .ap_id = ap->ap_id};
	snprintf(ap->ap_id, sizeof ap->ap_id, "%s", ap_id);
	r = read_pem(&ap->cert, c->cert, ap_id, err, err_size);
	r = r ? r : read_pem(&ap->key, c->key, ap_id, err, err_size);
	if (r)
		return r;
	ap->inference = inference_new(pipeline, clock_monotonic_ns, wake, ctx);
	if (!ap->inference) {
		snprintf(err, err_size, "agent: out of memory for AP %s", ap_id);
		return -ENOMEM;
	}
	r = open_requests(ap, err, err_size);
	if (r)
		return r;
	if (c->state_dir[0]) {
		restore(ap);
		restore_control(ap);
	}
	return 0;
}

void agent_ap_inherit(struct agent_ap *ap, const struct agent_ap *earlier)
{
	const bool off = killed(earlier);

	if (off == killed(ap))
		return; /* as on flash, if it was kept there */
	set_killed(ap, off);
	ap->control_unsaved = ap->shared->config->state_dir[0];
}

void agent_ap_close_requests(struct agent_ap *ap)
{
	struct http_request *r[4] = {ap->poll, ap->report.request, ap->peers.request, ap->renewal.request}, *none[4] = {NULL};

	close_requests(r);
	take_requests(ap, none);
}

void agent_ap_free(struct agent_ap *ap)
{
	forget_waiting(ap);
	free(ap->accepted_bytes);
	inference_free(ap->inference);
	if (ap->renewal.key)
		explicit_bzero(ap->renewal.key, strlen(ap->renewal.key));
	free(ap->renewal.key);
	http_pem_free(&ap->ca);
	http_pem_free(&ap->cert);
	http_pem_free(&ap->key);
}
#endif
