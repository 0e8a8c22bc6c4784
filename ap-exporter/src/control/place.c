#ifdef HAVE_AGENT
#include "control/place.h"

#include <string.h>

#include "control/law.h"
#include "feature/feature_slot.h"
#include "mark/mark_stations.h"
#include "model/inference.h"
#include "packet/flow_table.h"
#include "pipeline/pipeline.h"
#include "rewrite/rwnd.h"
#include "wire/row_value.h"

int place_new(struct place *p, unsigned number, struct inference *inference, const struct place_shared *shared)
{
	p->number = number;
	p->inference = inference;
	p->law = &law_fair_window;
	return control_new(&p->control, shared->seen.max_flows, shared->seen.max_stations);
}

void place_free(struct place *p)
{
	control_free(p->control);
}

/* --- what a step takes in */

static uint32_t model_cwnd(const struct place *p, const struct pipeline *from, const struct sum *w,
                           uint16_t flow)
{
	const struct inference_last *last = inference_last(p->inference);
	const struct oal_flow_row *row = pipeline_flow_row(from, flow);
	int64_t x[SUM_MAX_INPUTS], bytes;
	unsigned i;

	if (!w || !p->policy.window_model || last->verdict.bundle != p->bundle || !row->sent_pkts)
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

/* What the bundle's window model says of each flow. */
static void query_model(const struct place *p, struct place_shared *shared, const struct sum *w)
{
	struct observation *o = &shared->seen;
	unsigned i;

	for (i = 0; i < o->n_flows; i++)
		o->flows[i].model_cwnd_bytes = model_cwnd(p, shared->pipeline, w, o->flows[i].place);
}

/* --- what comes of it */

static enum oal_action_kind kind_of(const struct law_ops *law)
{
	return law->marks ? OAL_ACTION_KIND_MARK : OAL_ACTION_KIND_RWND;
}

enum oal_action_kind place_kind(const struct place *p)
{
	return kind_of(p->law);
}

static enum oal_rewrite_backend backend(const struct place *p, const struct place_shared *shared)
{
	const struct effects *e = &shared->effects[place_kind(p)];

	return p->mode == OAL_POLICY_MODE_ENFORCE ? e->ops->backend(e->self) : OAL_REWRITE_BACKEND_SHADOW;
}

/* What an action is, in its kind's own unit; 0: to be released. */
static uint64_t value_of(const struct place *p, const struct control_action *a)
{
	return p->law->marks ? a->marks : a->window_bytes;
}

static void write_row(const struct place *p, struct place_shared *shared, const struct control_action *a,
		      uint8_t reason)
{
	const struct inference_last *last = inference_last(p->inference);
	const struct oal_action_row row = {
		.policy = p->name,
		.kind = (uint8_t)place_kind(p),
		.subject = a->id & INT64_MAX,
		.backend = (uint8_t)backend(p, shared),
		.mac = a->mac,
		.bundle = p->bundle,
		.class = last->number ? last->verdict.class : CONTROL_NO_CLASS,
		.reason = reason,
		.value = reason == OAL_REWRITE_REASON_FAILED ? 0 : value_of(p, a),
		.capacity_kbps = a->capacity_kbps,
		.share_kbps = a->share_kbps,
		.rate_kbps = a->rate_kbps,
		.cwnd_bytes = a->cwnd_bytes,
		.queue_us = a->queue_us,
	};

	pipeline_row(shared->pipeline, OAL_ACTION, &row);
}

/* Of data in which direction are the flows? */
static unsigned direction_of(const struct place *p)
{
	return p->law->uplink ? OBSERVATION_UP : OBSERVATION_DOWN;
}

static int want(const struct place *p, struct place_shared *shared, const struct control_action *a, uint16_t place,
		const void *key)
{
	const struct effects_subject subject = {place, a->id, key};

	return effects_want(&shared->effects[place_kind(p)], p->number, &subject, value_of(p, a), p->policy.ttl_us,
			    shared->monotonic_ns() / 1000);
}

static int set_marks(const struct place *p, struct place_shared *shared, const struct control_action *a)
{
	const uint32_t interval_us = p->policy.mark_interval_us;
	const struct mark_station key = mark_station_of(
		a->mac, !interval_us			     ? MARK_USUAL_INTERVAL_US
			: interval_us < MARK_MIN_INTERVAL_US ? MARK_MIN_INTERVAL_US
							     : interval_us);

	return want(p, shared, a, a->place, &key);
}

static int set_window(const struct place *p, struct place_shared *shared, const struct control_action *a)
{
	const struct flow *f = &pipeline_flow_table(shared->pipeline)->flows[a->place];
	const unsigned direction = direction_of(p);
	struct rwnd_flow flow = {
		.client_port = f->client_port,
		.server_port = f->server_port,
		.addr_len = f->addr_len,
		.scale = f->scale[observation_receiver(direction)],
		.direction = direction == OBSERVATION_UP ? RWND_DOWN : RWND_UP, /* of the ACKs */
		.mss_bytes = observation_mss(f, direction),
	};

	/* It is gone, and its place taken: the clamp ends by itself. */
	if (!f->used || observation_flow_id(&shared->seen, a->place) != a->id)
		return 0;
	memcpy(flow.client_addr, f->client_addr, sizeof flow.client_addr);
	memcpy(flow.server_addr, f->server_addr, sizeof flow.server_addr);
	/* A flow's two windows are two subjects: they are met with those of other policies each for itself. */
	return want(p, shared, a, (uint16_t)(flow.direction * shared->seen.max_flows + a->place), &flow);
}

static int carry_out(const struct place *p, struct place_shared *shared, const struct control_action *a)
{
	return p->law->marks ? set_marks(p, shared, a) : set_window(p, shared, a);
}

static void follow(struct place *p, struct place_shared *shared, const struct control_action *actions, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++) {
		const bool done = !actions[i].row_only;
		const int ret =
			done && p->mode == OAL_POLICY_MODE_ENFORCE ? carry_out(p, shared, &actions[i]) : 0;

		p->sets += done && value_of(p, &actions[i]);
		p->releases += done && !value_of(p, &actions[i]);
		p->set_errors += ret < 0;
		if (actions[i].report)
			write_row(p, shared, &actions[i], ret < 0 ? OAL_REWRITE_REASON_FAILED : actions[i].reason);
	}
}

