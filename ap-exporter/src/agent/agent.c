#ifdef HAVE_AGENT
#include "agent/agent.h"

#include "agent/agent_ap.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/json.h"
#include "base/state_file.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

enum {
	STACK = 256 * 1024, /* bytes: musl's own 128 KiB are few for TLS, glibc's 8 MiB are many */
	SAVE_PATIENCE_S = 2, /* how long a reload waits for flash */
	LONGEST_WAIT_MS = 60000, /* nothing is due: look again after a minute all the same */
};

struct agent {
	struct agent_shared shared;
	struct agent_ap **aps;
	unsigned n;
	const struct agent *previous; /* until the start; NULL: none */
	pthread_t thread;
	bool running;
	atomic_bool stop, save, renewed;
	/* agent_save() waits for `saved` to change: by the monotonic clock, which nobody sets back. */
	pthread_mutex_t save_lock;
	pthread_cond_t saved_changed;
	unsigned saved; /* times */
};

void agent_wake(void *agent)
{
	http_wake(((struct agent *)agent)->shared.http);
}

/* --- the thread */

static void answer(struct agent *a, struct http_request *r, const struct http_answer *got, uint64_t now_us)
{
	if (agent_ap_answer(http_request_owner(r), r, got, now_us))
		atomic_store(&a->renewed, true);
}

static void save_all(struct agent *a, uint64_t now_us)
{
	for (unsigned i = 0; i < a->n; i++)
		agent_ap_save(a->aps[i], now_us);
}

static void *run(void *ctx)
{
	struct agent *a = ctx;

	while (!atomic_load(&a->stop)) {
		const struct http_answer *got;
		struct http_request *r;
		uint64_t now_us = clock_monotonic_us(), next_us = UINT64_MAX;

		while ((r = http_done(a->shared.http, &got)))
			answer(a, r, got, now_us);
		for (unsigned i = 0; i < a->n; i++) {
			const uint64_t at_us = agent_ap_run(a->aps[i], now_us);

			next_us = at_us < next_us ? at_us : next_us;
		}
		if (atomic_exchange(&a->save, false)) {
			save_all(a, now_us);
			pthread_mutex_lock(&a->save_lock);
			a->saved++;
			pthread_cond_signal(&a->saved_changed);
			pthread_mutex_unlock(&a->save_lock);
		}
		if (next_us == UINT64_MAX || next_us > now_us + LONGEST_WAIT_MS * UINT64_C(1000))
			http_wait(a->shared.http, LONGEST_WAIT_MS);
		else
			http_wait(a->shared.http, next_us > now_us ? (int)((next_us - now_us + 999) / 1000) : 0);
	}
	for (unsigned i = 0; i < a->n; i++)
		agent_ap_run_last(a->aps[i], clock_monotonic_us());
	return NULL;
}

/* --- begin and end */

int agent_check(const struct config *c, char *err, size_t err_size)
{
	const struct config_agent *g = &c->agent;
	struct trusted_keys keys;
	struct http_pem pem = { 0 };
	const char *const files[] = { g->ca, strstr(g->cert, "%s") ? "" : g->cert, strstr(g->key, "%s") ? "" : g->key };
	int r = trusted_keys_read(&keys, g->trusted_keys, err, err_size);

	for (size_t i = 0; !r && i < sizeof files / sizeof files[0]; i++) {
		if (!files[i][0])
			continue; /* one for each AP: its start says which is missing */
		r = http_pem_read(&pem, files[i], err, err_size);
		http_pem_free(&pem);
	}
	return !r && g->state_dir[0] ? state_file_check(g->state_dir, err, err_size) : r;
}

int agent_new(struct agent **out, const struct config *c, const struct agent *previous, char *err, size_t err_size)
{
	struct agent *a = calloc(1, sizeof *a);
	pthread_condattr_t attr;
	int r;

	if (!a) {
		snprintf(err, err_size, "agent: out of memory");
		return -ENOMEM;
	}
	a->previous = previous;
	a->shared.config = &c->agent;
	a->shared.all = c;
	a->shared.site = c->exporter.site;
	pthread_mutex_init(&a->shared.lock, NULL);
	pthread_mutex_init(&a->save_lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&a->saved_changed, &attr);
	pthread_condattr_destroy(&attr);
	if (getrandom(&a->shared.random, sizeof a->shared.random, 0) != sizeof a->shared.random)
		a->shared.random = clock_realtime_us();
	a->shared.random |= 1;
	r = trusted_keys_read(&a->shared.keys, c->agent.trusted_keys, err, err_size);
	r = r ? r : http_pem_read(&a->shared.ca, c->agent.ca, err, err_size);
	r = r ? r : http_new(&a->shared.http, err, err_size);
	if (r)
		agent_free(a);
	else
		*out = a;
	return r;
}

