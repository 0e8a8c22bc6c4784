/* Collector: queueing disciplines of an interface, from rtnetlink. */
#include "collect/collector.h"

#include "packet/interface.h"
#include "collect/netlink.h"
#include "pipeline/pipeline.h"
#include "collect/rtnetlink_parse.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define MOST_QDISCS 64 /* of one interface: mq has one per hardware queue */

#define RAW 512

struct known {
	struct oal_queue_row row; /* its keys, for when it goes */
	char kind[QDISC_KIND];
	uint64_t seen_at;
	uint32_t raw_len;
	uint8_t raw[RAW]; /* the message as last seen: an unchanged one is not parsed */
};

struct collect {
	const struct config_qdisc *config;
	struct pipeline *pipeline;
	struct collector_counts *counts;
	struct netlink *nl;
	struct interface interface;
	struct netlink_request dump;
	uint16_t device;
	uint64_t now_tick, due_tick;
	uint32_t n, cursor;
	struct known known[MOST_QDISCS];
};

static uint32_t sections(const struct config *c)
{
	return c->n_qdisc;
}

static int check(const struct config *c, uint32_t section, char *err, size_t err_size)
{
	struct netlink *nl = NULL;
	int ret = netlink_open(&nl, NETLINK_ROUTE);

	netlink_close(nl);
	if (ret)
		snprintf(err, err_size, "qdisc on %s: cannot open rtnetlink: %s", c->qdisc[section].interface, strerror(-ret));
	return ret;
}

static void prepare(struct collect *c)
{
	struct tcmsg tc = { .tcm_family = AF_UNSPEC, .tcm_ifindex = (int)c->interface.index };

	netlink_request(&c->dump, RTM_GETQDISC, NLM_F_DUMP, &tc, sizeof tc);
	c->due_tick = 0;
}

static struct known *find(struct collect *c, uint32_t handle, uint32_t parent)
{
	for (uint32_t k = 0; k < c->n; k++) {
		uint32_t i = c->cursor + k < c->n ? c->cursor + k : c->cursor + k - c->n;
		struct known *q = &c->known[i];

		if (q->row.handle == handle && q->row.parent == parent) {
			c->cursor = i + 1 < c->n ? i + 1 : 0;
			return q;
		}
	}
	if (c->n == MOST_QDISCS)
		return NULL;
	c->known[c->n] = (struct known){ .row = { .device = c->device, .handle = handle, .parent = parent } };
	return &c->known[c->n++];
}

static void on_qdisc(void *ctx, const struct nlmsghdr *h, const uint8_t *payload, uint32_t len)
{
	char kind[QDISC_KIND] = "";
	struct collect *c = ctx;
	struct oal_queue_row row;
	struct known *q;
	struct tcmsg tc;
	int ifindex;

	if (h->nlmsg_type != RTM_NEWQDISC || len < sizeof tc)
		return;
	memcpy(&tc, payload, sizeof tc);
	if (tc.tcm_ifindex != (int)c->interface.index)
		return; /* the kernel dumps all interfaces */
	q = find(c, tc.tcm_handle, tc.tcm_parent);
	if (!q)
		return;
	q->seen_at = c->now_tick;
	if (q->raw_len == len && !memcmp(q->raw, payload, len))
		return;
	q->raw_len = len <= RAW ? len : 0;
	memcpy(q->raw, payload, q->raw_len);
	if (!qdisc_parse(payload, len, &row, &ifindex, kind) || !strcmp(kind, "noqueue")) /* it has nothing to count */
		return;
	if (strcmp(q->kind, kind)) { /* new, or replaced by one of another kind under the same handle */
		if (q->kind[0])
			pipeline_gone(c->pipeline, OAL_QUEUE, &q->row);
		memcpy(q->kind, kind, QDISC_KIND);
		q->row.kind = pipeline_name(c->pipeline, kind);
	}
	row.device = c->device;
	row.kind = q->row.kind;
	pipeline_row(c->pipeline, OAL_QUEUE, &row);
}

/* Forgets what was not seen at the tick `at`; with UINT64_MAX, everything. */
static void forget_unseen(struct collect *c, uint64_t at)
{
	for (uint32_t i = 0; i < c->n;) {
		if (c->known[i].seen_at == at) {
			i++;
			continue;
		}
		if (c->known[i].kind[0])
			pipeline_gone(c->pipeline, OAL_QUEUE, &c->known[i].row);
		c->known[i] = c->known[--c->n];
	}
}

static void tick(void *self, const struct collector_tick *t)
{
	struct netlink_result r;
	struct collect *c = self;
	int ret;

	if (!c->interface.index || t->number < c->due_tick)
		return;
	c->due_tick = t->number + c->config->interval_ticks;
	c->now_tick = t->number;
	c->cursor = 0; /* a dump comes in the same order every time */
	ret = netlink_dump(c->nl, &c->dump, on_qdisc, c, &r);
	if (r.interrupted)
		c->counts->dumps_interrupted++;
	if (ret) {
		c->counts->netlink_errors++;
		if (interface_failed(&c->interface, ret)) {
			c->counts->interface_losses++;
			forget_unseen(c, UINT64_MAX);
		}
	} else if (!r.interrupted) {
		forget_unseen(c, t->number);
	}
}

static void second(void *self)
{
	struct collect *c = self;
	unsigned before = c->interface.index;

	if (interface_update(&c->interface)) {
		if (before)
			c->counts->interface_losses++;
		forget_unseen(c, UINT64_MAX);
		prepare(c);
	}
	interface_report(&c->interface, "qdisc");
}

static void stop(void *self)
{
	struct collect *c = self;

	netlink_close(c->nl);
	free(c);
}

static int start(void **self, const struct collector_env *env, char *err, size_t err_size)
{
	const struct config_qdisc *config = &env->config->qdisc[env->section];
	struct collect *c = calloc(1, sizeof *c);
	int ret = c ? netlink_open(&c->nl, NETLINK_ROUTE) : -ENOMEM;

	if (ret) {
		snprintf(err, err_size, "qdisc on %s: cannot start: %s", config->interface, strerror(-ret));
		free(c);
		return ret;
	}
	c->config = config;
	c->pipeline = env->pipeline;
	c->counts = env->counts;
	c->device = pipeline_name(c->pipeline, config->interface);
	interface_init(&c->interface, config->interface);
	prepare(c);
	interface_report(&c->interface, "qdisc");
	*self = c;
	return 0;
}

const struct collector_ops collect_qdisc = {
	.name = "qdisc",
	.sections = sections,
	.check = check,
	.start = start,
	.tick = tick,
	.second = second,
	.stop = stop,
	.live = true,
};
