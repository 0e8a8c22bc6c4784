#ifdef HAVE_AGENT
#include "destination/destinations.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text_file.h"
#include "congestion/congestion.h"
#include "control/decision.h"
#include "destination/choices.h"
#include "model/inference.h"
#include "pipeline/pipeline.h"
#include "sender/sender_flow.h"

enum { PREFIX4 = 24, PREFIX6 = 64, V4_AT = 12, V4_BITS = 96, SWEEP = 64, NO_CLASS = 255, SECOND = 1000000 };

static const char *const names[] = OAL_CONGESTION_CONTROLS;

/* One policy. */
struct policy {
	enum oal_policy_mode mode; /* in force: the least of bundle, ceiling and kill switch */
	uint64_t bundle; /* in force; 0: none, or one that is not about destinations */
	uint16_t name; /* for rows */
	struct oal_policy numbers;
	struct bundle_law law;
};

struct destinations {
	struct destinations_config c;
	struct congestion *with; /* NULL: nothing is set */
	struct policy policies[PIPELINE_SLOTS];
	struct choices choices;
	uint64_t random, judged, unjudged, sets, set_errors, releases, explored;
};

int destinations_new(struct destinations **out, const struct destinations_config *config)
{
	struct destinations *d = calloc(1, sizeof *d);

	if (!d)
		return -ENOMEM;
	d->c = *config;
	d->random = config->seed | 1;
	if (choices_new(&d->choices, DESTINATIONS_MAX, config->seed)) {
		free(d);
		return -ENOMEM;
	}
	*out = d;
	return 0;
}

void destinations_free(struct destinations *d)
{
	if (!d)
		return;
	if (d->with)
		congestion_release_all(d->with);
	choices_free(&d->choices);
	free(d);
}

/* --- rows */

static uint64_t now_us(const struct destinations *d)
{
	return d->c.monotonic_ns() / 1000;
}

static void report(struct destinations *d, const struct policy *p, const struct choice *c, uint8_t class,
		   enum oal_rewrite_reason reason, uint8_t value)
{
	const struct oal_action_row row = {
		.policy = p->name,
		.kind = OAL_ACTION_KIND_CC,
		.subject = c->network & INT64_MAX,
		.backend = p->mode == OAL_POLICY_MODE_ENFORCE ? OAL_REWRITE_BACKEND_BPF : OAL_REWRITE_BACKEND_SHADOW,
		.bundle = p->bundle,
		.class = class,
		.reason = (uint8_t)reason,
		.value = value,
	};

	pipeline_row(d->c.pipeline, OAL_ACTION, &row);
}

/* --- choices */

static int set(struct destinations *d, const struct policy *p, struct choice *c)
{
	int ret = 0;

	if (p->mode == OAL_POLICY_MODE_ENFORCE)
		ret = congestion_choose(d->with, &c->prefix, names[c->value], DESTINATIONS_TTL_MS);
	c->set_us = now_us(d);
	d->sets++;
	d->set_errors += ret < 0;
	return ret;
}

static void give_up(struct destinations *d, struct choice *c, enum oal_rewrite_reason reason)
{
	const struct policy *p = &d->policies[c->slot];

	if (d->with && p->mode == OAL_POLICY_MODE_ENFORCE)
		congestion_release(d->with, &c->prefix);
	d->releases++;
	report(d, p, c, NO_CLASS, reason, OAL_CONGESTION_CONTROL_NONE);
	choices_remove(&d->choices, c);
}

static void give_up_all(struct destinations *d, unsigned slot, enum oal_rewrite_reason reason)
{
	unsigned i;

	for (i = 0; i < d->choices.touched; i++)
		if (d->choices.places[i].value && d->choices.places[i].slot == slot)
			give_up(d, &d->choices.places[i], reason);
}

/* Does this policy's choice go before that of another one? One in shadow takes nothing from one that enforces. */
static bool goes_before(const struct destinations *d, unsigned slot, unsigned other)
{
	const enum oal_policy_mode mode = d->policies[slot].mode, its = d->policies[other].mode;

	return mode != its ? mode > its : slot < other;
}

