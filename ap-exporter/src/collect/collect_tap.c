/* Collector: TCP headers of a Wi-Fi port, both directions: with the addresses and the Ethernet address of the station,
 * whatever NAT makes of them. */
#include "collect/collector.h"

#include "base/json.h"
#include "base/log.h"
#include "collect/tap_stations.h"
#include "pipeline/pipeline.h"
#include "tap/tap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	SNAPLEN = 160, /* bytes of a frame that a packet socket keeps: two tags, IPv6, TCP with all options */
	REASON = 512, /* bytes of why a tap cannot be had */
};

struct collect {
	struct pipeline *pipeline;
	struct collector_counts *counts;
	const char *interface;
	const struct tap_ops *ops;
	void *tap;
	struct tap_stats stats; /* as counted so far */
	struct tap_stations *stations;
	char instead[REASON]; /* why it is not the tap that comes first; empty: it is */
};

/* In the order in which `auto` takes them. */
static const struct tap_ops *const taps[] = {
#ifdef HAVE_BPF
	&tap_bpf,
#endif
	&tap_packet, NULL
};

static uint32_t sections(const struct config *c)
{
	return c->n_tap;
}

static struct tap_config tap_of(const struct config *c, uint32_t section)
{
	return (struct tap_config){
		.section = "tap", .interface = c->tap[section].interface, .ring_kb = c->tap[section].ring_kb,
		.snaplen = SNAPLEN, .max_stations = c->exporter.max_stations,
	};
}

static bool wanted(const struct config_tap *c, const struct tap_ops *ops)
{
	return !strcmp(c->tap, "auto") || !strcmp(c->tap, ops->name);
}

static void not_built(const struct config_tap *c, char *err, size_t err_size)
{
	snprintf(err, err_size, "tap on %s: this ap-exporter was built without the tap '%s': use the package with it, "
		 "or set option 'tap'", c->interface, c->tap);
}

static int check(const struct config *c, uint32_t section, char *err, size_t err_size)
{
	const struct tap_config config = tap_of(c, section);
	int ret = -EOPNOTSUPP;

	not_built(&c->tap[section], err, err_size);
	for (unsigned i = 0; taps[i] && ret; i++)
		if (wanted(&c->tap[section], taps[i]))
			ret = taps[i]->check(&config, err, err_size);
	return ret;
}

/* What comes in by the Wi-Fi port goes up. */
static void take(void *ctx, const struct tap_frame *f)
{
	pipeline_frame(((struct collect *)ctx)->pipeline, f->bytes, f->captured, f->length, f->t_us,
		       f->outgoing ? PIPELINE_DOWN : PIPELINE_UP);
}

static void count(struct collect *c)
{
	const struct tap_stats before = c->stats;

	c->ops->stats(c->tap, &c->stats);
	c->counts->ring_drops += c->stats.overruns - before.overruns;
	c->counts->interface_losses += c->stats.losses - before.losses;
}

static void before_tick(void *self, const struct collector_tick *t)
{
	struct collect *c = self;

	c->ops->read(c->tap, (int64_t)(t->due_us - t->monotonic_us), take, c);
	count(c);
}

static void second(void *self)
{
	struct collect *c = self;

	c->ops->second(c->tap);
	count(c);
	tap_stations_second(c->stations);
}

static void stop(void *self)
{
	struct collect *c = self;

	tap_stations_free(c->stations);
	c->ops->close(c->tap);
	free(c);
}

/* The first tap that is wanted and can be had. */
static int open_tap(struct collect *c, const struct config_tap *section, const struct tap_config *config, char *err,
		    size_t err_size)
{
	int ret = -EOPNOTSUPP;

	not_built(section, err, err_size);
#ifndef HAVE_BPF
	if (!strcmp(section->tap, "auto"))
		snprintf(c->instead, sizeof c->instead, "this ap-exporter was built without them");
#endif
	for (unsigned i = 0; taps[i]; i++) {
		if (!wanted(section, taps[i]))
			continue;
		if (c->ops)
			snprintf(c->instead, sizeof c->instead, "%s", err);
		c->ops = taps[i];
		ret = taps[i]->open(&c->tap, config, err, err_size);
		if (!ret)
			break;
	}
	return ret;
}

static int start(void **self, const struct collector_env *env, char *err, size_t err_size)
{
	const struct config_tap *section = &env->config->tap[env->section];
	const struct tap_config config = tap_of(env->config, env->section);
	struct collect *c = calloc(1, sizeof *c);
	int ret;

	if (!c) {
		snprintf(err, err_size, "tap on %s: out of memory", section->interface);
		return -ENOMEM;
	}
	c->pipeline = env->pipeline;
	c->counts = env->counts;
	c->interface = section->interface;
	ret = open_tap(c, section, &config, err, err_size);
	if (ret) {
		free(c);
		return ret;
	}
	ret = tap_stations_new(&c->stations, c->pipeline, c->interface, c->ops, c->tap);
	if (ret) {
		snprintf(err, err_size, "tap on %s: out of memory", section->interface);
		stop(c);
		return ret;
	}
	if (c->instead[0])
		log_warn("tap on %s: a packet socket instead of tc programs: %s", section->interface, c->instead);
	*self = c;
	return 0;
}

static size_t alarm(const void *self, char *buf, size_t size)
{
	return tap_stations_alarm(((const struct collect *)self)->stations, buf, size);
}

static void json(const void *self, struct json *j)
{
	const struct collect *c = self;

	json_add(j, "{\"interface\": ");
	json_string(j, c->interface);
	json_add(j, ", \"tap\": \"%s\", \"attached\": %s", c->ops->name, c->stats.attached ? "true" : "false");
	json_count(j, "frames", c->stats.frames);
	json_count(j, "packets", c->stats.packets);
	json_count(j, "overruns", c->stats.overruns);
	json_count(j, "losses", c->stats.losses);
	tap_stations_json(c->stations, j);
	json_add(j, ", \"instead\": ");
	json_string(j, c->instead);
	json_add(j, ", \"last_error\": ");
	json_string(j, c->stats.last_error ? c->stats.last_error : "");
	json_add(j, "}");
}

const struct collector_ops collect_tap = {
	.name = "tap",
	.sections = sections,
	.check = check,
	.start = start,
	.before_tick = before_tick,
	.second = second,
	.alarm = alarm,
	.json_list = "taps",
	.json = json,
	.stop = stop,
	.live = true,
};
