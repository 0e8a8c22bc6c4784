/*
 * Collector: stations, the channel and the interface's own transmit queue, from nl80211.
 * Stations with traffic are sampled at every tick. The others, and those that are new or have left, are looked at every
 * idle_interval_ticks with a dump of all.
 */
#include "collect/collector.h"

#include "packet/interface.h"
#include "base/log.h"
#include "collect/netlink.h"
#include "collect/nl80211_parse.h"
#include "pipeline/pipeline.h"

#include <errno.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/nl80211.h>
#include <stdlib.h>
#include <string.h>

/* So many packets between two looks make an idle station an active one: more than keep-alives and ARP. */
#define ACTIVE_PKTS 4

struct station {
	struct nl80211_station data;
	struct netlink_request get;
	uint64_t traffic_at; /* tick of the last traffic seen; the station is active for active_hold_ticks from there */
	uint64_t seen_at;    /* tick of the last answer about it */
	uint8_t ac_sent;
	bool used, active;
};

struct collect {
	const struct config_nl80211 *config;
	struct pipeline *pipeline;
	struct collector_counts *counts;
	struct netlink *nl;
	struct interface interface;
	uint16_t device, kind; /* names */
	struct netlink_request dump, survey, get_interface;
	bool can_survey, survey_told;
	uint64_t now_tick, now_us;
	uint64_t dump_at, survey_at, interface_at; /* ticks at which the next one is due */
	uint32_t n_active, n_used, max, cursor;
	bool active_only; /* of the dump that is being read */
	struct oal_channel_row channel;
	bool has_channel, has_queue;
	uint16_t width_mhz;
	uint64_t queue_bytes;
	uint32_t refused, refused_told; /* stations beyond max_stations */
	struct netlink_request **gets;
	struct station stations[];
};

static uint32_t sections(const struct config *c)
{
	return c->n_nl80211;
}

static int check(const struct config *c, uint32_t section, char *err, size_t err_size)
{
	struct netlink *nl = NULL;
	int ret = netlink_open(&nl, NETLINK_GENERIC);

	if (!ret)
		ret = netlink_family(nl, "nl80211");
	netlink_close(nl);
	if (ret < 0)
		snprintf(err, err_size, "nl80211 on %s: this kernel does not offer nl80211 (%s): load cfg80211, or remove the section",
			 c->nl80211[section].interface, strerror(-ret));
	return ret < 0 ? ret : 0;
}

static void build(struct netlink_request *r, int family, uint8_t cmd, uint16_t flags, uint32_t ifindex)
{
	struct genlmsghdr g = { .cmd = cmd, .version = 1 };

	netlink_request(r, (uint16_t)family, flags, &g, sizeof g);
	netlink_put(r, NL80211_ATTR_IFINDEX, &ifindex, sizeof ifindex);
}

/* Builds all requests for the interface's present index. 0 or a negative errno. */
static int prepare(struct collect *c)
{
	int family = netlink_family(c->nl, "nl80211"); /* another id after the module was reloaded */

	if (family < 0)
		return family;
	build(&c->dump, family, NL80211_CMD_GET_STATION, NLM_F_DUMP, c->interface.index);
	build(&c->survey, family, NL80211_CMD_GET_SURVEY, NLM_F_DUMP, c->interface.index);
	build(&c->get_interface, family, NL80211_CMD_GET_INTERFACE, 0, c->interface.index);
	c->can_survey = true;
	c->dump_at = c->survey_at = c->interface_at = 0;
	return 0;
}

static void forget(struct collect *c, struct station *s)
{
	pipeline_gone(c->pipeline, OAL_STATION, &s->data.row);
	for (unsigned a = 0; a < NL80211_ACS; a++)
		if (s->ac_sent >> a & 1)
			pipeline_gone(c->pipeline, OAL_STATION_AC, &s->data.ac[a]);
	if (s->active)
		c->n_active--;
	s->used = s->active = false;
	c->n_used--;
}

