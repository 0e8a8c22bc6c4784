#include "rewrite/rwnd.h"

#include "base/clock.h"
#include "base/json.h"
#include "rewrite/rwnd_backend.h"
#include "rewrite/rwnd_clamps.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In the order in which `auto` tries them. An Open vSwitch without the kernel's part of the action takes it, too, and
 * sends each ACK through user space: a program at the port costs a ten-thousandth of that. */
static const struct action_ops *const backends[] = {
#ifdef HAVE_BPF
	&rwnd_bpf,
#endif
#ifdef HAVE_OVS
	&rwnd_ovs,
#endif
	NULL
};

struct front {
	struct rwnd rwnd; /* first: what backends and callers hold */
	struct rwnd_clamps *clamps;
	uint64_t now_us, sets, releases, errors, expired;
};

static inline struct front *front_of(struct rwnd *r)
{
	return (struct front *)r;
}

static const struct action_ops *choose(const struct config_rwnd *c, bool later, int *ret, char *err, size_t err_size)
{
	const struct action_choice choice = {
		.backends = backends, .named = c->backend, .of = "the rewrite", .config = c,
	};

	return action_choose(&choice, later, ret, err, err_size);
}

int rwnd_check(const struct config_rwnd *c, char *err, size_t err_size)
{
	int ret;

	choose(c, false, &ret, err, err_size);
	return ret;
}

int rwnd_open(struct rwnd **out, const struct config_rwnd *c, char *err, size_t err_size)
{
	struct front *f;
	int ret;
	const struct action_ops *ops = choose(c, true, &ret, err, err_size);

	*out = NULL;
	if (!ops)
		return ret;
	f = calloc(1, sizeof *f);
	if (f)
		f->clamps = rwnd_clamps_new(c->max_flows);
	if (!f || !f->clamps) {
		free(f);
		snprintf(err, err_size, "out of memory for %u clamps", c->max_flows);
		return -ENOMEM;
	}
	f->rwnd.action.ops = ops;
	f->now_us = clock_monotonic_us();
	ret = ops->open(&f->rwnd.action, c, err, err_size);
	if (ret < 0) {
		rwnd_clamps_free(f->clamps);
		free(f);
		return ret;
	}
	*out = &f->rwnd;
	return 0;
}

static int failed(struct front *f, int ret)
{
	f->errors++;
	return ret;
}

int rwnd_set(struct rwnd *r, const struct rwnd_flow *flow, uint32_t bytes, uint32_t ttl_ms)
{
	struct front *f = front_of(r);
	int ret = rwnd_check_clamp(flow, &bytes, ttl_ms), is_new;

	if (ret < 0 || (flow->scale == RWND_SCALE_LEARNED && !r->action.ops->learns_scale))
		return failed(f, -EINVAL);
	is_new = rwnd_clamps_set(f->clamps, flow, f->now_us + ttl_ms * UINT64_C(1000));
	if (is_new < 0)
		return failed(f, is_new);
	ret = r->action.ops->set(&r->action, flow, bytes, ttl_ms);
	if (ret < 0) {
		if (is_new)
			rwnd_clamps_remove(f->clamps, flow);
		return failed(f, ret);
	}
	f->sets++;
	return 0;
}

int rwnd_release(struct rwnd *r, const struct rwnd_flow *flow)
{
	struct front *f = front_of(r);
	int ret;

	if ((flow->addr_len != 4 && flow->addr_len != 16) || !rwnd_clamps_remove(f->clamps, flow))
		return 0;
	ret = r->action.ops->release(&r->action, flow);
	if (ret < 0)
		return failed(f, ret);
	f->releases++;
	return 0;
}

void rwnd_release_all(struct rwnd *r)
{
	struct front *f = front_of(r);

	f->releases += rwnd_clamps_count(f->clamps);
	rwnd_clamps_clear(f->clamps);
	r->action.ops->release_all(&r->action);
}

void rwnd_poll(struct rwnd *r, uint64_t now_us)
{
	struct front *f = front_of(r);
	struct rwnd_flow over;

	f->now_us = now_us;
	while (rwnd_clamps_expire(f->clamps, now_us, &over)) {
		f->expired++;
		if (r->action.ops->release(&r->action, &over) < 0)
			f->errors++;
	}
	if (r->action.ops->poll)
		r->action.ops->poll(&r->action, now_us);
}

void rwnd_stats(struct rwnd *r, struct action_stats *s)
{
	const struct front *f = front_of(r);

	*s = (struct action_stats){
		.sets = f->sets,
		.releases = f->releases,
		.errors = f->errors,
		.expired = f->expired,
		.in_force = rwnd_clamps_count(f->clamps),
		.down.in_force = rwnd_clamps_count_of(f->clamps, RWND_DOWN),
	};
	r->action.ops->stats(&r->action, s);
}

static void json_way(struct json *j, const char *name, const struct action_way *w)
{
	json_add(j, ", \"%s\": {\"clamps\": %u", name, w->in_force);
	json_count(j, "acks_seen", w->packets_seen);
	json_count(j, "acks_clamped", w->packets_changed);
	json_count(j, "acks_skipped", w->packets_skipped);
	json_add(j, "}");
}

void rwnd_json(struct rwnd *r, struct json *j)
{
	struct action_stats s;
	struct action_way up;

	rwnd_stats(r, &s);
	up = action_way_up(&s);
	json_add(j, "{\"backend\": \"%s\", \"ready\": %s", r->action.ops->name, s.ready ? "true" : "false");
	json_count(j, "clamps", s.in_force);
	json_count(j, "sets", s.sets);
	json_count(j, "releases", s.releases);
	json_count(j, "expired", s.expired);
	json_count(j, "errors", s.errors);
	json_count(j, "acks_seen", s.packets_seen);
	json_count(j, "acks_clamped", s.packets_changed);
	json_count(j, "acks_skipped", s.packets_skipped);
	json_way(j, "up", &up);
	json_way(j, "down", &s.down);
	if (r->action.ops->json)
		r->action.ops->json(&r->action, j);
	json_add(j, "}");
}

enum oal_rewrite_backend rwnd_backend(const struct rwnd *r)
{
	return r->action.ops->id;
}

void rwnd_close(struct rwnd *r)
{
	struct front *f;

	if (!r)
		return;
	f = front_of(r);
	r->action.ops->close(&r->action);
	rwnd_clamps_free(f->clamps);
	free(f);
}
