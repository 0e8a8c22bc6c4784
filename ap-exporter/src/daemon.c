#include "daemon.h"

#include "agent/agent.h"
#include "agent/ap.h"
#include "alarms.h"
#include "collectors.h"
#include "data_path.h"
#include "health.h"
#include "base/log.h"
#include "oal_features.h"
#include "pipeline/pipeline.h"
#include "pseudonym_key.h"
#include "sinks.h"
#include "base/version.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>


struct daemon {
	struct config config;
	struct agent *agent; /* NULL: not configured */
	struct ap *ap; /* what is collected live; NULL when only replaying */
	struct pipeline *pipeline; /* the AP's */
	struct data_path data_path; /* of the AP's control */
	uint16_t version;
	uint64_t boot_id, started_us, tick_number;
	uint64_t rested_at; /* tick after which it was last asked how long it may rest */
	struct collectors collectors;
	struct sinks sinks;
	struct collector_counts counts, accounted, logged;
	uint64_t missed_logged;
	uint32_t reloads, reloads_refused;
	struct clock_quality clock;
	bool account; /* news of the clock for the pipeline */
	struct oal_health_row health; /* of the last second */
	struct alarms alarms;
	uint8_t key[PSEUDONYM_KEY_BYTES];
	bool has_key;
};

static void send_batch(void *ctx, const struct sink_batch *b)
{
	struct daemon *d = ctx;

	sinks_send(&d->sinks, b);
}

static void on_batch(void *ctx, const struct batch_out *out)
{
	struct daemon *d = ctx;
	struct sink_batch b = { d->config.exporter.ap_id, out->topic, out->bytes, out->len, out->t0_us };

	send_batch(d, &b);
}

/*
 * Ticks that a packet may come late: the kernel closes a block of the capture ring after one to two rounds of a timer
 * of 4 ms, or of one jiffy where that is longer.
 */
static uint32_t settle_ticks(void)
{
	struct timespec jiffy = { 0 };
	long round_us = 4000;

	clock_getres(CLOCK_MONOTONIC_COARSE, &jiffy);
	if (jiffy.tv_nsec / 1000 > round_us)
		round_us = jiffy.tv_nsec / 1000;
	return (uint32_t)((2 * round_us + OAL_SETTING_TICK_US - 1) / OAL_SETTING_TICK_US + 1);
}

static int open_ap(struct daemon *d, const struct daemon *previous, char *err, size_t err_size)
{
	const struct config_exporter *e = &d->config.exporter;
	const struct pipeline_config p = {
		.ap_id = e->ap_id,
		.site = e->site,
		.boot_id = d->boot_id,
		.settle_ticks = settle_ticks(),
		.max_stations = e->max_stations,
		.max_flows = e->max_flows,
		.max_senders = d->config.n_tcp ? d->config.tcp.max_connections : 0,
		.pseudonym_key = d->has_key ? d->key : NULL,
		.pseudonym_key_len = d->has_key ? PSEUDONYM_KEY_BYTES : 0,
#ifndef OAL_HOST /* which has no access point to say anything of */
		.program = &oal_feature_congestion,
#endif
		.now_ns = clock_monotonic_ns,
		.emit = on_batch,
		.ctx = d,
	};
	const struct ap_config c = {
		.agent = d->agent,
		.ceiling = config_control(&d->config),
		.kill_file = d->config.rwnd.kill_file,
		.mark_ceiling = config_marks(&d->config),
		.mark_kill_file = d->config.mark.kill_file,
		.congestion_ceiling = config_congestion(&d->config),
		.congestion_kill_file = d->config.congestion.kill_file,
	};
	int ret = ap_new(&d->ap, &p, &c, err, err_size);

	if (ret)
		return ret;
	d->pipeline = ap_pipeline(d->ap);
	if (previous && previous->pipeline)
		pipeline_adopt_flows(d->pipeline, previous->pipeline);
	d->version = pipeline_name(d->pipeline, OAL_VERSION);
	return 0;
}

/* What acts is there once: a reload takes it over, or leaves it parked. */
static void open_data_path(struct daemon *d, struct daemon *previous)
{
	if (previous)
		data_path_park(&previous->data_path, &previous->config, previous->ap);
	data_path_open(&d->data_path, &d->config, d->ap, previous != NULL);
}

