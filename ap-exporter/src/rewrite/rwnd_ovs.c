/* Backend `ovs`: flows with the action rewrite_rwnd in an Open vSwitch bridge, over its management socket.
 *
 * What the switch knows is a flow a clamp, gone by itself in two steps: the datapath stops lowering at the clamp's
 * deadline, whatever has become of the agent or of ovs-vswitchd; and the switch forgets the flow, hard timeout 1 s,
 * OpenFlow's least. Sets are sent and not waited for: what the switch says to them comes later, is counted, and makes
 * sets fail for a second. */
#include "rewrite/rwnd.h"

#include "base/clock.h"
#include "base/json.h"
#include "rewrite/openflow_link.h"
#include "rewrite/rwnd_clamps.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whose flows are whose: "OALrwnd" for the clamps, "OALtest" for what rwnd_check() asks, which must not touch the
 * clamps of an agent. Clamps of the way down have the next cookie, so that each way is counted by itself. */
#define COOKIE_CLAMPS UINT64_C(0x4f414c72776e6400)
#define COOKIE_CHECK UINT64_C(0x4f414c7465737400)

enum {
	READY_US = 1000000, /* at the start: a switch that runs answers within milliseconds */
	CLOSE_US = 200000, /* for the switch to say that our flows are gone; their time ends them anyway */
	REFUSE_US = 1000000, /* after "table full": flows leave it by their time, of at most a second */
	COUNT_US = 1000000, /* how often packets are counted: the status is written once a second */
};

struct ovs {
	struct openflow_link link;
	uint64_t cookie, set_up; /* link.ups when the switch was last set up */
	uint32_t barrier_xid;     /* its answer makes `ready` true */
	bool ready, no_action;
	uint64_t now_us, refuse_until_us, count_at_us;
	int refuse_errno;
	struct {
		uint32_t count_xid; /* of the last request of a count */
		uint64_t packets_ended, packets; /* of flows that are gone; of all, as of the last count */
	} ways[RWND_DIRECTIONS];
	uint64_t reconnects, expired, errors_action, errors_full, errors_other;
};

static struct ovs *ovs_of(struct action *a)
{
	return a->self;
}

static void delete_all(struct ovs *o)
{
	struct openflow_link *l = &o->link;
	uint8_t m[OPENFLOW_MESSAGE_MAX];

	for (unsigned way = 0; way < RWND_DIRECTIONS; way++) {
		openflow_link_send(l, m, openflow_delete_all(m, openflow_link_xid(l), o->cookie + way, false));
		openflow_link_send(l, m, openflow_delete_all(m, openflow_link_xid(l), o->cookie + way, true));
	}
}

/* Asks how many packets met the flows of each way. */
static void ask_counts(struct ovs *o)
{
	struct openflow_link *l = &o->link;
	uint8_t m[OPENFLOW_MESSAGE_MAX];

	for (unsigned way = 0; way < RWND_DIRECTIONS; way++) {
		o->ways[way].count_xid = openflow_link_xid(l);
		openflow_link_send(l, m, openflow_aggregate(m, o->ways[way].count_xid, o->cookie + way));
	}
}

static void on_count(struct ovs *o, const struct openflow_message *m)
{
	/* Removals and this count come in the order in which they happened: their sum is exact now, and only now. */
	for (unsigned way = 0; way < RWND_DIRECTIONS; way++)
		if (m->xid == o->ways[way].count_xid)
			o->ways[way].packets = o->ways[way].packets_ended + m->packets;
}

static void on_removed(struct ovs *o, const struct openflow_message *m)
{
	const uint64_t way = m->cookie - o->cookie;

	if (way >= RWND_DIRECTIONS)
		return;
	o->ways[way].packets_ended += m->packets;
	o->expired += m->expired;
}

/* Its answer makes `ready` true: all before it was carried out. */
static void send_barrier(struct ovs *o)
{
	uint8_t m[OPENFLOW_MESSAGE_MAX];

	o->barrier_xid = openflow_link_xid(&o->link);
	openflow_link_send(&o->link, m, openflow_barrier(m, o->barrier_xid));
}

/* Removes what an earlier agent left, tests the action, and subscribes to flows that end. */
static void set_up_switch(struct ovs *o)
{
	struct openflow_link *l = &o->link;
	uint8_t m[OPENFLOW_MESSAGE_MAX];

	if (o->set_up)
		o->reconnects++;
	o->set_up = l->ups;
	o->ready = o->no_action = false;
	openflow_link_send(l, m, openflow_set_config(m, openflow_link_xid(l)));
	openflow_link_send(l, m, openflow_set_async(m, openflow_link_xid(l)));
	delete_all(o);
	send_barrier(o);
}

