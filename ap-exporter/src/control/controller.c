#ifdef HAVE_AGENT
#include "control/controller.h"

#include "control/control.h"
#include "control/law.h"
#include "control/observation.h"
#include "packet/flow_table.h"
#include "model/inference.h"
#include "base/json.h"
#include "pipeline/pipeline.h"
#include "wire/row_value.h"
#include "rewrite/rwnd.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct counts {
	uint64_t sets, set_errors, releases;
	uint32_t step_max_ns;
};

struct controller {
	struct controller_config c;
	struct control *control;
	const struct law_ops *law;
	uint64_t bundle, decided; /* in use: id of the bundle, number of the last decision */
	enum oal_policy_mode mode; /* in force */
	bool killed;
	uint64_t stepped_us, second;
	struct counts counts;
	struct oal_policy policy;
	struct observation seen; /* what a step takes in */
};

int controller_new(struct controller **out, const struct controller_config *config)
{
	struct controller *c = calloc(1, sizeof *c);
	int ret;

	if (!c)
		return -ENOMEM;
	c->c = *config;
	ret = observation_new(&c->seen, config->pipeline);
	c->law = &law_fair_window;
	if (!ret)
		ret = control_new(&c->control, c->seen.max_flows, c->seen.max_stations);
	if (ret) {
		controller_free(c);
		return ret;
	}
	*out = c;
	return 0;
}

void controller_free(struct controller *c)
{
	if (!c)
		return;
	if (c->c.rwnd)
		rwnd_release_all(c->c.rwnd);
	control_free(c->control);
	observation_free(&c->seen);
	free(c);
}

/* --- what a step takes in */

static uint32_t model_cwnd(const struct controller *c, const struct sum *w, uint16_t flow)
{
	const struct inference_last *last = inference_last(c->c.inference);
	const struct oal_flow_row *row = pipeline_flow_row(c->c.pipeline, flow);
	int64_t x[SUM_MAX_INPUTS], bytes;
	unsigned i;

	if (!w || !c->policy.window_model || last->verdict.bundle != c->bundle || !row->sent_pkts)
		return 0;
	for (i = 0; i < w->n_inputs; i++) {
		const struct oal_column *column =
			w->inputs[i] < 0 ? &oal_tables[OAL_FLOW].columns[-1 - w->inputs[i]] : NULL;

		if (!column)
			x[i] = last->features[w->inputs[i]];
		else
			x[i] = column->optional >= 0 && row->absent >> column->optional & 1 ? OAL_MISSING
											    : row_value(column, row);
	}
	bytes = sum_predict(w, x);
	return bytes < 0 ? 0 : bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes;
}

/* What the window model says of each flow. */
static void ask_model(struct controller *c, const struct sum *w)
{
	unsigned i;

	for (i = 0; i < c->seen.n_flows; i++)
		c->seen.flows[i].model_cwnd_bytes = model_cwnd(c, w, c->seen.flows[i].place);
}

/* --- what comes of it */

static enum oal_rewrite_backend backend(const struct controller *c)
{
	return c->mode == OAL_POLICY_MODE_ENFORCE ? rwnd_backend(c->c.rwnd) : OAL_REWRITE_BACKEND_SHADOW;
}

static void tell(struct controller *c, const struct control_action *a, uint8_t reason)
{
	const struct inference_last *last = inference_last(c->c.inference);
	const struct oal_rewrite_row row = {
		.flow_id = a->id & INT64_MAX,
		.backend = (uint8_t)backend(c),
		.mac = a->mac,
		.bundle = c->bundle,
		.class = last->number ? last->verdict.class : CONTROL_NO_CLASS,
		.reason = reason,
		.capacity_kbps = a->capacity_kbps,
		.share_kbps = a->share_kbps,
		.rate_kbps = a->rate_kbps,
		.cwnd_bytes = a->cwnd_bytes,
		.queue_us = a->queue_us,
		.window_bytes = reason == OAL_REWRITE_REASON_FAILED ? 0 : a->window_bytes,
	};

	pipeline_row(c->c.pipeline, OAL_REWRITE, &row);
}

