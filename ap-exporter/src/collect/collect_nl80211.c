/* Collector: stations (collect_stations.h), the channel and the interface's own transmit queue, from nl80211. */
#include "base/clock.h"
#include "base/log.h"
#include "collect/collect_source.h"
#include "collect/collect_stations.h"
#include "collect/nl80211_parse.h"
#include "collect/survey_counters.h"
#include "kmod/kmod_source.h"
#include "pipeline/pipeline.h" /* pipeline_name() */
#include "sample/refresh.h"
#include "sample/rest.h"

#include <errno.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/nl80211.h>
#include <stdio.h>
#include <string.h>

/* An answer that takes longer than a tick is asked for this part of the time at the most: the stations wait meanwhile,
 * and some drivers ask their firmware for the survey. */
enum { SURVEY_PATIENCE = 20, QUEUE_PATIENCE = 20, LEAST_SURVEY_TICKS = 25 };
/* While the kernel module samples the stations the thread wakes for the survey. The queue of group frames, which the
 * interface's own is where stations have theirs, is then looked at once a second. */
enum { WITH_MODULE_TICKS = 250 };

struct collect {
	struct collect_source source;
	struct config_nl80211 config;
	struct collect_stations *stations; /* NULL while it starts */
	struct kmod_source *module; /* NULL: not wanted */
	bool by_module; /* the module samples the stations */
	uint16_t device, queue_kind; /* names */
	struct netlink_request survey, get_interface;
	bool can_survey, no_survey_reported;
	uint64_t survey_at, interface_at; /* ticks at which the next one is due */
	struct oal_channel_row channel;
	struct survey_counters times; /* of that channel */
	uint64_t channel_us; /* when it was last read, monotonic */
	uint64_t now_tick;
	struct refresh refresh; /* of the survey's times */
	struct refresh_seen refreshed;
	bool has_channel, has_queue;
	uint16_t width_mhz;
	uint64_t queue_bytes;
	uint32_t refused_reported; /* stations beyond max_stations */
};

/* NULL where it is not wanted, or built without its reader. */
static struct kmod_source *module_of(const struct collect *c)
{
#ifdef HAVE_KMOD
	return c->module;
#else
	return NULL;
#endif
}

static int prepare(struct collect_source *s)
{
	struct collect *c = (struct collect *)s;
	int family = netlink_family(s->nl, "nl80211"); /* another id after the module was reloaded */

	if (family < 0)
		return family;
	if (c->stations)
		collect_stations_prepare(c->stations, (uint16_t)family);
	collect_nl80211_request(&c->survey, (uint16_t)family, NL80211_CMD_GET_SURVEY, NLM_F_DUMP, s->interface.index);
	collect_nl80211_request(&c->get_interface, (uint16_t)family, NL80211_CMD_GET_INTERFACE, 0, s->interface.index);
	c->can_survey = true;
	c->survey_at = c->interface_at = 0;
	return 0;
}

static void forget(struct collect_source *s)
{
	struct collect *c = (struct collect *)s;

	collect_stations_forget(c->stations);
	if (module_of(c))
		kmod_source_end(module_of(c));
	if (c->has_channel)
		samples_gone(s->samples, OAL_CHANNEL, &c->channel);
	if (c->has_queue) {
		struct oal_queue_row q = { .device = c->device, .kind = c->queue_kind };

		samples_gone(s->samples, OAL_QUEUE, &q);
	}
	refresh_forget_samples(&c->refresh, s->samples);
	c->refreshed = (struct refresh_seen){ 0 };
	c->has_channel = c->has_queue = false;
	c->times = (struct survey_counters){ 0 };
}

static const struct collect_kind kind = {
	.name = "nl80211",
	.protocol = NETLINK_GENERIC,
	.family = "nl80211",
	.prepare = prepare,
	.forget = forget,
};

static uint32_t sections(const struct config *c)
{
	return c->n_nl80211;
}

static int check(const struct config *c, uint32_t section, char *err, size_t err_size)
{
	return collect_source_check(&kind, c->nl80211[section].interface, err, err_size);
}

