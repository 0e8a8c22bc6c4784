/* Collector: queueing disciplines of an interface, from rtnetlink. */
#include "collect/collect_source.h"
#include "collect/rtnetlink_parse.h"
#include "pipeline/pipeline.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

enum {
	MAX_QDISCS = 64, /* of one interface: mq has one per hardware queue */
	RAW = 512, /* bytes of a message that are kept: those of one qdisc; a longer one is parsed every time */
};

struct known {
	struct oal_queue_row row; /* its keys, for when it goes */
	char kind[QDISC_KIND];
	uint64_t seen_at;
	uint32_t raw_len;
	uint8_t raw[RAW]; /* the message as last seen: an unchanged one is not parsed */
};

struct collect {
	struct collect_source source;
	const struct config_qdisc *config;
	struct netlink_request dump;
	uint16_t device;
	uint64_t now_tick, due_tick;
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
			pipeline_gone(c->source.pipeline, OAL_QUEUE, &q->row);
		memcpy(q->kind, kind, QDISC_KIND);
		q->row.kind = pipeline_name(c->source.pipeline, kind);
	}
	row.device = c->device;
	row.kind = q->row.kind;
	pipeline_row(c->source.pipeline, OAL_QUEUE, &row);
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
			pipeline_gone(c->source.pipeline, OAL_QUEUE, &c->known[i].row);
		c->known[i] = c->known[--c->n];
	}
}

static int prepare(struct collect_source *s)
{
	struct collect *c = (struct collect *)s;
	struct tcmsg tc = { .tcm_family = AF_UNSPEC, .tcm_ifindex = (int)s->interface.index };

	netlink_request(&c->dump, RTM_GETQDISC, NLM_F_DUMP, &tc, sizeof tc);
	c->due_tick = 0;
	return 0;
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

static void tick(void *self, const struct collector_tick *t)
{
	struct netlink_result r;
	struct collect *c = self;
	int ret;

	if (!c->source.interface.index || t->number < c->due_tick)
		return;
	c->due_tick = t->number + c->config->interval_ticks;
	c->now_tick = t->number;
	c->cursor = 0; /* a dump comes in the same order every time */
	ret = netlink_dump(c->source.nl, &c->dump, on_qdisc, c, &r);
	if (collect_source_settle(&c->source, ret, &r) && !r.interrupted)
		forget_unseen(c, t->number);
}

static void second(void *self)
{
	struct collect *c = self;
	const unsigned before = c->source.interface.index;

	collect_source_second(&c->source);
	if (before && c->source.interface.index != before) /* it went without a request that failed */
		c->source.counts->interface_losses++;
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

		c->config = config;
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
	.second = second,
	.stop = stop,
	.live = true,
};
