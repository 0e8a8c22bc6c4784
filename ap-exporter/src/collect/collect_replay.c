/* Collector: plays a capture or a pcap as one or several APs, each whole: data path, predictions, and control in
 * shadow. */
#include "collect/collector.h"

#include "agent/ap.h"
#include "base/clock.h"
#include "base/log.h"
#include "oal_features.h"
#include "pipeline/pipeline.h"
#include "replay/replay.h"
#include "base/version.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { BEHIND_US = 5000000 };

struct collect {
	const struct config_replay *config;
	struct replay *replay;
	struct ap **aps; /* room for max_aps; NULL: not made */
	unsigned max_aps;
	struct ap_config ap_config; /* of each of them */
	void (*send)(void *ctx, const struct sink_batch *);
	void (*health)(void *ctx, struct oal_health_row *);
	void *ctx;
	bool done, warned, behind;
};

static uint32_t sections(const struct config *c)
{
	return c->n_replay;
}

static int check(const struct config *c, uint32_t section, char *err, size_t err_size)
{
	if (access(c->replay[section].file, R_OK) == 0)
		return 0;
	snprintf(err, err_size, "replay: cannot read %s: %s", c->replay[section].file, strerror(errno));
	return -errno;
}

static void on_batch(void *ctx, const char *ap_id, const struct batch_out *out)
{
	struct sink_batch b = { ap_id, out->topic, out->bytes, out->len, out->t0_us };
	struct collect *c = ctx;

	c->send(c->ctx, &b);
}

static void on_health(void *ctx, struct oal_health_row *row)
{
	struct collect *c = ctx;

	c->health(c->ctx, row);
}

static void tick(void *self, const struct collector_tick *t)
{
	struct collect *c = self;

	if (!c->done)
		c->done = replay_step(c->replay, t->due_us) == 0;
}

/* It plays slower than it should: rows come later and later, and none is lost. */
static void look_behind(struct collect *c)
{
	const uint64_t next_us = replay_next_us(c->replay), now_us = clock_realtime_us();

	if (c->behind || c->done || next_us >= now_us || now_us - next_us < BEHIND_US)
		return;
	log_warn("replay %s: %llu s behind its time; this machine is too slow or too busy for %u APs at %u %% of "
		 "their speed",
		 c->config->file, (unsigned long long)((now_us - next_us) / 1000000), c->max_aps,
		 c->config->speed_percent);
	c->behind = true;
}

static void second(void *self)
{
	struct collect *c = self;
	struct replay_stats s;

	look_behind(c);
	if (c->warned)
		return;
	replay_stats(c->replay, &s);
	if (!s.batches_refused && !s.breaks && !s.other_ap)
		return;
	log_warn("replay %s: %llu batches refused, %llu damaged places, %llu batches of other APs left out",
		 c->config->file, (unsigned long long)s.batches_refused, (unsigned long long)s.breaks,
		 (unsigned long long)s.other_ap);
	c->warned = true;
}

static bool done(void *self)
{
	return ((struct collect *)self)->done;
}

static void add_stats(void *self, struct pipeline_stats *sum)
{
	struct collect *c = self;
	struct replay_stats s;

	replay_stats(c->replay, &s);
	pipeline_stats_add(sum, &s.pipeline);
}

static void end(struct collect *c)
{
	for (unsigned i = 0; i < c->max_aps; i++)
		ap_free(c->aps[i]);
	free(c->aps);
	replay_free(c->replay);
	free(c);
}

static void stop(void *self)
{
	struct collect *c = self;

	replay_flush(c->replay);
	end(c);
}

static int open_ap(void *ctx, unsigned i, const struct pipeline_config *data_path, struct pipeline **out, char *err,
                   size_t err_size)
{
	struct collect *c = ctx;
	const int ret = ap_new(&c->aps[i], data_path, &c->ap_config, err, err_size);

	if (!ret)
		*out = ap_pipeline(c->aps[i]);
	return ret;
}

/* What was recorded cannot be clamped or marked any more. */
static enum oal_policy_mode ceiling(enum oal_policy_mode mode)
{
	return mode == OAL_POLICY_MODE_OFF ? OAL_POLICY_MODE_OFF : OAL_POLICY_MODE_SHADOW;
}

static int start(void **self, const struct collector_env *env, char *err, size_t err_size)
{
	const struct config_replay *config = &env->config->replay[env->section];
	const struct config_exporter *exporter = &env->config->exporter;
	struct collect *c = calloc(1, sizeof *c);
	struct replay_config r = {
		.path = config->file,
		.loop = config->loop,
		.aps = config->aps,
		.ap_id = config->ap_prefix[0] ? config->ap_prefix : exporter->ap_id,
		.site = exporter->site,
		.client_net = config->client_net,
		.start_us = clock_realtime_us(),
		.speed_percent = config->speed_percent,
		.program = &oal_feature_congestion,
		.pseudonym_key = env->pseudonym_key,
		.pseudonym_key_len = env->pseudonym_key_len,
		.max_flows = exporter->max_flows,
		.version = OAL_VERSION,
		.now_ns = clock_monotonic_ns,
		.open_ap = open_ap,
		.emit = on_batch,
		.health = on_health,
		.ctx = c,
	};
	int ret;

	if (!c) {
		snprintf(err, err_size, "replay %s: out of memory", config->file);
		return -ENOMEM;
	}
	if (getrandom(&r.boot_id, sizeof r.boot_id, 0) != sizeof r.boot_id)
		r.boot_id = r.start_us;
	r.boot_id = r.boot_id >> 1 | 1; /* not 0, and room to count up */
	c->config = config;
	c->send = env->send;
	c->health = env->health;
	c->ctx = env->ctx;
	c->ap_config = (struct ap_config){
		.agent = env->agent,
		.ceiling = ceiling(config_control(env->config)),
		.kill_file = env->config->rwnd.kill_file,
		.mark_ceiling = ceiling(config_marks(env->config)),
		.mark_kill_file = env->config->mark.kill_file,
	};
	c->max_aps = config->aps ? config->aps : 1;
	c->aps = calloc(c->max_aps, sizeof *c->aps);
	if (c->aps) {
		ret = replay_new(&c->replay, &r, err, err_size);
	} else {
		c->max_aps = 0;
		ret = -ENOMEM;
		snprintf(err, err_size, "replay %s: out of memory for %u APs", config->file, config->aps);
	}
	if (ret < 0) {
		end(c);
		return ret;
	}
	*self = c;
	return 0;
}

const struct collector_ops collect_replay = {
	.name = "replay",
	.sections = sections,
	.check = check,
	.start = start,
	.tick = tick,
	.second = second,
	.done = done,
	.add_stats = add_stats,
	.stop = stop,
	.live = false,
};