/* What the earlier agent has in force goes to flash first, so that this one begins with it. */
static int open_agent(struct daemon *d, struct daemon *previous, char *err, size_t err_size)
{
	if (!d->config.n_agent)
		return 0;
	if (previous)
		agent_save(previous->agent);
	return agent_new(&d->agent, &d->config, previous ? previous->agent : NULL, err, err_size);
}

/* What a replayed AP's health says of the daemon that plays it. */
static void last_health(void *ctx, struct oal_health_row *row)
{
	const struct oal_health_row *last = &((struct daemon *)ctx)->health;

	row->delivered = last->delivered;
	row->let_go = last->let_go;
	row->sink_errors = last->sink_errors;
	row->queued_bytes = last->queued_bytes;
	row->cpu_us = last->cpu_us;
	row->rss_bytes = last->rss_bytes;
	row->clock_error_us = last->clock_error_us;
	row->clock_state = last->clock_state;
}

static int start_collectors(struct daemon *d, char *err, size_t err_size)
{
	const struct collector_env env = {
		.config = &d->config,
		.pipeline = d->pipeline,
		.counts = &d->counts,
		.send = send_batch,
		.health = last_health,
		.ctx = d,
		.pseudonym_key = d->has_key ? d->key : NULL,
		.pseudonym_key_len = d->has_key ? PSEUDONYM_KEY_BYTES : 0,
		.agent = d->agent,
	};

	return collectors_start(&d->collectors, &env, err, err_size);
}

int daemon_check(const struct config *c, char *err, size_t err_size)
{
	int ret = collectors_check(c, err, err_size);

	if (!ret)
		ret = sinks_check(c, err, err_size);
	if (!ret && c->n_agent)
		ret = agent_check(c, err, err_size);
	if (!ret)
		ret = data_path_check(c, err, err_size);
	if (!ret && c->exporter.pseudonym_key[0]) {
		uint8_t key[PSEUDONYM_KEY_BYTES];

		ret = pseudonym_key_read(c->exporter.pseudonym_key, key, err, err_size);
	}
	return ret;
}

int daemon_new(struct daemon **out, const struct config *c, struct daemon *previous, char *err, size_t err_size)
{
	struct daemon *d = calloc(1, sizeof *d);
	const bool live = collectors_live(c);
	int ret;

	if (!d) {
		snprintf(err, err_size, "out of memory");
		return -ENOMEM;
	}
	d->config = *c;
	d->started_us = clock_monotonic_us();
	d->account = true;
	if (getrandom(&d->boot_id, sizeof d->boot_id, 0) != sizeof d->boot_id)
		d->boot_id = clock_realtime_us(); /* differs from the last one, which is what counts */
	d->boot_id |= 1; /* never 0 */
	ret = c->exporter.pseudonym_key[0] ? pseudonym_key_read(c->exporter.pseudonym_key, d->key, err, err_size) : 0;
	d->has_key = !ret && c->exporter.pseudonym_key[0];
	if (!ret)
		ret = sinks_open(&d->sinks, c, previous ? &previous->sinks : NULL,
				 previous ? &previous->config : NULL, err, err_size);
	if (!ret)
		ret = open_agent(d, previous, err, err_size);
	if (!ret && live)
		ret = open_ap(d, previous, err, err_size);
	if (!ret)
		ret = start_collectors(d, err, err_size);
	if (!ret)
		ret = sinks_reread(&d->sinks, c, false, err, err_size);
	if (!ret && d->agent)
		ret = agent_start(d->agent, err, err_size);
	if (ret) {
		daemon_free(d);
		return ret;
	}
	if (previous)
		sinks_own(&d->sinks, &previous->sinks);
	open_data_path(d, previous);
	*out = d;
	return 0;
}

/* Tells the pipeline what batch headers say about losses and the clock, when there is news. */
static void account(struct daemon *d, const struct clock_quality *clock)
{
	uint64_t drops = d->counts.ring_drops - d->accounted.ring_drops;
	uint64_t interrupted = d->counts.dumps_interrupted - d->accounted.dumps_interrupted;

	if (clock->state != d->clock.state || clock->error_us != d->clock.error_us)
		d->account = true;
	if (!drops && !interrupted && !d->account)
		return;
	pipeline_account(d->pipeline, (uint32_t)drops, (uint32_t)interrupted, (uint8_t)clock->state, clock->error_us);
	d->accounted = d->counts;
	d->clock = *clock;
	d->account = false;
}

