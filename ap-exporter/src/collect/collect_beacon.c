/* Collector: the BSSs around, from the results that the last scans left in the kernel. It never scans by itself. */
#include "collect/collect_source.h"
#include "collect/nl80211_parse.h"
#include "pipeline/pipeline.h" /* pipeline_name() */

#include <errno.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/nl80211.h>

enum { PATIENCE = 20 }; /* scan results change slowly: a slow driver is asked a twentieth of the time at the most */

struct collect {
	struct collect_source source;
	struct config_beacon config;
	struct netlink_request dump;
	uint16_t device;
	uint64_t due_tick;
};

static int prepare(struct collect_source *s)
{
	struct collect *c = (struct collect *)s;
	struct genlmsghdr g = { .cmd = NL80211_CMD_GET_SCAN, .version = 1 };
	int family = netlink_family(s->nl, "nl80211");
	uint32_t ifindex = s->interface.index;

	if (family < 0)
		return family;
	netlink_request(&c->dump, (uint16_t)family, NLM_F_DUMP, &g, sizeof g);
	netlink_append(&c->dump, NL80211_ATTR_IFINDEX, &ifindex, sizeof ifindex);
	c->due_tick = 0;
	return 0;
}

static void forget(struct collect_source *s)
{
	samples_all_gone(s->samples, OAL_BEACON, ((struct collect *)s)->device);
}

static const struct collect_kind kind = {
	.name = "beacon",
	.protocol = NETLINK_GENERIC,
	.family = "nl80211",
	.prepare = prepare,
	.forget = forget,
};

static uint32_t sections(const struct config *c)
{
	return c->n_beacon;
}

static int check(const struct config *c, uint32_t section, char *err, size_t err_size)
{
	return collect_source_check(&kind, c->beacon[section].interface, err, err_size);
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
	samples_row(c->source.samples, OAL_BEACON, &row);
}

static void tick(void *self, const struct collector_tick *t)
{
	struct netlink_result r;
	struct collect *c = self;
	int ret;

	if (!c->source.interface.index || t->number < c->due_tick)
		return;
	samples_round(c->source.samples);
	ret = netlink_dump(c->source.nl, &c->dump, on_bss, c, &r);
	c->due_tick = t->number + pace_interval(c->config.interval_ticks, t->pace, r.took_us, PATIENCE);
	if (!ret && !r.interrupted)
		samples_unseen_gone(c->source.samples, OAL_BEACON, c->device);
	collect_source_settle(&c->source, ret == -ENOENT ? 0 : ret, &r); /* ENOENT: no scan yet */
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
	const struct config_beacon *config = &env->config->beacon[env->section];
	int ret = collect_source_start(self, sizeof(struct collect), &kind, config->interface, env, err, err_size);

	if (!ret) {
		struct collect *c = *self;

		c->config = *config;
		c->device = pipeline_name(env->pipeline, config->interface);
	}
	return ret;
}

const struct collector_ops collect_beacon = {
	.name = "beacon",
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