static void on_survey(void *ctx, const struct nlmsghdr *h, const uint8_t *payload, uint32_t len)
{
	const uint64_t now_us = clock_monotonic_us(); /* a slow driver reads its counters long after the tick */
	struct collector_counts mended = { 0 };
	struct collect *c = ctx;
	struct oal_channel_row row;

	(void)h;
	if (len < GENL_HDRLEN || !nl80211_parse_survey(payload + GENL_HDRLEN, len - GENL_HDRLEN, &row))
		return;
	row.device = c->device;
	row.width_mhz = c->width_mhz;
	if (c->has_channel && row.frequency_mhz != c->channel.frequency_mhz) {
		samples_gone(c->source.samples, OAL_CHANNEL, &c->channel);
		c->times = (struct survey_counters){ 0 };
		c->refreshed = (struct refresh_seen){ 0 };
		c->has_channel = false;
	}
	mended.counters_mended = survey_counters_mend(&c->times, &row, (now_us - c->channel_us) / 1000);
	if (mended.counters_mended)
		samples_count(c->source.samples, &mended);
	if (c->has_channel) /* time goes on: the radio is on its channel */
		refresh_observe(&c->refresh, &c->refreshed, &c->channel, &row, (uint32_t)c->now_tick, true);
	c->channel_us = now_us;
	c->channel = row;
	c->has_channel = true;
	samples_row(c->source.samples, OAL_CHANNEL, &row);
}

/* Returns how long the driver took, µs. */
static uint32_t sample_survey(struct collect *c)
{
	struct netlink_result r;
	int ret = netlink_dump(c->source.nl, &c->survey, on_survey, c, &r);

	if (ret == -EOPNOTSUPP || ret == -ENOENT) /* the driver has no survey */
		c->can_survey = false;
	else
		collect_source_settle(&c->source, ret, &r);
	return r.took_us;
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
		.kind = c->queue_kind,
		.bytes = c->queue_bytes,
		.pkts = i.txq.tx_pkts,
		.drops = i.txq.drops,
		.overlimits = i.txq.overlimit,
		.backlog_bytes = i.txq.backlog_bytes,
		.qlen_pkts = i.txq.backlog_pkts,
		.ecn_marks = i.txq.ecn_marks,
	};
	c->has_queue = true;
	samples_row(c->source.samples, OAL_QUEUE, &row);
}

/* Returns how long the driver took, µs. */
static uint32_t sample_interface(struct collect *c)
{
	struct netlink_request *one = &c->get_interface;
	struct netlink_result r;
	int ret = netlink_get(c->source.nl, &one, 1, on_interface, c, &r);

	collect_source_settle(&c->source, ret ? ret : r.error, &r);
	return r.took_us;
}

/* Does the kernel module sample the stations? What nl80211 knew of them is then forgotten, and the other way round. */
static bool by_module(struct collect *c, const struct collector_tick *t)
{
	bool handed_over;

	if (!module_of(c))
		return false;
	c->by_module = kmod_source_samples(module_of(c), c->source.interface.index, t, &handed_over);
	if (handed_over && c->by_module)
		collect_stations_forget(c->stations);
	else if (handed_over)
		collect_stations_again(c->stations);
	return c->by_module;
}

static uint32_t queue_interval(const struct collect *c)
{
	return module_of(c) && c->by_module && c->config.queue_interval_ticks < WITH_MODULE_TICKS ? WITH_MODULE_TICKS
										 : c->config.queue_interval_ticks;
}

/* The driver is asked for its survey no faster than it renews it. */
static uint32_t survey_interval(const struct collect *c)
{
	return refresh_interval(&c->refresh, c->config.channel_interval_ticks, c->now_tick);
}

static void tick(void *self, const struct collector_tick *t)
{
	struct collect *c = self;

	c->now_tick = t->number;
	if (!by_module(c, t) && c->source.interface.index)
		collect_stations_tick(c->stations, t);
	if (c->source.interface.index && t->number >= c->interface_at)
		c->interface_at = t->number + pace_interval(queue_interval(c), t->pace, sample_interface(c),
							    QUEUE_PATIENCE);
	if (c->source.interface.index && c->can_survey && t->number >= c->survey_at)
		c->survey_at = t->number + pace_interval(survey_interval(c), t->pace, sample_survey(c),
							 SURVEY_PATIENCE);
}

/* The module's stations need nobody. */
static uint64_t due(void *self)
{
	const struct collect *c = self;
	const uint64_t survey_at = c->can_survey ? c->survey_at : UINT64_MAX;
	const uint64_t stations_at = module_of(c) && c->by_module ? UINT64_MAX : collect_stations_due(c->stations);
	const uint64_t at = survey_at < c->interface_at ? survey_at : c->interface_at;

	if (!c->source.interface.index)
		return 0;
	return stations_at < at ? stations_at : at;
}

