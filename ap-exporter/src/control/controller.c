#ifdef HAVE_AGENT
#include "control/controller.h"

#include "base/json.h"
#include "base/text_file.h"
#include "rewrite/action_alarm.h"
#include "control/place.h"
#include "model/inference.h"
#include "pipeline/pipeline.h"
#include "rewrite/rwnd.h"

#include <errno.h>
#include <stdlib.h>

struct controller {
	struct controller_config c;
	struct place_shared shared;
	struct place places[CONTROL_PLACES];
	unsigned n; /* places with an inference */
	uint64_t second;
	struct action_alarm alarm;
};

int controller_new(struct controller **out, const struct controller_config *config)
{
	struct controller *c = calloc(1, sizeof *c);
	int ret;

	if (!c)
		return -ENOMEM;
	c->c = *config;
	c->shared.pipeline = config->pipeline;
	c->shared.ceilings[OAL_ACTION_KIND_RWND] = config->ceiling;
	c->shared.ceilings[OAL_ACTION_KIND_MARK] = config->mark_ceiling;
	c->shared.monotonic_ns = config->monotonic_ns;
	c->shared.flags = inference_flags(config->inferences[0]);
	c->shared.effects[OAL_ACTION_KIND_RWND].self = config->rwnd;
	c->shared.effects[OAL_ACTION_KIND_MARK].self = config->mark;
	ret = observation_new(&c->shared.seen, config->pipeline);
	if (!ret)
		ret = effects_new(&c->shared.effects[OAL_ACTION_KIND_RWND], &effects_rwnd,
				  RWND_DIRECTIONS * c->shared.seen.max_flows);
	if (!ret)
		ret = effects_new(&c->shared.effects[OAL_ACTION_KIND_MARK], &effects_mark,
				  c->shared.seen.max_stations);
	for (; !ret && c->n < CONTROL_PLACES && config->inferences[c->n]; c->n++)
		ret = place_new(&c->places[c->n], c->n, config->inferences[c->n], &c->shared);
	if (ret) {
		controller_free(c);
		return ret;
	}
	*out = c;
	return 0;
}

void controller_free(struct controller *c)
{
	unsigned i;

	if (!c)
		return;
	for (i = 0; i < OAL_N_ACTION_KINDS; i++) {
		struct effects *e = &c->shared.effects[i];

		if (e->self && e->ops)
			e->ops->release_all(e->self);
		effects_free(e);
	}
	for (i = 0; i < CONTROL_PLACES; i++)
		place_free(&c->places[i]);
	observation_free(&c->shared.seen);
	free(c);
}

static bool any_enforces(const struct controller *c, unsigned but)
{
	unsigned i;

	for (i = 0; i < c->n; i++)
		if (i != but && c->places[i].mode == OAL_POLICY_MODE_ENFORCE &&
		    place_kind(&c->places[i]) == place_kind(&c->places[but]))
			return true;
	return false;
}

/* The service's kill switch, or a file on the AP. */
static bool is_killed(const struct controller *c)
{
	return agent_flags_killed(inference_flags(c->places[0].inference)) ||
	       text_file_may_be(c->c.kill_file) || text_file_may_be(c->c.mark_kill_file);
}

static struct rwnd *rwnd_of(const struct controller *c)
{
	return c->shared.effects[OAL_ACTION_KIND_RWND].self;
}

/* Of windows; where nothing lowers them, of marks. */
static enum oal_rewrite_backend backend(const struct controller *c)
{
	unsigned i;

	for (i = 0; i < OAL_N_ACTION_KINDS; i++)
		if (c->shared.effects[i].self)
			return c->shared.effects[i].ops->backend(c->shared.effects[i].self);
	return OAL_REWRITE_BACKEND_NONE;
}

/* Of all policies together. */
struct totals {
	enum oal_policy_mode mode, window_mode; /* the furthest; of those that act by windows */
	struct control_stats control; /* clamps, steps and reverts are sums; the rest is the first policy's */
	uint64_t sets, set_errors, releases;
	uint32_t step_max_ns;
};

static struct totals totals(const struct controller *c)
{
	struct totals t = { 0 };
	unsigned i;

	control_stats(c->places[0].control, &t.control);
	for (i = 0; i < c->n; i++) {
		const struct place *p = &c->places[i];
		struct control_stats s;

		t.mode = p->mode > t.mode ? p->mode : t.mode;
		if (place_kind(p) == OAL_ACTION_KIND_RWND && p->mode > t.window_mode)
			t.window_mode = p->mode;
		t.sets += p->sets;
		t.set_errors += p->set_errors;
		t.releases += p->releases;
		t.step_max_ns = p->step_max_ns > t.step_max_ns ? p->step_max_ns : t.step_max_ns;
		if (!i)
			continue;
		control_stats(p->control, &s);
		t.control.clamps += s.clamps;
		t.control.steps += s.steps;
		t.control.guard_reverts += s.guard_reverts;
	}
	return t;
}

