#include "collectors.h"

#include "base/log.h"
#include "sample/rest.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { SENDERS_ROOM = 1 << 19 }; /* bytes of a sampler's ring: rows of a round's slices while the tick thread rests */

int collectors_check(const struct config *c, char *err, size_t err_size)
{
	int ret = 0;

	for (int i = 0; collector_all[i] && !ret; i++)
		for (uint32_t k = 0; k < collector_all[i]->sections(c) && !ret; k++)
			ret = collector_all[i]->check(c, k, err, err_size);
	return ret;
}

bool collectors_live(const struct config *c)
{
	bool live = false;

	for (int i = 0; collector_all[i]; i++)
		live |= collector_all[i]->live && collector_all[i]->sections(c);
	return live;
}

/* The sampler that a collector's thread is, made where there is none yet. */
static int sampler_for(struct collectors *c, const struct collector_env *env, enum collector_thread thread,
		       struct sampler **out, char *err, size_t err_size)
{
	const char *name = thread == COLLECTOR_SHARED ? "kernel" : env->config->nl80211[env->section].interface;
	int ret;

	for (unsigned i = 0; thread == COLLECTOR_SHARED && i < c->n_samplers; i++)
		if (!strcmp(sampler_name(c->samplers[i]), name)) {
			*out = c->samplers[i];
			return 0;
		}
	ret = sampler_new(out, name, samples_room(env->config->exporter.max_stations) +
					     (env->config->n_tcp ? SENDERS_ROOM : 0));
	if (ret)
		snprintf(err, err_size, "sampler of %s: %s", name, strerror(-ret));
	else
		c->samplers[c->n_samplers++] = *out;
	return ret;
}

/* Starts a collector: on the tick thread, or as a source of a sampler, which then owns it. */
static int start_one(struct collectors *c, const struct collector_ops *ops, struct collector_env *env, char *err,
		     size_t err_size)
{
	struct sampler_source source = {
		.tick = ops->tick, .second = ops->second, .due = ops->due, .stop = ops->stop
	};
	struct sampler *sampler;
	int ret;

	if (ops->thread == COLLECTOR_DIRECT) {
		ret = ops->start(&c->running[c->n].self, env, err, err_size);
		if (!ret)
			c->running[c->n++].ops = ops;
		return ret;
	}
	ret = sampler_for(c, env, ops->thread, &sampler, err, err_size);
	if (ret)
		return ret;
	c->asks |= ops->thread == COLLECTOR_RADIO && !(COLLECTORS_DIRECT && ops->direct);
	env->samples = sampler_samples(sampler);
	ret = ops->start(&source.self, env, err, err_size);
	if (ret)
		return ret;
	ret = sampler_add(sampler, &source);
	if (ret) {
		ops->stop(source.self);
		snprintf(err, err_size, "too many sections '%s'", ops->name);
	} else if (COLLECTORS_DIRECT && ops->direct) {
		c->direct[c->n_direct].ops = ops->direct;
		c->direct[c->n_direct].self = source.self;
		c->direct[c->n_direct++].sampler = c->n_samplers - 1;
	}
	return ret;
}

static int start_samplers(struct collectors *c, char *err, size_t err_size)
{
	for (unsigned i = 0; i < c->n_samplers; i++) {
		int ret = sampler_start(c->samplers[i]);

		if (ret) {
			snprintf(err, err_size, "sampler of %s: no thread: %s", sampler_name(c->samplers[i]),
				 strerror(-ret));
			return ret;
		}
	}
	return 0;
}