static void on_error(struct ovs *o, const struct openflow_message *m)
{
	switch (m->error) {
	case OPENFLOW_ERROR_ACTION:
		o->errors_action++;
		o->no_action = true;
		o->ready = false;
		break;
	case OPENFLOW_ERROR_FULL:
		o->errors_full++;
		o->refuse_errno = -ENOSPC;
		o->refuse_until_us = o->now_us + REFUSE_US;
		break;
	case OPENFLOW_ERROR_VERSION:
	case OPENFLOW_ERROR_OTHER:
		o->errors_other++;
		break;
	}
}

static void on_message(struct ovs *o, const struct openflow_message *m)
{
	switch (m->type) {
	case OPENFLOW_BARRIER_REPLY:
		if (m->xid == o->barrier_xid && !o->no_action)
			o->ready = true;
		break;
	case OPENFLOW_ERROR:
		on_error(o, m);
		break;
	case OPENFLOW_FLOW_REMOVED:
		on_removed(o, m);
		break;
	case OPENFLOW_MULTIPART_REPLY:
		on_count(o, m);
		break;
	default:
		break;
	}
}

static void ovs_step(struct ovs *o, uint64_t now_us)
{
	struct openflow_link *l = &o->link;
	struct openflow_message m;

	o->now_us = now_us;
	while (openflow_link_poll(l, now_us, &m))
		on_message(o, &m);
	if (!l->up) {
		o->ready = false;
	} else if (o->set_up != l->ups) {
		set_up_switch(o);
	} else if (o->ready && now_us >= o->count_at_us) {
		o->count_at_us = now_us + COUNT_US;
		ask_counts(o);
	}
}

/* Until the switch is ready, or has said what is missing, or time is up: 0 or negative errno. */
static int wait_until_ready(struct ovs *o)
{
	const uint64_t end_us = clock_monotonic_us() + READY_US;
	uint64_t now_us;

	while ((now_us = clock_monotonic_us()) < end_us) {
		ovs_step(o, now_us);
		if (o->ready)
			return 0;
		if (o->no_action)
			return -EOPNOTSUPP;
		if (o->link.fd < 0)
			return o->link.error;
		openflow_link_wait(&o->link, 10);
	}
	return -ETIMEDOUT;
}

/* What `ret` means for this AP's operator. */
static void explain(const struct config_rwnd *c, int ret, char *err, size_t err_size)
{
	char socket[CONFIG_FILE + CONFIG_IF + 8];

	snprintf(socket, sizeof socket, "%s/%s.mgmt", c->ovs_rundir, c->bridge);
	switch (ret) {
	case -EOPNOTSUPP:
		snprintf(err, err_size,
			 "the Open vSwitch of bridge '%s' does not know the action rewrite_rwnd: install the patched "
			 "one (openwrt/openvswitch), or set "
			 "option 'backend' to 'bpf'",
			 c->bridge);
		break;
	case -EPROTONOSUPPORT:
		snprintf(err, err_size,
			 "bridge '%s' does not speak OpenFlow 1.3: ovs-vsctl add bridge %s protocols OpenFlow13",
			 c->bridge, c->bridge);
		break;
	case -ENOENT:
	case -ECONNREFUSED:
		snprintf(err, err_size,
			 "no Open vSwitch bridge at %s: is ovs-vswitchd running, and are options 'bridge' and "
			 "'ovs_rundir' right?",
			 socket);
		break;
	case -EACCES:
		snprintf(err, err_size, "may not connect to %s: leave option 'user' empty, or let that user in",
			 socket);
		break;
	case -ENAMETOOLONG:
		snprintf(err, err_size, "%s is too long for a socket: set a shorter option 'ovs_rundir'", socket);
		break;
	default:
		snprintf(err, err_size, "talking to Open vSwitch at %s failed: %s", socket, strerror(-ret));
	}
}

static int ovs_new(struct ovs **out, const struct config_rwnd *c, uint64_t cookie)
{
	struct ovs *o = calloc(1, sizeof *o);
	int ret;

	if (!o)
		return -ENOMEM;
	o->cookie = cookie;
	ret = openflow_link_init(&o->link, c->ovs_rundir, c->bridge);
	if (ret < 0) {
		free(o);
		return ret;
	}
	*out = o;
	return 0;
}