/* A choice of this policy for the network, for so long. Of two that may act alike, the lower number goes first. */
static void choose(struct destinations *d, unsigned slot, const struct congestion_prefix *prefix, uint64_t network,
		   uint8_t class, uint8_t value, bool explores)
{
	const struct policy *p = &d->policies[slot];
	struct choice *c = choices_find(&d->choices, prefix);
	bool changed;

	if (c && c->slot != slot) {
		if (!goes_before(d, slot, c->slot))
			return;
		give_up(d, c, OAL_REWRITE_REASON_RELEASED); /* by its own policy's mode: the kernel may have it */
		c = NULL;
	}
	if (c && explores && c->value == value)
		return;
	changed = !c || c->value != value;
	c = c ? c : choices_add(&d->choices, prefix);
	if (!c)
		return; /* counted there: the network goes on as it is */
	c->network = network;
	c->slot = (uint8_t)slot;
	c->value = value;
	c->explores = explores;
	c->until_us = now_us(d) + (explores ? DESTINATIONS_TTL_MS * UINT64_C(1000)
					    : p->numbers.cc_keep_s * (uint64_t)SECOND);
	if (!changed)
		return; /* the kernel has it, and it is set anew in time */
	if (set(d, p, c) < 0) {
		report(d, p, c, class, OAL_REWRITE_REASON_FAILED, OAL_CONGESTION_CONTROL_NONE);
		if (d->with)
			congestion_release(d->with, &c->prefix); /* what it had before */
		choices_remove(&d->choices, c);
		return;
	}
	report(d, p, c, class, explores ? OAL_REWRITE_REASON_EXPLORE : OAL_REWRITE_REASON_CLASS, value);
}

/* --- a session */

/* Its network as the kernel's map has it. False: none of its own: ::/64 has this host itself, and all of IPv4. */
static bool network_of(const struct sender_flow *f, struct congestion_prefix *p)
{
	static const uint8_t all_v4[PREFIX6 / 8];
	const unsigned bits = f->addr_len == 4 ? PREFIX4 : PREFIX6;

	*p = (struct congestion_prefix){ .bits = bits + (f->addr_len == 4 ? V4_BITS : 0) };
	if (f->addr_len == 4)
		p->address[10] = p->address[11] = 0xff;
	memcpy(p->address + (f->addr_len == 4 ? V4_AT : 0), f->far, bits / 8);
	return f->addr_len == 4 || memcmp(f->far, all_v4, sizeof all_v4);
}

/* xorshift64 */
static uint64_t draw(struct destinations *d)
{
	d->random ^= d->random << 13;
	d->random ^= d->random >> 7;
	return d->random ^= d->random << 17;
}

/* One of the policy's congestion controls, by lot; 0: not this time. */
static uint8_t explored(struct destinations *d, const struct policy *p)
{
	if (draw(d) % 1000 >= p->numbers.cc_explore_permille)
		return OAL_CONGESTION_CONTROL_NONE;
	return (uint8_t)p->law.values[draw(d) % p->law.n_values];
}

static void judge(struct destinations *d, unsigned slot, const struct congestion_prefix *prefix,
		  const struct oal_sender_session_row *row, uint64_t t_us)
{
	const struct policy *p = &d->policies[slot];
	struct choice *before = choices_find(&d->choices, prefix);
	const uint64_t network = (uint64_t)row->client_prefix;
	struct verdict v = { .class = NO_CLASS };
	bool known = row->cc != OAL_CONGESTION_CONTROL_NONE && row->bytes_acked >= p->numbers.min_flow_bytes;
	uint8_t value;

	known = known && decision_of_row(d->c.pipeline, slot, d->c.inferences[slot], OAL_SENDER_SESSION, row, t_us, &v);
	known = known && !v.features_missing && v.class < p->law.n_values;
	d->judged += known;
	d->unjudged += !known;
	if (!known)
		return;
	value = explored(d, p);
	if (value) {
		d->explored++;
		choose(d, slot, prefix, network, v.class, value, true);
		return;
	}
	value = v.confidence_permille < p->numbers.cc_share_permille ? OAL_CONGESTION_CONTROL_NONE
								     : (uint8_t)p->law.values[v.class];
	if (value)
		choose(d, slot, prefix, network, v.class, value, false);
	else if (before && before->slot == slot && before->explores)
		give_up(d, before, OAL_REWRITE_REASON_RELEASED);
}

void destinations_session(struct destinations *d, const struct sender_flow *flow,
			  const struct oal_sender_session_row *row, uint64_t t_us)
{
	struct congestion_prefix prefix;
	const bool has_network = network_of(flow, &prefix);
	unsigned i;

	for (i = 0; i < PIPELINE_SLOTS; i++) {
		if (d->policies[i].mode == OAL_POLICY_MODE_OFF)
			continue;
		if (has_network)
			judge(d, i, &prefix, row, t_us);
		else
			d->unjudged++;
	}
}

/* --- in force */

static bool is_killed(const struct destinations *d, const struct candidate *c)
{
	const struct agent_flags *flags = inference_flags(d->c.inferences[0]);

	return agent_flags_killed(flags) || agent_flags_policy_killed(flags, bundle_head(c->bundle)->of_policy) ||
	       text_file_may_be(d->c.kill_file);
}

static enum oal_policy_mode mode_of(const struct destinations *d, const struct candidate *c)
{
	enum oal_policy_mode mode;