int agent_add(struct agent *a, const char *ap_id, uint64_t boot_id, struct inference *const *f, struct peers *peers,
	      char *err, size_t err_size)
{
	struct agent_ap **more = realloc(a->aps, (a->n + 1) * sizeof *more), *ap;

	if (more)
		a->aps = more;
	ap = more ? calloc(1, sizeof *ap) : NULL;
	if (!ap) {
		snprintf(err, err_size, "agent: out of memory for AP %s", ap_id);
		return -ENOMEM;
	}
	a->aps[a->n++] = ap; /* freed with the others, also half open */
	int r = agent_ap_open(ap, &a->shared, ap_id, boot_id, f, peers, err, err_size);

	for (unsigned i = 0; !r && a->previous && i < a->previous->n; i++)
		if (!strcmp(a->previous->aps[i]->ap_id, ap_id))
			agent_ap_inherit(ap, a->previous->aps[i]);
	return r;
}

int agent_start(struct agent *a, char *err, size_t err_size)
{
	pthread_attr_t attr;
	sigset_t all, old;
	int r;

	a->previous = NULL;
	for (unsigned i = 0; i < a->n; i++)
		agent_ap_schedule(a->aps[i], clock_monotonic_us());
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	r = pthread_create(&a->thread, &attr, run, a);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r)
		snprintf(err, err_size, "agent: cannot start its thread: %s", strerror(r));
	a->running = !r;
	return -r;
}

void agent_save(struct agent *a)
{
	struct timespec until;
	unsigned before;
	int late = 0;

	if (!a || !a->running)
		return;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += SAVE_PATIENCE_S;
	pthread_mutex_lock(&a->save_lock);
	before = a->saved;
	atomic_store(&a->save, true);
	agent_wake(a);
	while (a->saved == before && !late)
		late = pthread_cond_timedwait(&a->saved_changed, &a->save_lock, &until);
	pthread_mutex_unlock(&a->save_lock);
}

bool agent_renewed(struct agent *a)
{
	return atomic_exchange(&a->renewed, false);
}

void agent_stop(struct agent *a)
{
	if (!a || !a->running)
		return;
	atomic_store(&a->stop, true);
	agent_wake(a);
	pthread_join(a->thread, NULL);
	a->running = false;
}

/* Sums over the APs, then each of them. */
size_t agent_json(struct agent *a, char *buf, size_t size)
{
	struct json t = { buf, size, 0 };
	struct agent_view sum = { 0 };
	struct inference_stats decided = { 0 };

	for (unsigned i = 0; i < a->n; i++)
		agent_ap_sum(a->aps[i], &sum, &decided);
	json_add(&t, "{\"url\": ");
	json_string(&t, a->shared.config->url);
	json_count(&t, "polls", sum.counts.polls);
	json_count(&t, "bundles", sum.counts.bundles);
	json_count(&t, "unchanged", sum.counts.unchanged);
	json_count(&t, "poll_errors", sum.counts.poll_errors);
	json_count(&t, "applied", sum.counts.applied);
	json_count(&t, "restored", sum.counts.restored);
	json_count(&t, "reports", sum.reports.delivered);
	json_count(&t, "report_errors", sum.reports.errors);
	json_count(&t, "reports_dropped", sum.reports.dropped);
	json_count(&t, "stores", sum.counts.stores);
	json_count(&t, "store_errors", sum.counts.store_errors);
	json_count(&t, "renewed", sum.renewal.renewed);
	json_count(&t, "renewal_errors", sum.renewal.errors);
	json_count(&t, "control_changes", sum.counts.control_changes);
	json_count(&t, "given_up", sum.counts.given_up);
	json_count(&t, "decisions", decided.decisions);
	json_count(&t, "undecided", decided.undecided);
	json_count(&t, "eval_max_ns", decided.eval_max_ns);
	json_add(&t, ", \"neighbours\": {\"asked\": %u", sum.peers.requests);
	json_count(&t, "told", sum.peers.lists);
	json_count(&t, "unchanged", sum.peers.unchanged);
	json_count(&t, "errors", sum.peers.errors);
	json_count(&t, "refused", sum.peers.refused);
	json_add(&t, "}, \"rejects\": {");
	for (unsigned i = OAL_BUNDLE_REASON_NONE + 1; i < OAL_N_BUNDLE_REASONS; i++)
		json_add(&t, "%s\"%s\": %u", i > 1 ? ", " : "", bundle_reason_name((enum oal_bundle_reason)i),
			 sum.counts.rejects[i]);
	json_add(&t, "}, \"aps\": [");
	for (unsigned i = 0; i < a->n; i++) {
		json_add(&t, i ? ", " : "");
		agent_ap_json(a->aps[i], &t);
	}
	json_add(&t, "]}");
	return json_len(&t);
}

void agent_free(struct agent *a)
{
	if (!a)
		return;
	agent_stop(a);
	for (unsigned i = 0; i < a->n; i++)
		agent_identity_close(a->aps[i]);
	http_free(a->shared.http);
	for (unsigned i = 0; i < a->n; i++) {
		agent_ap_free(a->aps[i]);
		free(a->aps[i]);
	}
	free(a->aps);
	http_pem_free(&a->shared.ca);
	pthread_cond_destroy(&a->saved_changed);
	pthread_mutex_destroy(&a->save_lock);
	pthread_mutex_destroy(&a->shared.lock);
	free(a);
}
#endif