static int ovs_check(const void *config, char *err, size_t err_size)
{
	const struct config_rwnd *c = config;
	struct ovs *o;
	int ret = ovs_new(&o, c, COOKIE_CHECK);

	if (!ret) {
		ret = wait_until_ready(o);
		openflow_link_close(&o->link);
		free(o);
	}
	if (ret < 0)
		explain(c, ret, err, err_size);
	return ret;
}

/* A bridge that is away is none of its business: it is looked for again and again. */
static int ovs_open(struct action *a, const void *config, char *err, size_t err_size)
{
	const struct config_rwnd *c = config;
	struct ovs *o;
	int ret = ovs_new(&o, c, COOKIE_CLAMPS);

	if (ret < 0) {
		explain(c, ret, err, err_size);
		return ret;
	}
	wait_until_ready(o);
	a->self = o;
	return 0;
}

static int may_send(const struct ovs *o)
{
	if (o->no_action)
		return -EOPNOTSUPP;
	if (!o->ready)
		return -ENOTCONN;
	return o->now_us < o->refuse_until_us ? o->refuse_errno : 0;
}

static int ovs_set(struct action *a, const void *key, uint64_t bytes, uint32_t ttl_ms)
{
	const struct rwnd_flow *f = key;
	struct ovs *o = ovs_of(a);
	uint8_t m[OPENFLOW_MESSAGE_MAX];
	const int ret = may_send(o);

	if (ret < 0)
		return ret;
	return openflow_link_send(&o->link, m,
				  openflow_add(m, openflow_link_xid(&o->link), o->cookie + f->direction, f,
					       rwnd_raw((uint32_t)bytes, rwnd_floor_bytes(f), f->scale),
					       (uint16_t)ttl_ms));
}

/* Without a switch there is nothing to release: the datapath's deadline stands. */
static int ovs_release(struct action *a, const void *key)
{
	const struct rwnd_flow *f = key;
	struct ovs *o = ovs_of(a);
	uint8_t m[OPENFLOW_MESSAGE_MAX];

	if (!o->ready)
		return 0;
	return openflow_link_send(
	    &o->link, m, openflow_delete(m, openflow_link_xid(&o->link), o->cookie + f->direction, f));
}

static void ovs_release_all(struct action *a)
{
	delete_all(ovs_of(a));
}

static void ovs_poll(struct action *a, uint64_t now_us)
{
	ovs_step(ovs_of(a), now_us);
}

static void ovs_stats(struct action *a, struct action_stats *s)
{
	const struct ovs *o = ovs_of(a);

	s->ready = o->ready;
	s->errors += o->errors_action + o->errors_full + o->errors_other;
	/* The datapath does not say which of them it changed. */
	s->packets_seen = o->ways[RWND_UP].packets + o->ways[RWND_DOWN].packets;
	s->down.packets_seen = o->ways[RWND_DOWN].packets;
}

static void ovs_json(struct action *a, struct json *j)
{
	const struct ovs *o = ovs_of(a);

	json_count(j, "reconnects", o->reconnects);
	json_count(j, "flows_expired", o->expired);
	json_count(j, "errors_unknown_action", o->errors_action);
	json_count(j, "errors_table_full", o->errors_full);
	json_count(j, "errors_other", o->errors_other);
}

/* Waits a moment for the switch to say that the flows are gone; should it not, their time ends all the same. */
static void ovs_close(struct action *a)
{
	struct ovs *o = ovs_of(a);
	uint64_t now_us = clock_monotonic_us();
	const uint64_t end_us = now_us + CLOSE_US;

	if (o->ready) {
		delete_all(o);
		o->ready = false;
		send_barrier(o);
		for (; !o->ready && o->link.up && now_us < end_us; now_us = clock_monotonic_us()) {
			openflow_link_wait(&o->link, 10);
			ovs_step(o, now_us);
		}
	}
	openflow_link_close(&o->link);
	free(o);
	a->self = NULL;
}

const struct action_ops rwnd_ovs = {
	.name = "ovs",
	.kind = OAL_ACTION_KIND_RWND,
	.id = OAL_REWRITE_BACKEND_OVS,
	.subject = "flow",
	.meet = rwnd_meet,
	.check = ovs_check,
	.open = ovs_open,
	.set = ovs_set,
	.release = ovs_release,
	.release_all = ovs_release_all,
	.poll = ovs_poll,
	.stats = ovs_stats,
	.json = ovs_json,
	.close = ovs_close,
};
