/* Collector: neighbour BSSs, from the results that the last scans left in the kernel. It never scans by itself. */
#include "collect/collector.h"

#include "packet/interface.h"
#include "collect/netlink.h"
#include "collect/nl80211_parse.h"
#include "pipeline/pipeline.h"

#include <errno.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/nl80211.h>
#include <stdlib.h>
#include <string.h>

struct collect {
	const struct config_beacon *config;
	struct pipeline *pipeline;
	struct collector_counts *counts;
	struct netlink *nl;
	struct interface interface;
	struct netlink_request dump;
	uint16_t device;
	uint64_t due_tick;
};

static uint32_t sections(const struct config *c)
{
	return c->n_beacon;
}

static int check(const struct config *c, uint32_t section, char *err, size_t err_size)
{
	struct netlink *nl = NULL;
	int ret = netlink_open(&nl, NETLINK_GENERIC);

	if (!ret)
		ret = netlink_family(nl, "nl80211");
	netlink_close(nl);
	if (ret < 0)
		snprintf(err, err_size, "beacon on %s: this kernel does not offer nl80211 (%s): load cfg80211, or remove the section",
			 c->beacon[section].interface, strerror(-ret));
	return ret < 0 ? ret : 0;
}

static int prepare(struct collect *c)
{
	struct genlmsghdr g = { .cmd = NL80211_CMD_GET_SCAN, .version = 1 };
	int family = netlink_family(c->nl, "nl80211");
	uint32_t ifindex = c->interface.index;

	if (family < 0)
		return family;
	netlink_request(&c->dump, (uint16_t)family, NLM_F_DUMP, &g, sizeof g);
	netlink_put(&c->dump, NL80211_ATTR_IFINDEX, &ifindex, sizeof ifindex);
	c->due_tick = 0;
	return 0;
}

static void on_bss(void *ctx, const struct nlmsghdr *h, const uint8_t *payload, uint32_t len)
{
	struct oal_beacon_row row;
	struct collect *c = ctx;
	bool own;

	(void)h;
	if (len < GENL_HDRLEN || !nl80211_parse_bss(payload + GENL_HDRLEN, len - GENL_HDRLEN, &row, &own) || own)
		return;
	row.device = c->device;
	pipeline_row(c->pipeline, OAL_BEACON, &row);
}

static void tick(void *self, const struct collector_tick *t)
{
	struct netlink_result r;
	struct collect *c = self;
	int ret;

	if (!c->interface.index || t->number < c->due_tick)
		return;
	c->due_tick = t->number + c->config->interval_ticks;
	ret = netlink_dump(c->nl, &c->dump, on_bss, c, &r);
	if (r.interrupted)
		c->counts->dumps_interrupted++;
	if (!ret && !r.interrupted)
		pipeline_gone_before(c->pipeline, OAL_BEACON, c->device, t->due_us);
	if (!ret || ret == -ENOENT) /* ENOENT: no scan yet */
		return;
	c->counts->netlink_errors++;
	if (interface_failed(&c->interface, ret)) {
		c->counts->interface_losses++;
		pipeline_gone_before(c->pipeline, OAL_BEACON, c->device, UINT64_MAX);
	}
}

static void second(void *self)
{
	struct collect *c = self;

	if (interface_update(&c->interface)) {
		pipeline_gone_before(c->pipeline, OAL_BEACON, c->device, UINT64_MAX);
		if (c->interface.index && prepare(c) < 0)
			c->interface.index = 0; /* nl80211 is not back yet */
	}
	interface_report(&c->interface, "beacon");
}

static void stop(void *self)
{
	struct collect *c = self;

	netlink_close(c->nl);
	free(c);
}

static int start(void **self, const struct collector_env *env, char *err, size_t err_size)
{
	const struct config_beacon *config = &env->config->beacon[env->section];
	struct collect *c = calloc(1, sizeof *c);
	int ret = c ? netlink_open(&c->nl, NETLINK_GENERIC) : -ENOMEM;

	if (!ret) {
		c->config = config;
		c->pipeline = env->pipeline;
		c->counts = env->counts;
		c->device = pipeline_name(c->pipeline, config->interface);
		interface_init(&c->interface, config->interface);
		ret = prepare(c);
	}
	if (ret) {
		snprintf(err, err_size, "beacon on %s: cannot start: %s", config->interface, strerror(-ret));
		if (c)
			stop(c);
		return ret;
	}
	interface_report(&c->interface, "beacon");
	*self = c;
	return 0;
}

const struct collector_ops collect_beacon = {
	.name = "beacon",
	.sections = sections,
	.check = check,
	.start = start,
	.tick = tick,
	.second = second,
	.stop = stop,
	.live = true,
};