void place_release_all(struct place *p, struct place_shared *shared, enum oal_rewrite_reason reason)
{
	const struct control_action *actions;
	const unsigned n = control_release_all(p->control, reason, &actions);

	follow(p, shared, actions, n);
}

/* --- in force */

/* What a bundle may do here. NULL: nothing, as of one for hosts, whose values are no windows. */
static const struct oal_policy *policy_of(const struct candidate *candidate)
{
	if (!candidate || bundle_law_of_rows(bundle_law(candidate->bundle)))
		return NULL;
	return bundle_policy(candidate->bundle);
}

/* Another bundle may bring other numbers, and another law; what was learnt of the flows stays. */
static void follow_bundle(struct place *p, struct place_shared *shared, const struct candidate *candidate)
{
	const struct oal_policy *policy = policy_of(candidate);
	const struct bundle_law *law = bundle_law(candidate->bundle);
	const struct law_ops *ops = law_find(law->name); /* bundle_open() takes only laws that there are */

	p->bundle = candidate->status.bundle;
	p->name = pipeline_name(shared->pipeline, bundle_head(candidate->bundle)->of_policy);
	if (!policy)
		return;
	if (ops != p->law) /* clamps of one law are not the other's to follow */
		place_release_all(p, shared, OAL_REWRITE_REASON_BUNDLE);
	p->law = ops;
	p->policy = *policy;
	control_policy(p->control, policy);
	control_law(p->control, ops, law->values, law->n_values);
}

