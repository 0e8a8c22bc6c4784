/* Collectors of TCP headers, both directions. `tap`: of a Wi-Fi port, with the addresses and the Ethernet address of
 * the station, whatever NAT makes of them. `packet`: of a wired port, by a packet socket. */
#include "collect/collector.h"

#include "base/json.h"
#include "base/log.h"
#include "collect/tap_stations.h"
#include "pipeline/pipeline.h"
#include "sample/rest.h"
#include "tap/tap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	SNAPLEN = 160, /* bytes of a frame that a packet socket keeps: two tags, IPv6, TCP with all options */
	PACKETS_KB = 5, /* that a KiB of a ring holds */
	REASON = 512, /* bytes of why a tap cannot be had */
};

/* A tap that was opened while there were privileges. The configurations that want it share it: one reload after the
 * other. */
struct held {
	struct tap_key {
		char section[8], interface[CONFIG_IF], which[8];
		uint32_t ring_kb, snaplen, max_stations;
	} of;
	const struct tap_ops *ops; /* NULL: a free place */
	void *tap;
	unsigned users;
	char instead[REASON];
};
enum { MOST_HELD = 2 * CONFIG_EACH };
static struct held held[MOST_HELD];

struct collect {
	struct pipeline *pipeline;
	struct collector_counts *counts;
	const char *interface;
	bool wired; /* what leaves by the port goes up */
	const struct tap_ops *ops;
	void *tap;
	struct held *held; /* where it is from; NULL: opened for this one */
	struct tap_stats stats; /* as counted so far */
	uint32_t room; /* packets that the ring holds */
	uint32_t rested_at; /* packets when it was last asked how long it may rest */
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

static uint32_t packet_sections(const struct config *c)
{
	return c->n_packet;
}

static struct tap_config tap_of(const struct config *c, uint32_t section)
{
	return (struct tap_config){
		.section = "tap", .interface = c->tap[section].interface, .ring_kb = c->tap[section].ring_kb,
		.snaplen = SNAPLEN, .max_stations = c->exporter.max_stations,
	};
}

static struct tap_config packet_of(const struct config *c, uint32_t section)
{
	const struct config_packet *p = &c->packet[section];

	return (struct tap_config){
		.section = "packet", .interface = p->interface, .ring_kb = p->ring_kb, .snaplen = p->snaplen,
	};
}

/* The first tap that is called `which`, or any with auto, and can be had: opened for `c`, or without it only checked.
 * What kept an earlier one from it goes to c->instead. */
static int choose(struct collect *c, const char *which, const struct tap_config *config, char *err, size_t err_size)
{
	const bool any = !strcmp(which, "auto");
	int ret = -EOPNOTSUPP;

	snprintf(err, err_size, "%s on %s: built without '%s'", config->section, config->interface, which);
#ifndef HAVE_BPF
	if (c && any)
		strcpy(c->instead, "built without them");
#endif
	for (unsigned i = 0; taps[i] && ret; i++) {
		if (!any && strcmp(which, taps[i]->name))
			continue;
		if (!c) {
			ret = taps[i]->check(config, err, err_size);
			continue;
		}
		if (c->ops)
			snprintf(c->instead, sizeof c->instead, "%s", err);
		c->ops = taps[i];
		ret = taps[i]->open(&c->tap, config, err, err_size);
	}
	return ret;
}

/* --- those that are held */

static struct tap_key key_of(const char *which, const struct tap_config *c)
{
	struct tap_key k;

	memset(&k, 0, sizeof k);
	strncpy(k.section, c->section, sizeof k.section - 1);
	strncpy(k.interface, c->interface, sizeof k.interface - 1);
	strncpy(k.which, which, sizeof k.which - 1);
	k.ring_kb = c->ring_kb;
	k.snaplen = c->snaplen;
	k.max_stations = c->max_stations;
	return k;
}

/* Of several alike the one that fewest use. */
static struct held *find_held(const char *which, const struct tap_config *c)
{
	const struct tap_key k = key_of(which, c);
	struct held *found = NULL;