static int carry_out(struct controller *c, const struct control_action *a)
{
	const struct flow *f = &pipeline_flow_table(c->c.pipeline)->flows[a->place];
	struct rwnd_flow flow = { .client_port = f->client_port, .server_port = f->server_port, .addr_len = f->addr_len,
				  .scale = f->scale[OBSERVATION_CLIENT], .mss_bytes = observation_mss(f) };

	if (!f->used ||
	    observation_flow_id(&c->seen, a->place) != a->id) /* gone, and its place taken: the clamp ends by itself */
		return 0;
	memcpy(flow.client_addr, f->client_addr, sizeof flow.client_addr);
	memcpy(flow.server_addr, f->server_addr, sizeof flow.server_addr);
	return a->window_bytes ? rwnd_set(c->c.rwnd, &flow, a->window_bytes, c->policy.ttl_us / 1000)
			       : rwnd_release(c->c.rwnd, &flow);
}

static void follow(struct controller *c, const struct control_action *actions, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++) {
		const int ret = c->mode == OAL_POLICY_MODE_ENFORCE ? carry_out(c, &actions[i]) : 0;

		c->counts.sets += actions[i].window_bytes != 0;
		c->counts.releases += !actions[i].window_bytes;
		c->counts.set_errors += ret < 0;
		if (actions[i].report)
			tell(c, &actions[i], ret < 0 ? OAL_REWRITE_REASON_FAILED : actions[i].reason);
	}
}

static void release_all(struct controller *c, enum oal_rewrite_reason reason)
{
	const struct control_action *actions;
	const unsigned n = control_release_all(c->control, reason, &actions);

	follow(c, actions, n);
}

/* --- in force */

/* Another bundle may bring another policy; what was learnt of the flows stays. */
static void follow_bundle(struct controller *c, const struct candidate *candidate)
{
	const struct oal_policy *p = bundle_policy(candidate->bundle);
	const struct bundle_law *l = bundle_law(candidate->bundle);
	const struct law_ops *law = law_find(l->name); /* bundle_open() takes only laws that there are */

	c->bundle = candidate->status.bundle;
	if (!p)
		return;
	if (law != c->law) /* clamps of one law are not the other's to follow */
		release_all(c, OAL_REWRITE_REASON_BUNDLE);
	c->law = law;
	c->policy = *p;
	control_policy(c->control, p);
	control_law(c->control, law, l->values, l->n_values);
}

static void settle_mode(struct controller *c, const struct candidate *candidate)
{
	const struct oal_policy *p = candidate ? bundle_policy(candidate->bundle) : NULL;
	enum oal_policy_mode mode = p ? bundle_mode(candidate->bundle) : OAL_POLICY_MODE_OFF;

	c->killed = agent_flags_killed(inference_flags(c->c.inference)) ||
		    (c->c.kill_file && c->c.kill_file[0] && !access(c->c.kill_file, F_OK));
	if (mode > c->c.ceiling)
		mode = c->c.ceiling;
	if (mode == OAL_POLICY_MODE_ENFORCE && !c->c.rwnd)
		mode = OAL_POLICY_MODE_SHADOW;
	if (c->killed)
		mode = OAL_POLICY_MODE_OFF;
	if (mode != c->mode) {
		release_all(c, c->killed ? OAL_REWRITE_REASON_KILLED
			       : p	 ? OAL_REWRITE_REASON_OFF
					 : OAL_REWRITE_REASON_BUNDLE);
		if (c->mode == OAL_POLICY_MODE_ENFORCE) /* those of flows that are gone, too */
			rwnd_release_all(c->c.rwnd);
		c->mode = mode;
	}
	if (candidate && candidate->status.bundle != c->bundle)
		follow_bundle(c, candidate);
}

/* --- a tick */

static void step(struct controller *c, uint64_t t_us, const struct candidate *candidate)
{
	const struct inference_last *last = inference_last(c->c.inference);
	const uint64_t start_ns = c->c.monotonic_ns();
	struct control_input in = {
		.t_us = t_us, .class = CONTROL_NO_CLASS, .shadow = c->mode != OAL_POLICY_MODE_ENFORCE};
	const struct control_action *actions;
	uint64_t took_ns;
	unsigned n;

	observation_take(&c->seen, t_us);
	ask_model(c, bundle_window(candidate->bundle));
	if (last->number && last->verdict.bundle == c->bundle) {
		in.predicted_us = last->verdict.instant_us;
		in.class = last->verdict.class;
		in.congested_permille = last->verdict.congested_permille;
	}
	in.backlog_bytes = observation_shared_backlog(&c->seen);
	in.stations = c->seen.stations;
	in.n_stations = c->seen.n_stations;
	in.flows = c->seen.flows;
	in.n_flows = c->seen.n_flows;
	n = control_step(c->control, &in, &actions);
	follow(c, actions, n);
	c->stepped_us = t_us;
	c->decided = last->number;
	took_ns = c->c.monotonic_ns() - start_ns;
	if (took_ns > c->counts.step_max_ns)
		c->counts.step_max_ns = took_ns > UINT32_MAX ? UINT32_MAX : (uint32_t)took_ns;
}