static void forget_all(struct collect *c)
{
	for (uint32_t i = 0; i < c->max; i++)
		if (c->stations[i].used)
			forget(c, &c->stations[i]);
	if (c->has_channel)
		pipeline_gone(c->pipeline, OAL_CHANNEL, &c->channel);
	if (c->has_queue) {
		struct oal_queue_row q = { .device = c->device, .kind = c->kind };

		pipeline_gone(c->pipeline, OAL_QUEUE, &q);
	}
	c->has_channel = c->has_queue = false;
}

/* Answers of a dump come in the same order every time: the next one is looked for behind the last. */
static struct station *find(struct collect *c, uint64_t mac)
{
	struct station *unused = NULL;

	for (uint32_t k = 0; k < c->max; k++) {
		uint32_t i = c->cursor + k < c->max ? c->cursor + k : c->cursor + k - c->max;
		struct station *s = &c->stations[i];

		if (s->used && s->data.row.mac == mac) {
			c->cursor = i + 1 < c->max ? i + 1 : 0;
			return s;
		}
		if (!s->used && !unused)
			unused = s;
	}
	if (!unused) {
		c->refused++;
		return NULL;
	}
	memset(unused, 0, sizeof *unused);
	unused->used = true;
	unused->data.row.mac = mac;
	unused->data.row.device = c->device;
	for (unsigned a = 0; a < NL80211_ACS; a++) {
		unused->data.ac[a].mac = mac;
		unused->data.ac[a].device = c->device;
		unused->data.ac[a].ac = (uint8_t)a;
	}
	{
		uint8_t octets[6];
		uint16_t family;

		memcpy(&family, c->dump.bytes + 4, sizeof family); /* nlmsg_type */
		build(&unused->get, family, NL80211_CMD_GET_STATION, 0, c->interface.index);
		for (int i = 0; i < 6; i++)
			octets[i] = (uint8_t)(mac >> (40 - 8 * i));
		netlink_put(&unused->get, NL80211_ATTR_MAC, octets, sizeof octets);
	}
	c->n_used++;
	return unused;
}

static void judge_activity(struct collect *c, struct station *s, uint32_t moved)
{
	uint64_t hold_us = (uint64_t)c->config->active_hold_ticks * OAL_SETTING_TICK_US;
	bool traffic = s->active ? moved > 0 : moved >= ACTIVE_PKTS;

	if (!s->seen_at) /* a station that has just come is about to have some */
		traffic = true;

	for (unsigned a = 0; a < NL80211_ACS; a++)
		traffic |= s->data.ac[a].backlog_pkts > 0;
	if (!s->active && !traffic)
		traffic = pipeline_station_active(c->pipeline, s->data.row.mac, c->now_us > hold_us ? c->now_us - hold_us : 0);
	if (traffic)
		s->traffic_at = c->now_tick;
	else if (s->active && c->now_tick - s->traffic_at >= c->config->active_hold_ticks)
		c->n_active--, s->active = false;
	if (traffic && !s->active)
		c->n_active++, s->active = true;
	s->data.row.interval_ticks = s->active ? 1 : (uint16_t)c->config->idle_interval_ticks;
}

static void on_station(void *ctx, const struct nlmsghdr *h, const uint8_t *payload, uint32_t len)
{
	struct collect *c = ctx;
	struct nl_attr info;
	struct station *s;
	uint32_t before;
	uint64_t mac;

	(void)h;
	if (len < GENL_HDRLEN || !nl80211_find_station(payload + GENL_HDRLEN, len - GENL_HDRLEN, &mac, &info))
		return;
	s = find(c, mac);
	if (!s)
		return;
	if (c->active_only && !s->active && s->seen_at)
		return;
	before = s->data.row.rx_pkts + s->data.row.tx_pkts;
	nl80211_parse_station(&s->data, &info);
	judge_activity(c, s, s->data.row.rx_pkts + s->data.row.tx_pkts - before);
	s->seen_at = c->now_tick;
	pipeline_row(c->pipeline, OAL_STATION, &s->data.row);
	for (unsigned a = 0; a < NL80211_ACS; a++) {
		uint8_t bit = (uint8_t)(1u << a);

		if (!(s->data.ac_used & bit) || (!(s->data.ac_changed & bit) && (s->ac_sent & bit)))
			continue;
		pipeline_row(c->pipeline, OAL_STATION_AC, &s->data.ac[a]);
		s->ac_sent |= bit;
	}
}