static void report(struct controller *c)
{
	const struct totals t = totals(c);
	struct action_stats data_path = { 0 };
	struct oal_control_row row;
	unsigned i;

	if (rwnd_of(c))
		rwnd_stats(rwnd_of(c), &data_path);
	if (t.window_mode == OAL_POLICY_MODE_ENFORCE)
		action_alarm_second(&c->alarm, &data_path);
	else
		action_alarm_reset(&c->alarm);
	row = (struct oal_control_row){
		.backend = (uint8_t)backend(c),
		.mode = (uint8_t)t.mode,
		.killed = c->shared.killed,
		.clamps = t.control.clamps,
		.capacity_kbps = t.control.capacity_kbps,
		.queue_us = t.control.queue_us,
		.steps = t.control.steps,
		.sets = t.sets,
		.set_errors = t.set_errors,
		.releases = t.releases,
		.guard_reverts = t.control.guard_reverts,
		.acks_seen = data_path.packets_seen,
		.acks_clamped = data_path.packets_changed,
		.acks_skipped = data_path.packets_skipped,
		.step_max_ns = t.step_max_ns,
	};
	pipeline_row(c->shared.pipeline, OAL_CONTROL, &row);
	for (i = 0; i < c->n; i++)
		c->places[i].step_max_ns = 0;
}

void controller_tick(struct controller *c, uint64_t t_us)
{
	const bool first = !c->second;
	bool any = false;
	unsigned i;

	for (i = 0; i < OAL_N_ACTION_KINDS; i++)
		if (c->shared.effects[i].self)
			c->shared.effects[i].ops->poll(c->shared.effects[i].self, c->c.monotonic_ns() / 1000);
	c->shared.killed = is_killed(c);
	for (i = 0; i < c->n; i++) {
		const struct candidate *candidate = inference_in_force(c->places[i].inference);

		place_update(&c->places[i], &c->shared, candidate, !any_enforces(c, i));
		place_tick(&c->places[i], &c->shared, t_us, candidate);
		any |= candidate != NULL;
	}
	if (t_us / 1000000 == c->second)
		return;
	c->second = t_us / 1000000;
	if (!first && any)
		report(c);
}

static void change(struct controller *c, enum oal_action_kind kind, void *self)
{
	unsigned i;

	for (i = 0; i < c->n; i++) {
		if (place_kind(&c->places[i]) != kind)
			continue;
		place_release_all(&c->places[i], &c->shared, OAL_REWRITE_REASON_OFF);
		/* Until the next tick: there may be nothing to enforce with. */
		if (c->places[i].mode == OAL_POLICY_MODE_ENFORCE)
			c->places[i].mode = OAL_POLICY_MODE_SHADOW;
		effects_give_up(&c->shared.effects[kind], i, false);
	}
	c->shared.effects[kind].self = self;
}

void controller_rwnd(struct controller *c, struct rwnd *rwnd)
{
	change(c, OAL_ACTION_KIND_RWND, rwnd);
	action_alarm_reset(&c->alarm);
}

void controller_mark(struct controller *c, struct mark *mark)
{
	change(c, OAL_ACTION_KIND_MARK, mark);
}

size_t controller_alarm(const struct controller *c, char *buf, size_t size)
{
	return action_alarm_text(&c->alarm, buf, size);
}

void controller_json(const struct controller *c, struct json *t)
{
	static const char *const modes[] = OAL_POLICY_MODES, *const backends[] = OAL_REWRITE_BACKENDS,
				 *const actions[] = OAL_ACTION_KINDS;
	const struct totals all = totals(c);
	const char *before = "";
	unsigned i;

	json_add(t, "{\"mode\": \"%s\", \"ceiling\": \"%s\", \"killed\": %s, \"backend\": \"%s\", \"policy\": ",
		 modes[c->places[0].mode], modes[c->shared.ceilings[OAL_ACTION_KIND_RWND]],
		 c->shared.killed ? "true" : "false", backends[backend(c)]);
	json_string(t, c->places[0].policy.name);
	json_count(t, "policy_version", c->places[0].policy.version);
	json_count(t, "clamps", all.control.clamps);
	json_count(t, "capacity_kbps", all.control.capacity_kbps);
	json_count(t, "queue_us", all.control.queue_us);
	json_count(t, "target_us", all.control.target_us);
	json_count(t, "steps", all.control.steps);
	json_count(t, "sets", all.sets);
	json_count(t, "set_errors", all.set_errors);
	json_count(t, "releases", all.releases);
	json_count(t, "guard_reverts", all.control.guard_reverts);
	json_add(t, ", \"policies\": {");
	for (i = 0; i < c->n; i++)
		if (c->places[i].bundle) {
			json_add(t, "%s", before);
			before = ", ";
			json_string(t, pipeline_name_of(c->shared.pipeline, c->places[i].name));
			json_add(t, ": \"%s\"", modes[c->places[i].mode]);
		}
	json_add(t, "}");
	json_add(t, ", \"mark_ceiling\": \"%s\"", modes[c->shared.ceilings[OAL_ACTION_KIND_MARK]]);
	for (i = 0; i < OAL_N_ACTION_KINDS; i++)
		if (c->shared.effects[i].self) {
			json_add(t, ", \"%s\": ", i == OAL_ACTION_KIND_RWND ? "data_path" : actions[i]);
			c->shared.effects[i].ops->json(c->shared.effects[i].self, t);
		}
	json_add(t, "}");
}
#endif
