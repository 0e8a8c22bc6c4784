/* Collector: TCP headers of a wired port, both directions, through a packet socket. */
#include "collect/collector.h"

#include "pipeline/pipeline.h"
#include "tap/tap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct collect {
	struct pipeline *pipeline;
	struct collector_counts *counts;
	void *tap;
	struct tap_stats stats; /* as counted so far */
};

static uint32_t sections(const struct config *c)
{
	return c->n_packet;
}

static struct tap_config tap_of(const struct config *c, uint32_t section)
{
	const struct config_packet *p = &c->packet[section];

	return (struct tap_config){
		.section = "packet", .interface = p->interface, .ring_kb = p->ring_kb, .snaplen = p->snaplen,
	};
}

static int check(const struct config *c, uint32_t section, char *err, size_t err_size)
{
	const struct tap_config config = tap_of(c, section);

	return tap_packet.check(&config, err, err_size);
}

/* What leaves by the wired port goes up. */
static void take(void *ctx, const struct tap_frame *f)
{
	pipeline_frame(((struct collect *)ctx)->pipeline, f->bytes, f->captured, f->length, f->t_us,
		       f->outgoing ? PIPELINE_UP : PIPELINE_DOWN);
}

static void count(struct collect *c)
{
	const struct tap_stats before = c->stats;

	tap_packet.stats(c->tap, &c->stats);
	c->counts->ring_drops += c->stats.overruns - before.overruns;
	c->counts->interface_losses += c->stats.losses - before.losses;
}

static void before_tick(void *self, const struct collector_tick *t)
{
	struct collect *c = self;

	tap_packet.read(c->tap, 0, take, c);
	count(c);
}

static void second(void *self)
{
	struct collect *c = self;

	tap_packet.second(c->tap);
	count(c);
}

static void stop(void *self)
{
	struct collect *c = self;

	tap_packet.close(c->tap);
	free(c);
}

static int start(void **self, const struct collector_env *env, char *err, size_t err_size)
{
	const struct tap_config config = tap_of(env->config, env->section);
	struct collect *c = calloc(1, sizeof *c);
	int ret;

	if (!c) {
		snprintf(err, err_size, "packet on %s: out of memory", config.interface);
		return -ENOMEM;
	}
	c->pipeline = env->pipeline;
	c->counts = env->counts;
	ret = tap_packet.open(&c->tap, &config, err, err_size);
	if (ret) {
		free(c);
		return ret;
	}
	*self = c;
	return 0;
}

const struct collector_ops collect_packet = {
	.name = "packet",
	.sections = sections,
	.check = check,
	.start = start,
	.before_tick = before_tick,
	.second = second,
	.stop = stop,
	.live = true,
};