static void lost_interface(struct collect *c)
{
	c->counts->interface_losses++;
	forget_all(c);
}

/* Counts what an exchange met. True: it can be gone on with. */
static bool settle(struct collect *c, int ret, const struct netlink_result *r)
{
	if (r->interrupted)
		c->counts->dumps_interrupted++;
	if (!ret)
		return true;
	c->counts->netlink_errors++;
	if (interface_failed(&c->interface, ret))
		lost_interface(c);
	return false;
}

/* A station that the dump did not name has left, unless asking for it by address finds it: a dump that is interrupted by
 * another station's leaving skips one. */
static void ask_for_missing(struct collect *c)
{
	for (uint32_t i = 0; i < c->max && c->interface.index; i++) {
		struct station *s = &c->stations[i];
		struct netlink_request *one = &s->get;
		struct netlink_result r;
		int ret;

		if (!s->used || s->seen_at == c->now_tick)
			continue;
		ret = netlink_get(c->nl, &one, 1, on_station, c, &r);
		if (ret < 0)
			settle(c, ret, &r);
		else if (r.error == -ENODEV)
			settle(c, r.error, &r);
		else if (r.error)
			forget(c, s);
	}
}

static void sample_all(struct collect *c)
{
	struct netlink_result r;

	c->active_only = false;
	c->cursor = 0;
	if (settle(c, netlink_dump(c->nl, &c->dump, on_station, c, &r), &r))
		ask_for_missing(c);
}

static void sample_active(struct collect *c)
{
	struct netlink_result r;
	unsigned n = 0;
	int ret;

	c->cursor = 0;
	c->active_only = true;
	if (c->n_active > 2 && c->n_active * 4 >= c->n_used * 3) { /* nearly all: one dump is cheaper than many requests */
		settle(c, netlink_dump(c->nl, &c->dump, on_station, c, &r), &r);
		return;
	}
	for (uint32_t i = 0; i < c->max && n < c->n_active; i++)
		if (c->stations[i].active)
			c->gets[n++] = &c->stations[i].get;
	ret = netlink_get(c->nl, c->gets, n, on_station, c, &r);
	if (!ret && r.error == -ENODEV)
		ret = r.error;
	settle(c, ret, &r);
	if (r.failed)
		c->dump_at = c->now_tick + 1; /* one has left: see who is there */
}

static void on_survey(void *ctx, const struct nlmsghdr *h, const uint8_t *payload, uint32_t len)
{
	struct collect *c = ctx;
	struct oal_channel_row row;

	(void)h;
	if (len < GENL_HDRLEN || !nl80211_parse_survey(payload + GENL_HDRLEN, len - GENL_HDRLEN, &row))
		return;
	row.device = c->device;
	row.width_mhz = c->width_mhz;
	if (c->has_channel && row.frequency_mhz != c->channel.frequency_mhz)
		pipeline_gone(c->pipeline, OAL_CHANNEL, &c->channel);
	c->channel = row;
	c->has_channel = true;
	pipeline_row(c->pipeline, OAL_CHANNEL, &row);
}

static void sample_survey(struct collect *c)
{
	struct netlink_result r;
	int ret = netlink_dump(c->nl, &c->survey, on_survey, c, &r);

	if (ret == -EOPNOTSUPP || ret == -ENOENT) /* the driver has no survey */
		c->can_survey = false;
	else
		settle(c, ret, &r);
}