/* All policies, or the one that the bundle is of. */
static bool is_killed(const struct place_shared *shared, const struct candidate *candidate)
{
	return shared->killed || (candidate && shared->flags &&
				  agent_flags_policy_killed(shared->flags, bundle_head(candidate->bundle)->of_policy));
}

static enum oal_policy_mode mode_of(const struct place_shared *shared, const struct candidate *candidate)
{
	const struct oal_policy *policy = policy_of(candidate);
	const enum oal_action_kind kind =
		policy ? kind_of(law_find(bundle_law(candidate->bundle)->name)) : OAL_ACTION_KIND_NONE;
	enum oal_policy_mode mode = policy ? bundle_mode(candidate->bundle) : OAL_POLICY_MODE_OFF;

	if (mode > shared->ceilings[kind])
		mode = shared->ceilings[kind];
	if (mode == OAL_POLICY_MODE_ENFORCE && !shared->effects[kind].self)
		mode = OAL_POLICY_MODE_SHADOW;
	return is_killed(shared, candidate) ? OAL_POLICY_MODE_OFF : mode;
}

static enum oal_rewrite_reason reason_of(const struct place_shared *shared, const struct candidate *candidate)
{
	if (is_killed(shared, candidate))
		return OAL_REWRITE_REASON_KILLED;
	return policy_of(candidate) ? OAL_REWRITE_REASON_OFF : OAL_REWRITE_REASON_BUNDLE;
}

void place_update(struct place *p, struct place_shared *shared, const struct candidate *candidate, bool alone)
{
	const enum oal_policy_mode mode = mode_of(shared, candidate);

	if (mode != p->mode) {
		place_release_all(p, shared, reason_of(shared, candidate));
		if (p->mode == OAL_POLICY_MODE_ENFORCE) /* those of flows that are gone, too */
			effects_give_up(&shared->effects[place_kind(p)], p->number, alone);
		p->mode = mode;
	}
	if (!candidate)
		p->bundle = 0;
	else if (candidate->status.bundle != p->bundle)
		follow_bundle(p, shared, candidate);
}

/* --- a tick */

static void step(struct place *p, struct place_shared *shared, uint64_t t_us, const struct candidate *candidate)
{
	const struct inference_last *last = inference_last(p->inference);
	const uint64_t start_ns = shared->monotonic_ns();
	struct control_input in = {
		.t_us = t_us,
		.class = CONTROL_NO_CLASS,
		.shadow = p->mode != OAL_POLICY_MODE_ENFORCE,
	};
	const struct control_action *actions;
	uint64_t took_ns;
	unsigned n;

	observation_read(&shared->seen, t_us, direction_of(p));
	query_model(p, shared, bundle_window(candidate->bundle));
	if (last->number && last->verdict.bundle == p->bundle) {
		in.predicted_us = last->verdict.instant_us;
		in.class = last->verdict.class;
		in.congested_permille = last->verdict.congested_permille;
	}
	in.backlog_bytes = observation_shared_backlog(&shared->seen);
	in.stations = shared->seen.stations;
	in.n_stations = shared->seen.n_stations;
	in.flows = shared->seen.flows;
	in.n_flows = shared->seen.n_flows;
	n = control_step(p->control, &in, &actions);
	follow(p, shared, actions, n);
	p->stepped_us = t_us;
	p->decided = last->number;
	took_ns = shared->monotonic_ns() - start_ns;
	if (took_ns > p->step_max_ns)
		p->step_max_ns = took_ns > UINT32_MAX ? UINT32_MAX : (uint32_t)took_ns;
}

void place_tick(struct place *p, struct place_shared *shared, uint64_t t_us, const struct candidate *candidate)
{
	const struct inference_last *last = inference_last(p->inference);
	bool due;

	if (p->mode == OAL_POLICY_MODE_OFF)
		return;
	due = t_us < p->stepped_us || t_us - p->stepped_us >= p->policy.step_us;
	/* A prediction that asks for clamps is followed at once. */
	if (due || (last->number != p->decided && last->verdict.class >= p->policy.act_class))
		step(p, shared, t_us, candidate);
}
#endif