void daemon_tick(struct daemon *d, const struct tick *t, const struct clock_quality *clock)
{
	struct collector_tick now;

	d->tick_number += t->missed + 1u;
	now.number = d->tick_number;
	now.more = t->more > 0;
	now.monotonic_us = t->due_us;
	now.due_us = (uint64_t)((int64_t)t->due_us + clock->offset_us);
	collectors_before_tick(&d->collectors, &now);
	if (d->pipeline) {
		pipeline_tick(d->pipeline, now.due_us, t->missed, t->late_us);
		account(d, clock);
	}
	collectors_tick(&d->collectors, &now);
}

/* Where windows are lowered or packets marked, each tick counts: they are so, and end, at one. */
uint32_t daemon_rest(struct daemon *d)
{
	const uint32_t passed = (uint32_t)(d->tick_number - d->rested_at);
	uint32_t rest, decision;

	d->rested_at = d->tick_number;
	if (!d->pipeline || d->data_path.rwnd || d->data_path.mark)
		return 1;
	rest = collectors_rest(&d->collectors, passed);
	decision = pipeline_until_decision(d->pipeline);
	return rest < decision ? rest : decision;
}

static void gather(const struct daemon *d, struct health *h)
{
	*h = (struct health){
		.ap_id = d->config.exporter.ap_id,
		.site = d->config.exporter.site,
		.boot_id = d->boot_id,
		.uptime_us = clock_monotonic_us() - d->started_us,
		.reloads = d->reloads,
		.reloads_refused = d->reloads_refused,
		.clock = d->clock,
		.counts = d->counts,
		.collector_names = d->collectors.names,
		.collectors = &d->collectors,
		.n_sinks = d->sinks.n,
		.agent = d->agent,
		.controller = d->ap ? ap_controller(d->ap) : NULL,
		.destinations = d->ap ? ap_destinations(d->ap) : NULL,
		.alarms = &d->alarms,
	};
	if (d->pipeline)
		pipeline_stats(d->pipeline, &h->pipeline);
	collectors_add_stats(&d->collectors, &h->pipeline);
	for (unsigned i = 0; i < d->sinks.n; i++) {
		h->sinks[i].name = d->sinks.open[i].ops->name;
		d->sinks.open[i].ops->stats(d->sinks.open[i].self, &h->sinks[i].stats);
	}
	health_measure(h);
}

/* One line a second, and only if something went wrong in it. */
static void log_losses(struct daemon *d, const struct health *h)
{
	uint64_t missed = h->pipeline.ticks_missed - d->missed_logged,
		 drops = d->counts.ring_drops - d->logged.ring_drops;
	uint64_t errors = d->counts.netlink_errors - d->logged.netlink_errors;

	if (missed > 25 || drops || errors) /* a tenth of the ticks; fewer stand in the health row */
		log_warn("in the last second: %llu ticks missed, %llu packets lost by the ring, %llu netlink requests "
			 "failed",
			 (unsigned long long)missed, (unsigned long long)drops, (unsigned long long)errors);
	d->missed_logged = h->pipeline.ticks_missed;
	d->logged = d->counts;
}

void daemon_second(struct daemon *d, const struct clock_quality *clock)
{
	struct health h;

	d->clock = *clock;
	d->account = true;
	gather(d, &h);
	health_row(&h, d->version, &d->health);
	if (d->pipeline) {
		pipeline_row(d->pipeline, OAL_HEALTH, &d->health);
		pipeline_stats_reset_max(d->pipeline);
	}
	log_losses(d, &h);
	collectors_second(&d->collectors);
	alarms_check(&d->alarms, h.controller, &d->collectors);
	sinks_second(&d->sinks);
	if (d->agent && agent_renewed(d->agent)) {
		char err[512];

		if (sinks_reread(&d->sinks, &d->config, true, err, sizeof err))
			log_error("the renewed certificate is not taken up: %s", err);
	}
}

bool daemon_done(const struct daemon *d)
{
	return collectors_done(&d->collectors);
}

void daemon_reloaded(struct daemon *d, uint32_t reloads, uint32_t refused)
{
	d->reloads = reloads;
	d->reloads_refused = refused;
}

size_t daemon_health(void *daemon, char *buf, size_t size)
{
	struct health h;

	gather(daemon, &h);
	return health_json(&h, buf, size);
}

void daemon_free(struct daemon *d)
{
	if (!d)
		return;
	agent_stop(d->agent);
	collectors_stop(&d->collectors);
	ap_free(d->ap);
	data_path_close(&d->data_path);
	agent_free(d->agent);
	sinks_close(&d->sinks);
	free(d);
}