	if (!c || !bundle_law_of_rows(bundle_law(c->bundle)) || !bundle_policy(c->bundle))
		return OAL_POLICY_MODE_OFF;
	mode = bundle_mode(c->bundle);
	if (mode > d->c.ceiling)
		mode = d->c.ceiling;
	if (mode == OAL_POLICY_MODE_ENFORCE && !d->with)
		mode = OAL_POLICY_MODE_SHADOW;
	return mode != OAL_POLICY_MODE_OFF && is_killed(d, c) ? OAL_POLICY_MODE_OFF : mode;
}

static enum oal_rewrite_reason reason_of(const struct destinations *d, const struct candidate *c)
{
	if (!c)
		return OAL_REWRITE_REASON_BUNDLE;
	return is_killed(d, c) ? OAL_REWRITE_REASON_KILLED : OAL_REWRITE_REASON_OFF;
}

/* Another bundle may bring another law; what the one before chose goes with it. */
static void follow(struct destinations *d, unsigned slot, const struct candidate *c)
{
	struct policy *p = &d->policies[slot];
	const enum oal_policy_mode mode = mode_of(d, c);
	const uint64_t bundle = mode == OAL_POLICY_MODE_OFF ? 0 : c->status.bundle;

	if (mode != p->mode || bundle != p->bundle)
		give_up_all(d, slot, mode == p->mode ? OAL_REWRITE_REASON_BUNDLE : reason_of(d, c));
	p->mode = mode;
	if (bundle && bundle != p->bundle) {
		p->name = pipeline_name(d->c.pipeline, bundle_head(c->bundle)->of_policy);
		p->numbers = *bundle_policy(c->bundle);
		p->law = *bundle_law(c->bundle);
	}
	p->bundle = bundle;
}

void destinations_set_with(struct destinations *d, struct congestion *with)
{
	unsigned i;

	for (i = 0; i < PIPELINE_SLOTS; i++) {
		if (d->policies[i].mode != OAL_POLICY_MODE_ENFORCE)
			continue;
		give_up_all(d, i, OAL_REWRITE_REASON_OFF);
		d->policies[i].mode = OAL_POLICY_MODE_SHADOW; /* until the next tick */
	}
	d->with = with;
}

/* --- a tick */

static void look_after(struct destinations *d, struct choice *c)
{
	const uint64_t now = now_us(d);

	if (now >= c->until_us)
		give_up(d, c, OAL_REWRITE_REASON_RELEASED);
	else if (now - c->set_us >= DESTINATIONS_RENEW_S * (uint64_t)SECOND &&
		 set(d, &d->policies[c->slot], c) < 0) /* the kernel has no such any more */
		give_up(d, c, OAL_REWRITE_REASON_FAILED);
}

void destinations_tick(struct destinations *d)
{
	unsigned i;

	for (i = 0; i < PIPELINE_SLOTS; i++)
		follow(d, i, d->c.inferences[i] ? inference_in_force(d->c.inferences[i]) : NULL);
	for (i = 0; i < SWEEP && d->choices.touched; i++) {
		struct choice *c = choices_next(&d->choices);

		if (c->value)
			look_after(d, c);
	}
}

/* Is a policy off only because of a kill switch? */
static bool any_killed(const struct destinations *d)
{
	unsigned i;

	for (i = 0; i < PIPELINE_SLOTS; i++) {
		const struct candidate *c = d->c.inferences[i] ? inference_in_force(d->c.inferences[i]) : NULL;

		if (c && bundle_law_of_rows(bundle_law(c->bundle)) && is_killed(d, c))
			return true;
	}
	return false;
}

void destinations_json(const struct destinations *d, struct json *j)
{
	static const char *const modes[] = OAL_POLICY_MODES;
	const char *before = "";
	unsigned i;

	json_add(j, "{\"ceiling\": \"%s\", \"killed\": %s, \"policies\": {", modes[d->c.ceiling],
		 any_killed(d) ? "true" : "false");
	for (i = 0; i < PIPELINE_SLOTS; i++)
		if (d->policies[i].bundle) {
			json_add(j, "%s", before);
			before = ", ";
			json_string(j, pipeline_name_of(d->c.pipeline, d->policies[i].name));
			json_add(j, ": \"%s\"", modes[d->policies[i].mode]);
		}
	json_add(j, "}");
	json_count(j, "networks", d->choices.used);
	json_count(j, "networks_refused", d->choices.refused);
	json_count(j, "sessions_judged", d->judged);
	json_count(j, "sessions_unjudged", d->unjudged);
	json_count(j, "explored", d->explored);
	json_count(j, "sets", d->sets);
	json_count(j, "set_errors", d->set_errors);
	json_count(j, "releases", d->releases);
	if (d->with) {
		json_add(j, ", \"kernel\": ");
		congestion_json(d->with, j);
	}
	json_add(j, "}");
}
#endif
