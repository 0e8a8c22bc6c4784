/* Collector: which station has which address, from the kernel's table of ARP and NDP entries: for an AP that routes. */
#include "collect/collect_source.h"
#include "collect/rtnetlink_parse.h"

#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

struct collect {
	struct collect_source source;
	struct config_neigh config;
	struct netlink_request dump;
	uint64_t due_tick;
};

static int prepare(struct collect_source *s)
{
	struct collect *c = (struct collect *)s;
	struct ndmsg nd = { .ndm_family = AF_UNSPEC };
	uint32_t ifindex = s->interface.index;

	netlink_request(&c->dump, RTM_GETNEIGH, NLM_F_DUMP, &nd, sizeof nd);
	netlink_append(&c->dump, NDA_IFINDEX, &ifindex, sizeof ifindex);
	c->due_tick = 0;
	return 0;
}

static const struct collect_kind kind = {
	.name = "neigh",
	.protocol = NETLINK_ROUTE,
	.prepare = prepare,
};

static uint32_t sections(const struct config *c)
{
	return c->n_neigh;
}

static int check(const struct config *c, uint32_t section, char *err, size_t err_size)
{
	return collect_source_check(&kind, c->neigh[section].interface, err, err_size);
}

static void on_entry(void *ctx, const struct nlmsghdr *h, const uint8_t *payload, uint32_t len)
{
	struct collect *c = ctx;
	struct address_entry e;

	if (h->nlmsg_type != RTM_NEWNEIGH || !address_entry_parse(payload, len, &e))
		return;
	if (e.ifindex == (int)c->source.interface.index)
		samples_address(c->source.samples, e.ip, e.ip_len, e.mac);
}

static void tick(void *self, const struct collector_tick *t)
{
	struct netlink_result r;
	struct collect *c = self;
	int ret;

	if (!c->source.interface.index || t->number < c->due_tick)
		return;
	ret = netlink_dump(c->source.nl, &c->dump, on_entry, c, &r);
	c->due_tick = t->number + c->config.interval_ms * 1000 / OAL_SETTING_TICK_US;
	collect_source_settle(&c->source, ret, &r);
}

static uint64_t due(void *self)
{
	const struct collect *c = self;

	return c->source.interface.index ? c->due_tick : 0;
}

static void second(void *self)
{
	collect_source_second(self);
}

static void stop(void *self)
{
	collect_source_stop(self);
}

static int start(void **self, const struct collector_env *env, char *err, size_t err_size)
{
	const struct config_neigh *config = &env->config->neigh[env->section];
	int ret = collect_source_start(self, sizeof(struct collect), &kind, config->interface, env, err, err_size);

	if (!ret)
		((struct collect *)*self)->config = *config;
	return ret;
}

const struct collector_ops collect_neigh = {
	.name = "neigh",
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
