#include "openflow/openflow_actor.h"

#include "base/clock.h"
#include "base/config.h"
#include "base/json.h"
#include "openflow/openflow_link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "OALtest": what a check asks for, which must not touch the flows of an agent. */
#define COOKIE_CHECK UINT64_C(0x4f414c7465737400)

enum {
	READY_US = 1000000, /* at the start: a switch that runs answers within milliseconds */
	CLOSE_US = 200000, /* for the switch to say that our flows are gone; their time ends them anyway */
	REFUSE_US = 1000000, /* after "table full": flows leave it by their time, of at most a second */
	COUNT_US = 1000000, /* how often packets are counted: the status is written once a second */
};

struct openflow_actor {
	struct openflow_link link;
	struct openflow_trade trade;
	uint64_t set_up; /* link.ups when the switch was last set up */
	uint32_t barrier_xid;     /* its answer makes `ready` true */
	bool ready, no_action;
	uint64_t now_us, refuse_until_us, count_at_us;
	int refuse_errno;
	struct {
		uint32_t count_xid; /* of the last request of a count */
		uint64_t packets_ended, packets; /* of flows that are gone; of all, as of the last count */
	} ways[OPENFLOW_ACTOR_WAYS];
	uint64_t reconnects, expired, errors_action, errors_full, errors_other;
};

static void delete_all(struct openflow_actor *o)
{
	struct openflow_link *l = &o->link;
	uint8_t m[OPENFLOW_MESSAGE_MAX];

	for (unsigned way = 0; way < o->trade.ways; way++) {
		const uint64_t cookie = o->trade.cookie + way;
		const enum openflow_kind kind = o->trade.kind;

		openflow_link_send(l, m, openflow_delete_all(m, openflow_link_xid(l), cookie, kind, false));
		if (kind == OPENFLOW_CLAMP)
			openflow_link_send(l, m, openflow_delete_all(m, openflow_link_xid(l), cookie, kind, true));
	}
}

/* Asks how many packets met the flows of each way. */
static void ask_counts(struct openflow_actor *o)
{
	struct openflow_link *l = &o->link;
	uint8_t m[OPENFLOW_MESSAGE_MAX];

	for (unsigned way = 0; way < o->trade.ways; way++) {
		o->ways[way].count_xid = openflow_link_xid(l);
		openflow_link_send(l, m, openflow_aggregate(m, o->ways[way].count_xid, o->trade.cookie + way));
	}
}

static void on_count(struct openflow_actor *o, const struct openflow_message *m)
{
	/* Removals and this count come in the order in which they happened: their sum is exact now, and only now. */
	for (unsigned way = 0; way < o->trade.ways; way++)
		if (m->xid == o->ways[way].count_xid)
			o->ways[way].packets = o->ways[way].packets_ended + m->packets;
}

static void on_removed(struct openflow_actor *o, const struct openflow_message *m)
{
	const uint64_t way = m->cookie - o->trade.cookie;

	if (way >= o->trade.ways)
		return;
	o->ways[way].packets_ended += m->packets;
	o->expired += m->expired;
}

/* Its answer makes `ready` true: all before it was carried out. */
static void send_barrier(struct openflow_actor *o)
{
	uint8_t m[OPENFLOW_MESSAGE_MAX];

	o->barrier_xid = openflow_link_xid(&o->link);
	openflow_link_send(&o->link, m, openflow_barrier(m, o->barrier_xid));
}

/* Removes what an earlier agent left, tests the action, and subscribes to flows that end. */
static void set_up_switch(struct openflow_actor *o)
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

static void on_error(struct openflow_actor *o, const struct openflow_message *m)
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

static void on_message(struct openflow_actor *o, const struct openflow_message *m)
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

