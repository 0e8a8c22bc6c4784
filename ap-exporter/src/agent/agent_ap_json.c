#ifdef HAVE_AGENT
/* What others see of an AP: sums, and its state as JSON. Another thread than the agent's: reads the AP's view. */
#include "agent/agent_ap.h"

#include "base/clock.h"
#include "base/json.h"

static struct agent_view view_of(struct agent_ap *ap)
{
	struct agent_view v;

	pthread_mutex_lock(&ap->shared->lock);
	v = ap->shown;
	pthread_mutex_unlock(&ap->shared->lock);
	return v;
}

void agent_ap_sum(struct agent_ap *ap, struct agent_view *sum, struct inference_stats *decided)
{
	const struct agent_view v = view_of(ap);

	for (unsigned i = 0; i < BUNDLE_MAX_POLICIES; i++) {
		struct inference_stats d;

		inference_stats(ap->policies[i].inference, &d);
		decided->decisions += d.decisions;
		decided->undecided += d.undecided;
		if (d.eval_max_ns > decided->eval_max_ns)
			decided->eval_max_ns = d.eval_max_ns;
	}
#define SUM(field) sum->field += v.field
	SUM(counts.polls);
	SUM(counts.bundles);
	SUM(counts.unchanged);
	SUM(counts.poll_errors);
	SUM(counts.applied);
	SUM(counts.restored);
	SUM(counts.stores);
	SUM(counts.store_errors);
	SUM(counts.control_changes);
	SUM(counts.given_up);
	SUM(reports.delivered);
	SUM(reports.errors);
	SUM(reports.dropped);
	SUM(peers.requests);
	SUM(peers.lists);
	SUM(peers.unchanged);
	SUM(peers.errors);
	SUM(peers.refused);
	SUM(renewal.renewed);
	SUM(renewal.errors);
	for (unsigned i = 0; i < OAL_N_BUNDLE_REASONS; i++)
		SUM(counts.rejects[i]);
#undef SUM
}

/* 63 and 64 bits do not survive as a number in every JSON reader: ids are hex, as the ETag begins. */
static void hash_json(const struct bundle_head *h, struct json *t)
{
	char hash[65];

	agent_hash_text(hash, h->hash);
	json_add(t, "\"bundle\": \"%s\"", hash);
}

/* NULL: none. */
static void short_json(const struct candidate *c, struct json *t)
{
	if (!c) {
		json_add(t, "\"bundle\": null");
		return;
	}
	hash_json(bundle_head(c->bundle), t);
	json_count(t, "version", bundle_head(c->bundle)->version);
}

static void bundle_json(const struct candidate *c, struct json *t)
{
	static const char *const sources[] = { "unknown", "registry", "online" };
	const struct bundle_head *h = bundle_head(c->bundle);

	hash_json(h, t);
	json_add(t, ", \"serial\": %lld, \"source\": \"%s\", \"model\": ", (long long)h->serial,
		 h->source < 3 ? sources[h->source] : sources[0]);
	json_string(t, h->model);
	json_count(t, "version", h->version);
	json_add(t, ", \"predicts\": %s", bundle_mode(c->bundle) == OAL_POLICY_MODE_OFF ? "false" : "true");
}

static void waiting_json(const struct agent_waiting *w, struct json *t)
{
	if (w->bundle[0])
		json_add(t, ", \"waiting\": {\"bundle\": \"%s\", \"until_us\": %lld}", w->bundle,
			 (long long)w->until_us);
}

/* Every policy that has a bundle in force, or one that waits, by name. This is the tick thread: what is in force stays
 * so meanwhile. */
static void policies_json(const struct agent_ap *ap, const struct agent_view *v, struct json *t)
{
	bool any = false;

	json_add(t, ", \"policies\": {");
	for (unsigned i = 0; i < BUNDLE_MAX_POLICIES; i++) {
		const struct candidate *c = inference_in_force(ap->policies[i].inference);

		if (!c && !v->waiting[i].bundle[0])
			continue;
		json_add(t, "%s\"%s\": {", any ? ", " : "",
			 c ? bundle_head(c->bundle)->of_policy : v->waiting[i].policy);
		any = true;
		short_json(c, t);
		waiting_json(&v->waiting[i], t);
		json_add(t, "}");
	}
	json_add(t, "}");
}

static void certificate_json(const struct agent_view *v, struct json *t)
{
	const int64_t left_us = v->renewal.not_after_us - (int64_t)clock_realtime_us(), day_us = INT64_C(86400000000);

	json_add(t, ", \"certificate\": {\"not_after_us\": %lld, \"days_left\": %lld",
		 (long long)v->renewal.not_after_us,
		 (long long)(left_us < 0 ? (left_us - day_us + 1) / day_us : left_us / day_us));
	json_count(t, "renewed", v->renewal.renewed);
	json_count(t, "errors", v->renewal.errors);
	json_add(t, ", \"last_error\": ");
	json_string(t, v->renewal.last_error);
	json_add(t, "}");
}

/* Bundle and what waits are rwnd-fair's; `policies` has all. */
void agent_ap_json(struct agent_ap *ap, struct json *t)
{
	const struct candidate *c = inference_in_force(ap->policies[0].inference);
	const struct agent_view v = view_of(ap);

	json_add(t, "{\"ap_id\": ");
	json_string(t, ap->ap_id);
	json_add(t, ", ");
	if (c)
		bundle_json(c, t);
	else
		json_add(t, "\"bundle\": null");
	waiting_json(&v.waiting[0], t);
	policies_json(ap, &v, t);
	if (v.renewal.not_after_us)
		certificate_json(&v, t);
	json_add(t, ", \"killed\": %s, \"killed_policies\": ", agent_killed(ap) ? "true" : "false");
	json_string(t, v.killed_policies);
	json_add(t, ", \"last_error\": ");
	json_string(t, v.last_error);
	json_add(t, "}");
}
#endif
