#include "mark/mark.h"

#include "base/clock.h"
#include "base/json.h"
#include "mark/mark_backend.h"
#include "mark/mark_stations.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Those that `auto` tries. Not ovs: whether its data path knows the action, or every packet to a marked station goes
 * through vswitchd, only its operator can tell. */
static const struct action_ops *const by_itself[] = {
#ifdef HAVE_BPF
	&mark_bpf,
#endif
	NULL
};
static const struct action_ops *const by_name[] = {
#ifdef HAVE_BPF
	&mark_bpf,
#endif
#ifdef HAVE_OVS
	&mark_ovs,
#endif
	NULL
};

struct front {
	struct mark mark; /* first: what backends and callers hold */
	struct mark_stations *stations;
	uint64_t now_us, sets, releases, errors, expired;
};

static inline struct front *front_of(struct mark *m)
{
	return (struct front *)m;
}

static const struct action_ops *choose(const struct config_mark *c, bool later, int *ret, char *err, size_t err_size)
{
	const struct action_choice choice = {
		.backends = strcmp(c->backend, "auto") ? by_name : by_itself,
		.named = c->backend,
		.of = "the marks",
		.config = c,
	};

	return action_choose(&choice, later, ret, err, err_size);
}

int mark_check(const struct config_mark *c, char *err, size_t err_size)
{
	int ret;

	choose(c, false, &ret, err, err_size);
	return ret;
}

int mark_open(struct mark **out, const struct config_mark *c, char *err, size_t err_size)
{
	struct front *f;
	int ret;
	const struct action_ops *ops = choose(c, true, &ret, err, err_size);

	*out = NULL;
	if (!ops)
		return ret;
	f = calloc(1, sizeof *f);
	if (f)
		f->stations = mark_stations_new(c->max_stations);
	if (!f || !f->stations) {
		free(f);
		snprintf(err, err_size, "out of memory for %u marked stations", c->max_stations);
		return -ENOMEM;
	}
	f->mark.action.ops = ops;
	f->now_us = clock_monotonic_us();
	ret = ops->open(&f->mark.action, c, err, err_size);
	if (ret < 0) {
		mark_stations_free(f->stations);
		free(f);
		return ret;
	}
	*out = &f->mark;
	return 0;
}

static int failed(struct front *f, int ret)
{
	f->errors++;
	return ret;
}

int mark_set(struct mark *m, const struct mark_station *station, uint8_t marks, uint32_t ttl_ms)
{
	struct front *f = front_of(m);
	struct mark_station s = *station;
	int ret, is_new;

	if (!(marks & MARK_ECT0))
		s.interval_us = 0;
	if (!mark_allowed(&s, marks, ttl_ms))
		return failed(f, -EINVAL);
	is_new = mark_stations_set(f->stations, &s, f->now_us + ttl_ms * UINT64_C(1000));
	if (is_new < 0)
		return failed(f, is_new);
	ret = m->action.ops->set(&m->action, &s, marks, ttl_ms);
	if (ret < 0) {
		if (is_new)
			mark_stations_remove(f->stations, &s);
		return failed(f, ret);
	}
	f->sets++;
	return 0;
}

int mark_release(struct mark *m, const struct mark_station *s)
{
	struct front *f = front_of(m);
	int ret;

	if (!mark_stations_remove(f->stations, s))
		return 0;
	ret = m->action.ops->release(&m->action, s);
	if (ret < 0)
		return failed(f, ret);
	f->releases++;
	return 0;
}

void mark_release_all(struct mark *m)
{
	struct front *f = front_of(m);

	f->releases += mark_stations_count(f->stations);
	mark_stations_clear(f->stations);
	m->action.ops->release_all(&m->action);
}

void mark_poll(struct mark *m, uint64_t now_us)
{
	struct front *f = front_of(m);
	struct mark_station over;

	f->now_us = now_us;
	while (mark_stations_expire(f->stations, now_us, &over)) {
		f->expired++;
		if (m->action.ops->release(&m->action, &over) < 0)
			f->errors++;
	}
	if (m->action.ops->poll)
		m->action.ops->poll(&m->action, now_us);
}

void mark_stats(struct mark *m, struct action_stats *s)
{
	const struct front *f = front_of(m);

	*s = (struct action_stats){
		.sets = f->sets,
		.releases = f->releases,
		.errors = f->errors,
		.expired = f->expired,
		.in_force = mark_stations_count(f->stations),
	};
	m->action.ops->stats(&m->action, s);
}

void mark_json(struct mark *m, struct json *j)
{
	struct action_stats s;

	mark_stats(m, &s);
	json_add(j, "{\"backend\": \"%s\", \"ready\": %s", m->action.ops->name, s.ready ? "true" : "false");
	json_count(j, "stations", s.in_force);
	json_count(j, "sets", s.sets);
	json_count(j, "releases", s.releases);
	json_count(j, "expired", s.expired);
	json_count(j, "errors", s.errors);
	json_count(j, "packets_seen", s.packets_seen);
	if (s.knows_changes) {
		json_count(j, "packets_marked", s.packets_changed);
		json_count(j, "packets_left", s.packets_skipped);
	}
	if (m->action.ops->json)
		m->action.ops->json(&m->action, j);
	json_add(j, "}");
}

enum oal_rewrite_backend mark_backend(const struct mark *m)
{
	return m->action.ops->id;
}

void mark_close(struct mark *m)
{
	struct front *f;

	if (!m)
		return;
	f = front_of(m);
	m->action.ops->close(&m->action);
	mark_stations_free(f->stations);
	free(f);
}