static void step(struct openflow_actor *o, uint64_t now_us)
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
static int wait_until_ready(struct openflow_actor *o)
{
	const uint64_t end_us = clock_monotonic_us() + READY_US;
	uint64_t now_us;

	while ((now_us = clock_monotonic_us()) < end_us) {
		step(o, now_us);
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
static void explain(const struct openflow_trade *t, int ret, char *err, size_t err_size)
{
	char socket[CONFIG_FILE + CONFIG_IF + 8];

	snprintf(socket, sizeof socket, "%s/%s.mgmt", t->rundir, t->bridge);
	switch (ret) {
	case -EOPNOTSUPP:
		snprintf(err, err_size,
			 "the Open vSwitch of bridge '%s' does not know the action %s: install the patched one "
			 "(openwrt/openvswitch), or set option 'backend' to 'bpf'",
			 t->bridge, t->action);
		break;
	case -EPROTONOSUPPORT:
		snprintf(err, err_size,
			 "bridge '%s' does not speak OpenFlow 1.3: ovs-vsctl add bridge %s protocols OpenFlow13",
			 t->bridge, t->bridge);
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

static int make(struct openflow_actor **out, const struct openflow_trade *t)
{
	struct openflow_actor *o = calloc(1, sizeof *o);
	int ret;

	if (!o)
		return -ENOMEM;
	o->trade = *t;
	o->trade.rundir = o->trade.bridge = NULL; /* the link has them; the caller's are the caller's */
	ret = openflow_link_init(&o->link, t->rundir, t->bridge);
	if (ret < 0) {
		free(o);
		return ret;
	}
	*out = o;
	return 0;
}

int openflow_actor_check(const struct openflow_trade *t, char *err, size_t err_size)
{
	struct openflow_trade trial = *t;
	struct openflow_actor *o;
	int ret;

	trial.cookie = COOKIE_CHECK;
	ret = make(&o, &trial);
	if (!ret) {
		ret = wait_until_ready(o);
		openflow_link_close(&o->link);
		free(o);
	}
	if (ret < 0)
		explain(t, ret, err, err_size);
	return ret;
}

int openflow_actor_open(struct openflow_actor **out, const struct openflow_trade *t, char *err, size_t err_size)
{
	const int ret = make(out, t);

	if (ret < 0) {
		explain(t, ret, err, err_size);
		return ret;
	}
	wait_until_ready(*out);
	return 0;
}

static int may_send(const struct openflow_actor *o)
{
	if (o->no_action)
		return -EOPNOTSUPP;
	if (!o->ready)
		return -ENOTCONN;
	return o->now_us < o->refuse_until_us ? o->refuse_errno : 0;
}

int openflow_actor_set(struct openflow_actor *o, unsigned way, const struct openflow_rule *r, uint16_t ttl_ms)
{
	uint8_t m[OPENFLOW_MESSAGE_MAX];
	const int ret = may_send(o);

	if (ret < 0)
		return ret;
	return openflow_link_send(&o->link, m,
				  openflow_add(m, openflow_link_xid(&o->link), o->trade.cookie + way, r, ttl_ms));
}

int openflow_actor_release(struct openflow_actor *o, unsigned way, const struct openflow_rule *r)
{
	uint8_t m[OPENFLOW_MESSAGE_MAX];

	if (!o->ready)
		return 0;
	return openflow_link_send(&o->link, m,
				  openflow_delete(m, openflow_link_xid(&o->link), o->trade.cookie + way, r));
}

void openflow_actor_release_all(struct openflow_actor *o)
{
	delete_all(o);
}

void openflow_actor_poll(struct openflow_actor *o, uint64_t now_us)
{
	step(o, now_us);
}

bool openflow_actor_ready(const struct openflow_actor *o)
{
	return o->ready;
}

uint64_t openflow_actor_errors(const struct openflow_actor *o)
{
	return o->errors_action + o->errors_full + o->errors_other;
}

uint64_t openflow_actor_packets(const struct openflow_actor *o, unsigned way)
{
	return o->ways[way].packets;
}

void openflow_actor_json(const struct openflow_actor *o, struct json *j)
{
	json_count(j, "reconnects", o->reconnects);
	json_count(j, "flows_expired", o->expired);
	json_count(j, "errors_unknown_action", o->errors_action);
	json_count(j, "errors_table_full", o->errors_full);
	json_count(j, "errors_other", o->errors_other);
}

void openflow_actor_close(struct openflow_actor *o)
{
	uint64_t now_us = clock_monotonic_us();
	const uint64_t end_us = now_us + CLOSE_US;

	if (o->ready) {
		delete_all(o);
		o->ready = false;
		send_barrier(o);
		for (; !o->ready && o->link.up && now_us < end_us; now_us = clock_monotonic_us()) {
			openflow_link_wait(&o->link, 10);
			step(o, now_us);
		}
	}
	openflow_link_close(&o->link);
	free(o);
}