	for (struct held *h = held; h < held + MOST_HELD; h++)
		if (h->ops && (!found || h->users < found->users) && !memcmp(&h->of, &k, sizeof k))
			found = h;
	return found;
}

static int hold(const char *which, const struct tap_config *config, char *err, size_t err_size)
{
	struct collect c = { 0 };
	struct held *h;
	int ret = choose(NULL, which, config, err, err_size);

	if (!ret)
		ret = choose(&c, which, config, err, err_size);
	if (ret)
		return ret;
	for (h = held; h->ops; h++) /* there is a place for each section */
		;
	h->of = key_of(which, config);
	h->ops = c.ops;
	h->tap = c.tap;
	memcpy(h->instead, c.instead, sizeof h->instead);
	return 0;
}

static void let_go(struct held *h)
{
	if (h->users && --h->users)
		return;
	h->ops->close(h->tap);
	h->ops = NULL;
}

int collect_taps_hold(const struct config *c, char *err, size_t err_size)
{
	struct tap_config config;
	int ret = 0;

	for (uint32_t i = 0; i < c->n_tap && !ret; i++) {
		config = tap_of(c, i);
		ret = hold(c->tap[i].tap, &config, err, err_size);
	}
	for (uint32_t i = 0; i < c->n_packet && !ret; i++) {
		config = packet_of(c, i);
		ret = hold(tap_packet.name, &config, err, err_size);
	}
	return ret;
}

void collect_taps_let_go(void)
{
	for (struct held *h = held; h < held + MOST_HELD; h++)
		if (h->ops && !h->users)
			let_go(h);
}

/* --- the collector */

static int check(const struct config *c, uint32_t section, char *err, size_t err_size)
{
	const struct tap_config config = tap_of(c, section);

	return find_held(c->tap[section].tap, &config) ? 0
						       : choose(NULL, c->tap[section].tap, &config, err, err_size);
}

static int packet_check(const struct config *c, uint32_t section, char *err, size_t err_size)
{
	const struct tap_config config = packet_of(c, section);

	return find_held(tap_packet.name, &config) ? 0 : choose(NULL, tap_packet.name, &config, err, err_size);
}

/* What comes in by a Wi-Fi port goes up, and what leaves by a wired one. */
static void read_frame(void *ctx, const struct tap_frame *f)
{
	const struct collect *c = ctx;

	pipeline_frame(c->pipeline, f->bytes, f->captured, f->length, f->t_us,
		       f->outgoing == c->wired ? PIPELINE_UP : PIPELINE_DOWN);
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

	c->ops->read(c->tap, (int64_t)(t->due_us - t->monotonic_us), read_frame, c);
	count(c);
}

/* A flow that begins fills the ring at once. */
static uint32_t rest(void *self, uint32_t passed)
{
	struct collect *c = self;
	const uint32_t ticks = rest_for((uint32_t)c->stats.packets - c->rested_at, c->room, passed);

	c->rested_at = (uint32_t)c->stats.packets;
	return ticks < REST_FLOOD ? ticks : REST_FLOOD;
}

static void second(void *self)
{
	struct collect *c = self;

	c->ops->second(c->tap);
	count(c);
	if (c->stations)
		tap_stations_second(c->stations);
}

static void stop(void *self)
{
	struct collect *c = self;

	tap_stations_free(c->stations);
	if (c->held)
		let_go(c->held);
	else
		c->ops->close(c->tap);
	free(c);
}

static int start_one(void **self, const struct collector_env *env, const char *which, const struct tap_config *config,
		     bool wired, char *err, size_t err_size)
{
	struct collect *c = calloc(1, sizeof *c);
	int ret;

	if (!c)
		goto no_memory;
	c->pipeline = env->pipeline;
	c->counts = env->counts;
	c->interface = config->interface;
	c->wired = wired;
	c->room = config->ring_kb * PACKETS_KB;
	c->held = find_held(which, config);
	if (c->held) {
		c->held->users++;
		c->ops = c->held->ops;
		c->tap = c->held->tap;
		memcpy(c->instead, c->held->instead, sizeof c->instead);
		c->ops->stats(c->tap, &c->stats); /* what was before is counted already */
	} else {
		ret = choose(c, which, config, err, err_size);
		if (ret) {
			free(c);
			return ret;
		}
	}
	if (!wired && tap_stations_new(&c->stations, c->pipeline, c->interface, c->ops, c->tap)) {
		stop(c);
		goto no_memory;
	}
	if (c->instead[0])
		log_warn("tap on %s: by a packet socket: %s", c->interface, c->instead);
	*self = c;
	return 0;
no_memory:
	snprintf(err, err_size, "%s on %s: out of memory", config->section, config->interface);
	return -ENOMEM;
}

static int start(void **self, const struct collector_env *env, char *err, size_t err_size)
{
	const struct tap_config config = tap_of(env->config, env->section);

	return start_one(self, env, env->config->tap[env->section].tap, &config, false, err, err_size);
}

static int packet_start(void **self, const struct collector_env *env, char *err, size_t err_size)
{
	const struct tap_config config = packet_of(env->config, env->section);

	return start_one(self, env, tap_packet.name, &config, true, err, err_size);
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
	.rest = rest,
	.second = second,
	.alarm = alarm,
	.json = json,
	.stop = stop,
	.live = true,
};

const struct collector_ops collect_packet = {
	.name = "packet",
	.sections = packet_sections,
	.check = packet_check,
	.start = packet_start,
	.before_tick = before_tick,
	.rest = rest,
	.second = second,
	.stop = stop,
	.live = true,
};