static void on_interface(void *ctx, const struct nlmsghdr *h, const uint8_t *payload, uint32_t len)
{
	struct nl80211_interface i;
	struct oal_queue_row row;
	struct collect *c = ctx;

	(void)h;
	if (len < GENL_HDRLEN)
		return;
	nl80211_parse_interface(payload + GENL_HDRLEN, len - GENL_HDRLEN, &i);
	c->width_mhz = i.width_mhz;
	if (!i.has_txq)
		return;
	c->queue_bytes += (uint32_t)(i.txq.tx_bytes - (uint32_t)c->queue_bytes); /* the kernel counts 32 bits */
	row = (struct oal_queue_row){
		.device = c->device,
		.kind = c->kind,
		.bytes = c->queue_bytes,
		.pkts = i.txq.tx_pkts,
		.drops = i.txq.drops,
		.overlimits = i.txq.overlimit,
		.backlog_bytes = i.txq.backlog_bytes,
		.qlen_pkts = i.txq.backlog_pkts,
		.ecn_marks = i.txq.ecn_marks,
	};
	c->has_queue = true;
	pipeline_row(c->pipeline, OAL_QUEUE, &row);
}

static void sample_interface(struct collect *c)
{
	struct netlink_request *one = &c->get_interface;
	struct netlink_result r;
	int ret = netlink_get(c->nl, &one, 1, on_interface, c, &r);

	settle(c, ret ? ret : r.error, &r);
}

static void tick(void *self, const struct collector_tick *t)
{
	struct collect *c = self;

	c->now_tick = t->number;
	c->now_us = t->due_us;
	if (!c->interface.index)
		return;
	if (t->number >= c->interface_at) {
		c->interface_at = t->number + c->config->queue_interval_ticks;
		sample_interface(c);
	}
	if (c->interface.index && t->number >= c->dump_at) {
		c->dump_at = t->number + c->config->idle_interval_ticks;
		sample_all(c);
	} else if (c->interface.index && c->n_active) {
		sample_active(c);
	}
	if (c->interface.index && c->can_survey && t->number >= c->survey_at) {
		c->survey_at = t->number + c->config->channel_interval_ticks;
		sample_survey(c);
	}
}

static void second(void *self)
{
	struct collect *c = self;

	if (interface_update(&c->interface)) {
		forget_all(c); /* another index is another interface, with counters of its own */
		if (c->interface.index && prepare(c) < 0)
			c->interface.index = 0; /* nl80211 is not back yet */
	}
	interface_report(&c->interface, "nl80211");
	if (!c->can_survey && c->interface.index && !c->survey_told) {
		log_info("nl80211: the driver of %s has no channel survey", c->interface.name);
		c->survey_told = true;
	}
	if (c->refused != c->refused_told)
		log_warn("nl80211: more than %u stations on %s: raise 'option max_stations'", c->max, c->interface.name);
	c->refused_told = c->refused;
}

static void stop(void *self)
{
	struct collect *c = self;

	netlink_close(c->nl);
	free(c->gets);
	free(c);
}

static int start(void **self, const struct collector_env *env, char *err, size_t err_size)
{
	const struct config_nl80211 *config = &env->config->nl80211[env->section];
	uint32_t max = env->config->exporter.max_stations;
	struct collect *c = calloc(1, sizeof *c + max * sizeof c->stations[0]);
	int ret = -ENOMEM;

	if (c)
		c->gets = calloc(max, sizeof *c->gets);
	if (!c || !c->gets)
		goto fail;
	c->config = config;
	c->pipeline = env->pipeline;
	c->counts = env->counts;
	c->max = max;
	c->device = pipeline_name(c->pipeline, config->interface);
	c->kind = pipeline_name(c->pipeline, "mac80211");
	ret = netlink_open(&c->nl, NETLINK_GENERIC);
	if (ret)
		goto fail;
	interface_init(&c->interface, config->interface);
	ret = prepare(c);
	if (ret)
		goto fail;
	interface_report(&c->interface, "nl80211");
	*self = c;
	return 0;
fail:
	snprintf(err, err_size, "nl80211 on %s: cannot start: %s", config->interface, strerror(-ret));
	if (c)
		stop(c);
	return ret;
}

const struct collector_ops collect_nl80211 = {
	.name = "nl80211",
	.sections = sections,
	.check = check,
	.start = start,
	.tick = tick,
	.second = second,
	.stop = stop,
	.live = true,
};