int collectors_start(struct collectors *c, const struct collector_env *template, char *err, size_t err_size)
{
	struct collector_env env = *template;
	size_t len = 1;

	c->pipeline = env.pipeline;
	c->counts = env.counts;
	c->budget_permille = env.config->exporter.sampling_cpu_percent * 10;

	strcpy(c->names, "[");
	for (int i = 0; collector_all[i]; i++) {
		const struct collector_ops *ops = collector_all[i];

		for (env.section = 0; env.section < ops->sections(env.config); env.section++) {
			int ret = ops->check(env.config, env.section, err, err_size);

			ret = ret ? ret : start_one(c, ops, &env, err, err_size);
			if (ret)
				return ret;
			len += (size_t)snprintf(c->names + len, sizeof c->names - len - 2, "%s\"%s\"",
						len > 1 ? ", " : "", ops->name);
			if (len > sizeof c->names - 16)
				len = sizeof c->names - 16; /* enough of them to see what kind they are */
		}
	}
	strcpy(c->names + len, "]");
	return start_samplers(c, err, err_size);
}

void collectors_before_tick(struct collectors *c, const struct collector_tick *t)
{
	for (unsigned i = 0; i < c->n; i++)
		if (c->running[i].ops->before_tick)
			c->running[i].ops->before_tick(c->running[i].self, t);
}

void collectors_tick(struct collectors *c, const struct collector_tick *t)
{
	for (unsigned i = 0; i < c->n; i++)
		if (c->running[i].ops->tick)
			c->running[i].ops->tick(c->running[i].self, t);
	for (unsigned i = 0; i < c->n_samplers; i++)
		sampler_tick(c->samplers[i], t, c->pipeline, c->counts);
	for (unsigned i = 0; COLLECTORS_DIRECT && i < c->n_direct; i++)
		c->direct[i].ops->tick(c->direct[i].self, t);
}

uint32_t collectors_rest(struct collectors *c, uint32_t passed)
{
	uint32_t rest = c->asks ? REST_FLOOD : REST_MOST;

	for (unsigned i = 0; i < c->n; i++) {
		const uint32_t one = c->running[i].ops->rest ? c->running[i].ops->rest(c->running[i].self, passed) : 1;

		rest = one < rest ? one : rest;
	}
	for (unsigned i = 0; i < c->n_samplers; i++) {
		const uint32_t one = sampler_rest(c->samplers[i], passed);

		rest = one < rest ? one : rest;
	}
	for (unsigned i = 0; COLLECTORS_DIRECT && i < c->n_direct; i++) {
		const uint32_t one = c->direct[i].ops->rest(c->direct[i].self, passed);

		rest = one < rest ? one : rest;
	}
	return rest;
}

/* What the kernel took in the last second for what it samples by itself. */
static void measure_direct(struct collectors *c)
{
	for (unsigned i = 0; COLLECTORS_DIRECT && i < c->n_direct; i++) {
		const uint64_t us = c->direct[i].ops->kernel_us(c->direct[i].self);

		c->direct[i].kernel_permille = (uint32_t)((us - c->direct[i].kernel_us) / 1000);
		c->direct[i].kernel_us = us;
	}
}

/* A sampler's cost, with that of what the kernel does for it. */
static uint32_t cost_permille(const struct collectors *c, unsigned sampler, const struct sampler_stats *s)
{
	uint32_t sum = s->cpu_permille;

	for (unsigned i = 0; COLLECTORS_DIRECT && i < c->n_direct; i++)
		if (c->direct[i].sampler == sampler)
			sum += c->direct[i].kernel_permille;
	return sum;
}

/* Sampling keeps to its share of the processor: who uses most of it slows down. */
static void keep_budget(struct collectors *c)
{
	uint32_t cpu[1 + CONFIG_EACH];
	unsigned pace[1 + CONFIG_EACH];
	struct sampler_stats s;
	int step;

	for (unsigned i = 0; i < c->n_samplers; i++) {
		sampler_stats(c->samplers[i], &s);
		cpu[i] = cost_permille(c, i, &s);
		pace[i] = s.pace;
	}
	step = budget_decide(&c->budget, c->budget_permille, cpu, pace, c->n_samplers);
	for (unsigned i = 0; step && i < c->n_samplers; i++) {
		sampler_stats(c->samplers[i], &s);
		if (s.pace == pace[i])
			continue;
		sampler_set_pace(c->samplers[i], pace[i]);
		if (step > 0)
			log_warn("sampling of %s took %u.%u %% of a core, more than 'option sampling_cpu_percent' "
				 "leaves: it slows down to pace %u",
				 sampler_name(c->samplers[i]), cpu[i] / 10, cpu[i] % 10, pace[i]);
		else
			log_info("sampling of %s goes on at pace %u", sampler_name(c->samplers[i]), pace[i]);
	}
}

