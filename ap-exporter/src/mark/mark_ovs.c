/* Backend `ovs`: a station's marks are a flow with the action mark_ce in an Open vSwitch bridge. */
#include "mark/mark.h"

#include "base/clock.h"
#include "base/json.h"
#include "mark/mark_stations.h"
#include "openflow/openflow_actor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* "OALmark" */
#define COOKIE UINT64_C(0x4f414c6d61726b00)

_Static_assert((int)MARK_MAC_BYTES == (int)OPENFLOW_MAC, "addresses go into messages as they are");
_Static_assert((int)MARK_ECT1 == 1 && (int)MARK_ECT0 == 2, "marks go into messages as they are");

struct ovs {
	struct openflow_actor *actor;
	/* Those with ECT(0) marked: the datapath goes on with a station's spacing as long as it is told one number. */
	struct mark_stations *spaced;
	uint32_t first; /* other numbers than an earlier agent's */
};

static struct openflow_trade trade_of(const struct config_mark *c)
{
	return (struct openflow_trade){
		.rundir = c->ovs_rundir,
		.bridge = c->bridge,
		.action = "mark_ce",
		.kind = OPENFLOW_MARKS,
		.ways = 1,
		.cookie = COOKIE,
	};
}

static int check(const void *config, char *err, size_t err_size)
{
	const struct openflow_trade t = trade_of(config);

	return openflow_actor_check(&t, err, err_size);
}

static int open_backend(struct action *a, const void *config, char *err, size_t err_size)
{
	const struct config_mark *c = config;
	const struct openflow_trade t = trade_of(c);
	struct ovs *o = calloc(1, sizeof *o);
	int ret = -ENOMEM;

	if (o)
		o->spaced = mark_stations_new(c->max_stations);
	if (o && o->spaced)
		ret = openflow_actor_open(&o->actor, &t, err, err_size);
	else
		snprintf(err, err_size, "out of memory for %u marked stations", c->max_stations);
	if (ret < 0) {
		if (o)
			mark_stations_free(o->spaced);
		free(o);
		return ret;
	}
	o->first = (uint32_t)(clock_monotonic_us() / 1000); /* fewer stations than milliseconds come and go */
	a->self = o;
	return 0;
}

static void close_backend(struct action *a)
{
	struct ovs *o = a->self;

	openflow_actor_close(o->actor);
	mark_stations_free(o->spaced);
	free(o);
	a->self = NULL;
}

static struct openflow_rule rule_of(const struct mark_station *s)
{
	return (struct openflow_rule){ .kind = OPENFLOW_MARKS, .marks = { .mac = s->mac } };
}

static int set(struct action *a, const void *key, uint64_t marks, uint32_t ttl_ms)
{
	const struct mark_station *s = key;
	struct ovs *o = a->self;
	struct openflow_rule r = rule_of(s);
	int ret, begins = 0;

	r.marks.marks = (uint8_t)marks;
	if (marks & MARK_ECT0) {
		begins = mark_stations_set(o->spaced, s, UINT64_MAX); /* a release ends it */
		if (begins < 0)
			return begins;
		r.marks.interval_us = s->interval_us;
		r.marks.since = o->first + mark_stations_since(o->spaced, s);
	} else {
		mark_stations_remove(o->spaced, s);
	}
	ret = openflow_actor_set(o->actor, 0, &r, (uint16_t)ttl_ms);
	if (ret < 0 && begins)
		mark_stations_remove(o->spaced, s);
	return ret;
}

/* Comes for marks whose time is over too. */
static int release(struct action *a, const void *key)
{
	const struct openflow_rule r = rule_of(key);
	struct ovs *o = a->self;

	mark_stations_remove(o->spaced, key);
	return openflow_actor_release(o->actor, 0, &r);
}

static void release_all(struct action *a)
{
	struct ovs *o = a->self;

	mark_stations_clear(o->spaced);
	openflow_actor_release_all(o->actor);
}

static void poll_bridge(struct action *a, uint64_t now_us)
{
	openflow_actor_poll(((struct ovs *)a->self)->actor, now_us);
}

static void stats(struct action *a, struct action_stats *s)
{
	const struct ovs *o = a->self;

	s->ready = openflow_actor_ready(o->actor);
	s->errors += openflow_actor_errors(o->actor);
	/* With and without ECT; the datapath does not say which of them it marked. */
	s->packets_seen = openflow_actor_packets(o->actor, 0);
}

static void json(struct action *a, struct json *j)
{
	openflow_actor_json(((struct ovs *)a->self)->actor, j);
}

const struct action_ops mark_ovs = {
	.name = "ovs",
	.kind = OAL_ACTION_KIND_MARK,
	.id = OAL_REWRITE_BACKEND_OVS,
	.subject = "station",
	.meet = mark_meet,
	.check = check,
	.open = open_backend,
	.set = set,
	.release = release,
	.release_all = release_all,
	.poll = poll_bridge,
	.stats = stats,
	.json = json,
	.close = close_backend,
};
