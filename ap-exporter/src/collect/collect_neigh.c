/* Collector: which station has which address, from the kernel's neighbour table: for an AP that routes. */
#include "collect/collector.h"

#include "packet/interface.h"
#include "collect/netlink.h"
#include "pipeline/pipeline.h"
#include "collect/rtnetlink_parse.h"

#include <errno.h>
#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct collect {
	const struct config_neigh *config;
	struct pipeline *pipeline;
	struct collector_counts *counts;
	struct netlink *nl;
	struct interface interface;
	struct netlink_request dump;
	uint64_t due_us;
};

static uint32_t sections(const struct config *c)
{
	return c->n_neigh;
}

static int check(const struct config *c, uint32_t section, char *err, size_t err_size)
{
	struct netlink *nl = NULL;
	int ret = netlink_open(&nl, NETLINK_ROUTE);

	netlink_close(nl);
	if (ret)
		snprintf(err, err_size, "neigh on %s: cannot open rtnetlink: %s", c->neigh[section].interface, strerror(-ret));
	return ret;
}

static void prepare(struct collect *c)
{
	struct ndmsg nd = { .ndm_family = AF_UNSPEC };
	uint32_t ifindex = c->interface.index;

	netlink_request(&c->dump, RTM_GETNEIGH, NLM_F_DUMP, &nd, sizeof nd);
	netlink_put(&c->dump, NDA_IFINDEX, &ifindex, sizeof ifindex);
	c->due_us = 0;
}

static void on_neighbour(void *ctx, const struct nlmsghdr *h, const uint8_t *payload, uint32_t len)
{
	struct collect *c = ctx;
	struct neighbour n;

	if (h->nlmsg_type != RTM_NEWNEIGH || !neighbour_parse(payload, len, &n))
		return;
	if (n.ifindex == (int)c->interface.index)
		pipeline_station_addr(c->pipeline, n.ip, n.ip_len, n.mac);
}

static void tick(void *self, const struct collector_tick *t)
{
	struct netlink_result r;
	struct collect *c = self;
	int ret;

	if (!c->interface.index || t->monotonic_us < c->due_us)
		return;
	c->due_us = t->monotonic_us + (uint64_t)c->config->interval_ms * 1000;
	ret = netlink_dump(c->nl, &c->dump, on_neighbour, c, &r);
	if (r.interrupted)
		c->counts->dumps_interrupted++;
	if (!ret)
		return;
	c->counts->netlink_errors++;
	if (interface_failed(&c->interface, ret))
		c->counts->interface_losses++;
}

static void second(void *self)
{
	struct collect *c = self;

	if (interface_update(&c->interface))
		prepare(c);
	interface_report(&c->interface, "neigh");
}

static void stop(void *self)
{
	struct collect *c = self;

	netlink_close(c->nl);
	free(c);
}

static int start(void **self, const struct collector_env *env, char *err, size_t err_size)
{
	const struct config_neigh *config = &env->config->neigh[env->section];
	struct collect *c = calloc(1, sizeof *c);
	int ret = c ? netlink_open(&c->nl, NETLINK_ROUTE) : -ENOMEM;

	if (ret) {
		snprintf(err, err_size, "neigh on %s: cannot start: %s", config->interface, strerror(-ret));
		free(c);
		return ret;
	}
	c->config = config;
	c->pipeline = env->pipeline;
	c->counts = env->counts;
	interface_init(&c->interface, config->interface);
	prepare(c);
	interface_report(&c->interface, "neigh");
	*self = c;
	return 0;
}

const struct collector_ops collect_neigh = {
	.name = "neigh",
	.sections = sections,
	.check = check,
	.start = start,
	.tick = tick,
	.second = second,
	.stop = stop,
	.live = true,
};