void collectors_second(struct collectors *c)
{
	for (unsigned i = 0; i < c->n; i++)
		if (c->running[i].ops->second)
			c->running[i].ops->second(c->running[i].self);
	measure_direct(c);
	keep_budget(c);
}

struct sampling collectors_sampling(const struct collectors *c)
{
	struct sampling sum = { 0 };
	struct sampler_stats s;

	for (unsigned i = 0; i < c->n_samplers; i++) {
		sampler_stats(c->samplers[i], &s);
		sum.late_ticks += s.skipped;
		sum.cpu_permille += cost_permille(c, i, &s);
		sum.longest_us = s.longest_us > sum.longest_us ? s.longest_us : sum.longest_us;
		sum.pace = s.pace > sum.pace ? s.pace : sum.pace;
	}
	return sum;
}

static void stations_json(const struct collectors *c, struct json *j)
{
	json_add(j, "], \"stations\": [");
	for (unsigned i = 0; i < c->n_direct; i++) {
		json_add(j, "%s", i ? ", " : "");
		c->direct[i].ops->json(c->direct[i].self, j);
	}
}

void collectors_json(const struct collectors *c, struct json *j)
{
	struct sampler_stats s;

	json_add(j, ", \"samplers\": [");
	for (unsigned i = 0; i < c->n_samplers; i++) {
		sampler_stats(c->samplers[i], &s);
		json_add(j, "%s{\"name\": ", i ? ", " : "");
		json_string(j, sampler_name(c->samplers[i]));
		json_count(j, "rounds", s.rounds);
		json_count(j, "skipped", s.skipped);
		json_count(j, "longest_us", s.longest_us);
		json_count(j, "cpu_permille", cost_permille(c, i, &s));
		json_count(j, "pace", s.pace);
		json_add(j, "}");
	}
	if (COLLECTORS_DIRECT)
		stations_json(c, j);
	json_add(j, "], \"taps\": [");
	for (unsigned i = 0, n = 0; i < c->n; i++) {
		if (!c->running[i].ops->json)
			continue;
		json_add(j, "%s", n++ ? ", " : "");
		c->running[i].ops->json(c->running[i].self, j);
	}
	json_add(j, "]");
}

int collectors_alarm(const struct collectors *c, unsigned i, char *buf, size_t size)
{
	if (i >= c->n)
		return -1;
	return c->running[i].ops->alarm ? (int)c->running[i].ops->alarm(c->running[i].self, buf, size) : 0;
}

bool collectors_done(const struct collectors *c)
{
	if (c->n_samplers)
		return false;
	for (unsigned i = 0; i < c->n; i++)
		if (!c->running[i].ops->done || !c->running[i].ops->done(c->running[i].self))
			return false;
	return c->n > 0;
}

void collectors_add_stats(const struct collectors *c, struct pipeline_stats *sum)
{
	for (unsigned i = 0; i < c->n; i++)
		if (c->running[i].ops->add_stats)
			c->running[i].ops->add_stats(c->running[i].self, sum);
}

void collectors_stop(struct collectors *c)
{
	c->n_direct = 0; /* their samplers free them */
	while (c->n_samplers)
		sampler_stop(c->samplers[--c->n_samplers]);
	while (c->n) {
		c->n--;
		c->running[c->n].ops->stop(c->running[c->n].self);
	}
}