#ifdef HAVE_KMOD
static void direct_tick(void *self, const struct collector_tick *t)
{
	struct collect *c = self;

	if (module_of(c))
		kmod_source_tick(module_of(c), t);
}

static uint32_t rest(void *self, uint32_t passed)
{
	struct collect *c = self;

	return module_of(c) ? kmod_source_rest(module_of(c), passed) : REST_FLOOD;
}

static uint64_t kernel_us(const void *self)
{
	const struct collect *c = self;

	return module_of(c) ? kmod_source_kernel_us(module_of(c)) : 0;
}

static void stations_json(const void *self, struct json *j)
{
	const struct collect *c = self;

	if (module_of(c)) {
		kmod_source_json(module_of(c), j);
		return;
	}
	json_add(j, "{\"interface\": ");
	json_string(j, c->config.interface);
	json_add(j, ", \"source\": \"nl80211\"}");
}

static const struct collector_direct direct = {
	.tick = direct_tick,
	.rest = rest,
	.kernel_us = kernel_us,
	.json = stations_json,
};
#endif

static void second(void *self)
{
	struct collect *c = self;
	const uint32_t refused = collect_stations_refused(c->stations);

	collect_source_second(&c->source);
	collect_stations_second(c->stations);
	refresh_send_samples(&c->refresh, c->source.samples);
	if (module_of(c))
		kmod_source_second(module_of(c));
	if (!c->can_survey && c->source.interface.index && !c->no_survey_reported) {
		log_info("nl80211: the driver of %s has no channel survey", c->source.interface.name);
		c->no_survey_reported = true;
	}
	if (refused != c->refused_reported)
		log_warn("nl80211: more than %u stations on %s: raise 'option max_stations'",
			 collect_stations_max(c->stations), c->source.interface.name);
	c->refused_reported = refused;
}

static void stop(void *self)
{
	struct collect *c = self;

	collect_stations_free(c->stations);
	if (module_of(c))
		kmod_source_free(module_of(c));
	collect_source_stop(self);
}

static int open_module(struct collect *c, const struct collector_env *env)
{
#ifdef HAVE_KMOD
	const struct kmod_source_config config = {
		.device = OAL_SAMPLER_DEVICE,
		.interface = c->config.interface,
		.pipeline = env->pipeline,
		.device_name = c->device,
		.max_stations = env->config->exporter.max_stations,
		.idle_interval_ticks = c->config.idle_interval_ticks,
		.active_hold_ticks = c->config.active_hold_ticks,
	};

	return strcmp(c->config.stations, "nl80211") ? kmod_source_new(&c->module, &config) : 0;
#else
	return 0;
#endif
}

static int start(void **self, const struct collector_env *env, char *err, size_t err_size)
{
	const struct config_nl80211 *config = &env->config->nl80211[env->section];
	struct collect *c;
	int ret = collect_source_start((void **)&c, sizeof *c, &kind, config->interface, env, err, err_size);

	if (ret)
		return ret;
	c->config = *config;
	if (c->config.channel_interval_ticks < LEAST_SURVEY_TICKS) {
		log_warn("nl80211 on %s: 'option channel_interval_ticks' is %u; the survey is asked for each %d ticks",
			 config->interface, c->config.channel_interval_ticks, LEAST_SURVEY_TICKS);
		c->config.channel_interval_ticks = LEAST_SURVEY_TICKS;
	}
	c->device = pipeline_name(env->pipeline, config->interface);
	c->queue_kind = pipeline_name(env->pipeline, "mac80211");
	c->refresh = (struct refresh){ .table = &refresh_channel, .device = c->device };
	c->stations = collect_stations_new(&c->source, &c->config, c->device, env->config->exporter.max_stations);
	ret = c->stations ? prepare(&c->source) : -ENOMEM;
	if (!ret)
		ret = open_module(c, env);
	if (ret) {
		snprintf(err, err_size, "nl80211 on %s: cannot start: %s", config->interface, strerror(-ret));
		stop(c);
		return ret;
	}
	*self = c;
	return 0;
}

const struct collector_ops collect_nl80211 = {
	.name = "nl80211",
	.sections = sections,
	.check = check,
	.start = start,
	.tick = tick,
	.due = due,
#ifdef HAVE_KMOD
	.direct = &direct,
#endif
	.second = second,
	.stop = stop,
	.live = true,
	.thread = COLLECTOR_RADIO,
};
