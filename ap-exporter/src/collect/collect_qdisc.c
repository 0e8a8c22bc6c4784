/* Collector: queueing disciplines of an interface, from rtnetlink. */
#include "collect/collect_source.h"
#include "collect/rtnetlink_parse.h"
#include "pipeline/pipeline.h" /* pipeline_name() */

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

enum {
	MAX_SINGLE = 8, /* of so many known ones each is asked for by itself; a dump is of every interface there is */
	SINGLE_AGAIN_TICKS = 2500, /* ten seconds of dumps after one that could not be had by itself */
	DUMP_TICKS = 250, /* a second: then a new one is found */
	MAX_QDISCS = 64, /* of one interface: mq has one per hardware queue */
	PATIENCE = 4, /* of an answer that takes longer than a tick, asked a quarter of the time at the most */
	RAW = 512, /* bytes of a message that are kept: those of one qdisc; a longer one is parsed every time */
};

struct known {
	struct oal_queue_row row; /* its keys, for when it goes */
	char kind[QDISC_KIND];
	uint64_t seen_at;
	uint32_t raw_len;
	uint8_t raw[RAW]; /* the message as last seen: an unchanged one is not parsed */
	struct netlink_request get;
};

struct collect {
	struct collect_source source;
	struct config_qdisc config;
	struct netlink_request dump;
	uint16_t device;
	uint64_t now_tick, due_tick;
	uint64_t dump_tick; /* at which all are looked for again; until then those that are known are asked for */
	uint64_t single_tick; /* before it they are not: the kernel refused */
	uint32_t n, cursor;
	struct known known[MAX_QDISCS];
};

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
	if (c->n == MAX_QDISCS)
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
	if (tc.tcm_ifindex != (int)c->source.interface.index)
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
			samples_queue_gone(c->source.samples, &q->row, q->kind);
		memcpy(q->kind, kind, QDISC_KIND);
	}
	row.device = c->device;
	samples_queue(c->source.samples, &row, kind);
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
			samples_queue_gone(c->source.samples, &c->known[i].row, c->known[i].kind);
		c->known[i] = c->known[--c->n];
	}
}

static int prepare(struct collect_source *s)
{
	struct collect *c = (struct collect *)s;
	struct tcmsg tc = { .tcm_family = AF_UNSPEC, .tcm_ifindex = (int)s->interface.index };

	netlink_request(&c->dump, RTM_GETQDISC, NLM_F_DUMP, &tc, sizeof tc);
	c->due_tick = c->dump_tick = c->single_tick = 0;
	return 0;
}

/* By parent and handle, as the kernel looks for it; it answers to those who listen, and by the echo to who asks. */
static void request_one(const struct collect *c, struct known *q)
{
	const struct tcmsg tc = { .tcm_family = AF_UNSPEC,
				  .tcm_ifindex = (int)c->source.interface.index,
				  .tcm_handle = q->row.handle,
				  .tcm_parent = q->row.parent };

	netlink_request(&q->get, RTM_GETQDISC, NLM_F_ECHO, &tc, sizeof tc);
}

static void forget(struct collect_source *s)
{
	forget_unseen((struct collect *)s, UINT64_MAX);
}

static const struct collect_kind kind = {
	.name = "qdisc",
	.protocol = NETLINK_ROUTE,
	.prepare = prepare,
	.forget = forget,
};

static uint32_t sections(const struct config *c)
{
	return c->n_qdisc;
}

static int check(const struct config *c, uint32_t section, char *err, size_t err_size)
{
	return collect_source_check(&kind, c->qdisc[section].interface, err, err_size);
}

/* Asks for all of every interface: that is what there is. Returns how long it took, µs. */
static uint32_t sample_all(struct collect *c)
{
	struct netlink_result r;
	int ret = netlink_dump(c->source.nl, &c->dump, on_qdisc, c, &r);

	c->dump_tick = c->now_tick + DUMP_TICKS;
	if (!collect_source_settle(&c->source, ret, &r) || r.interrupted)
		c->dump_tick = 0;
	else
		forget_unseen(c, c->now_tick);
	return r.took_us;
}

/* Asks for each that is known. False: one of them cannot be had so, as those under an mq without a handle. */
static bool sample_known(struct collect *c, uint32_t *took_us)
{
	struct netlink_request *gets[MAX_SINGLE];
	struct netlink_result r;
	unsigned n = 0;

	if (c->now_tick >= c->dump_tick || c->now_tick < c->single_tick || c->n > MAX_SINGLE)
		return false;
	for (uint32_t i = 0; i < c->n; i++) {
		if (!c->known[i].kind[0])
			continue; /* noqueue */
		request_one(c, &c->known[i]);
		gets[n++] = &c->known[i].get;
	}
	if (netlink_get(c->source.nl, gets, n, on_qdisc, c, &r) == 0 && !r.failed) {
		*took_us = r.took_us;
		return true;
	}
	c->single_tick = c->now_tick + SINGLE_AGAIN_TICKS;
	return false;
}

static void tick(void *self, const struct collector_tick *t)
{
	struct collect *c = self;
	uint32_t took_us;

	if (!c->source.interface.index || t->number < c->due_tick)
		return;
	c->now_tick = t->number;
	c->cursor = 0; /* a dump comes in the same order every time */
	if (!sample_known(c, &took_us))
		took_us = sample_all(c);
	c->due_tick = t->number + pace_interval(c->config.interval_ticks, t->pace, took_us, PATIENCE);
}

static uint64_t due(void *self)
{
	const struct collect *c = self;

	return c->source.interface.index ? c->due_tick : 0;
}

static void second(void *self)
{
	struct collect *c = self;
	const unsigned before = c->source.interface.index;

	collect_source_second(&c->source);
	if (before && c->source.interface.index != before) /* it went without a request that failed */
		samples_count(c->source.samples, &(struct collector_counts){ .interface_losses = 1 });
}

static void stop(void *self)
{
	collect_source_stop(self);
}

static int start(void **self, const struct collector_env *env, char *err, size_t err_size)
{
	const struct config_qdisc *config = &env->config->qdisc[env->section];
	int ret = collect_source_start(self, sizeof(struct collect), &kind, config->interface, env, err, err_size);

	if (!ret) {
		struct collect *c = *self;

		c->config = *config;
		c->device = pipeline_name(env->pipeline, config->interface);
	}
	return ret;
}

const struct collector_ops collect_qdisc = {
	.name = "qdisc",
	.sections = sections,
	.check = check,
	.start = start,
	.tick = tick,
	.due = due,
	.second = second,
	.stop = stop,
	.live = true,
	.thread = COLLECTOR_SHARED,
};