static void report(struct controller *c)
{
	struct control_stats s;
	struct action_stats data_path = { 0 };
	struct oal_control_row row;

	control_stats(c->control, &s);
	if (c->c.rwnd)
		rwnd_stats(c->c.rwnd, &data_path);
	row = (struct oal_control_row){
		.backend = (uint8_t)(c->c.rwnd ? rwnd_backend(c->c.rwnd) : OAL_REWRITE_BACKEND_NONE),
		.mode = (uint8_t)c->mode,
		.killed = c->killed,
		.clamps = s.clamps,
		.capacity_kbps = s.capacity_kbps,
		.queue_us = s.queue_us,
		.steps = s.steps,
		.sets = c->counts.sets,
		.set_errors = c->counts.set_errors,
		.releases = c->counts.releases,
		.guard_reverts = s.guard_reverts,
		.acks_seen = data_path.packets_seen,
		.acks_clamped = data_path.packets_changed,
		.acks_skipped = data_path.packets_skipped,
		.step_max_ns = c->counts.step_max_ns,
	};
	pipeline_row(c->c.pipeline, OAL_CONTROL, &row);
	c->counts.step_max_ns = 0;
}

void controller_tick(struct controller *c, uint64_t t_us)
{
	const struct candidate *candidate = inference_in_force(c->c.inference);
	const bool first = !c->second;

	if (c->c.rwnd)
		rwnd_poll(c->c.rwnd, c->c.monotonic_ns() / 1000);
	settle_mode(c, candidate);
	if (c->mode != OAL_POLICY_MODE_OFF) {
		const bool due = t_us < c->stepped_us || t_us - c->stepped_us >= c->policy.step_us;

		/* A prediction that asks for clamps is followed at once. */
		if (due || (inference_last(c->c.inference)->number != c->decided &&
			    inference_last(c->c.inference)->verdict.class >= c->policy.act_class))
			step(c, t_us, candidate);
	}
	if (t_us / 1000000 == c->second)
		return;
	c->second = t_us / 1000000;
	if (!first && candidate)
		report(c);
}

void controller_rwnd(struct controller *c, struct rwnd *rwnd)
{
	release_all(c, OAL_REWRITE_REASON_OFF);
	if (c->mode == OAL_POLICY_MODE_ENFORCE) /* until the next tick: there may be nothing to enforce with */
		c->mode = OAL_POLICY_MODE_SHADOW;
	c->c.rwnd = rwnd;
}

void controller_json(const struct controller *c, struct json *t)
{
	static const char *const modes[] = OAL_POLICY_MODES, *const backends[] = OAL_REWRITE_BACKENDS;
	struct control_stats s;

	control_stats(c->control, &s);
	json_add(t, "{\"mode\": \"%s\", \"ceiling\": \"%s\", \"killed\": %s, \"backend\": \"%s\", \"policy\": ",
		 modes[c->mode], modes[c->c.ceiling], c->killed ? "true" : "false",
		 backends[c->c.rwnd ? rwnd_backend(c->c.rwnd) : OAL_REWRITE_BACKEND_NONE]);
	json_string(t, c->policy.name);
	json_count(t, "policy_version", c->policy.version);
	json_count(t, "clamps", s.clamps);
	json_count(t, "capacity_kbps", s.capacity_kbps);
	json_count(t, "queue_us", s.queue_us);
	json_count(t, "target_us", s.target_us);
	json_count(t, "steps", s.steps);
	json_count(t, "sets", c->counts.sets);
	json_count(t, "set_errors", c->counts.set_errors);
	json_count(t, "releases", c->counts.releases);
	json_count(t, "guard_reverts", s.guard_reverts);
	if (c->c.rwnd) {
		json_add(t, ", \"data_path\": ");
		rwnd_json(c->c.rwnd, t);
	}
	json_add(t, "}");
}
#endif
