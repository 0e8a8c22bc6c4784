/* Where rows and packets come from. One instance per section of the configuration. */
#ifndef OAL_COLLECTOR_H
#define OAL_COLLECTOR_H

#include "base/config.h"
#include "sample/sampler.h"
#include "ship/sink.h"

#include <stdbool.h>
#include <stdint.h>

struct agent;
struct json;
struct oal_health_row;
struct pipeline;
struct pipeline_stats;

struct collector_env {
	const struct config *config;
	uint32_t section; /* which section of its type */
	struct pipeline *pipeline;
	struct collector_counts *counts;
	struct samples *samples; /* of a collector with a sampler: takes its rows */
	/* For replay, which has pipelines of its own. */
	void (*send)(void *ctx, const struct sink_batch *);
	void (*health)(void *ctx, struct oal_health_row *); /* fills what only the daemon knows */
	void *ctx;
	const uint8_t *pseudonym_key; /* NULL: addresses as they are */
	size_t pseudonym_key_len;
	struct agent *agent; /* NULL: nothing predicts */
};

enum collector_thread { COLLECTOR_DIRECT, COLLECTOR_RADIO, COLLECTOR_SHARED };

/* Of a collector with a sampler, for which the kernel samples by itself what the tick thread then reads. */
struct collector_direct {
	/* On the tick thread, after its sampler's rows were handed over. It may read memory, and blocks no more than
	 * tick() of a collector without a sampler. */
	void (*tick)(void *self, const struct collector_tick *);
	/* As that of collector_ops. */
	uint32_t (*rest)(void *self, uint32_t passed);
	/* Time that the kernel spends for it on its own, µs since the start. */
	uint64_t (*kernel_us)(const void *self);
	/* Its state as an object, in the status' list `stations`. */
	void (*json)(const void *self, struct json *);
};

struct collector_ops {
	const char *name;
	/* How many sections of the configuration are for it. */
	uint32_t (*sections)(const struct config *);
	/* Can it work here? 0, or a negative errno with the reason and what to do in `err`. Leaves nothing open. */
	int (*check)(const struct config *, uint32_t section, char *err, size_t err_size);
	int (*start)(void **self, const struct collector_env *, char *err, size_t err_size);
	/* Before the pipeline's tick: packets of the time before. May be NULL. */
	void (*before_tick)(void *self, const struct collector_tick *);
	/* Rows of this tick. May be NULL. Neither allocates nor logs; only one with a sampler may block. */
	void (*tick)(void *self, const struct collector_tick *);
	/* Ticks that may go by until the next call of these two, `passed` ticks after it was last asked: what came in
	 * between is told tick by tick then, and nothing may be lost. NULL: one. */
	uint32_t (*rest)(void *self, uint32_t passed);
	/* Of one with a sampler, on its thread: the next tick at which it has something to ask. */
	uint64_t (*due)(void *self);
	/* Once a second: looks for interfaces, says what was counted. May be NULL. */
	void (*second)(void *self);
	/* True when there will be nothing more (a replay without loop). May be NULL. */
	bool (*done)(void *self);
	/* What the kernel samples for it by itself. NULL: nothing. */
	const struct collector_direct *direct;
	/* What is the matter with what it sees, in words; empty: nothing. Returns the length. May be NULL. */
	size_t (*alarm)(const void *self, char *buf, size_t size);
	/* Its state as an object, in the status' list `taps`. May be NULL. */
	void (*json)(const void *self, struct json *);
	/* Adds what its own pipelines counted. May be NULL. */
	void (*add_stats)(void *self, struct pipeline_stats *sum);
	void (*stop)(void *self);
	bool live; /* feeds the daemon's pipeline; false for replay, which brings its own */
	/* Asks the kernel, which may take its time: tick() and second() are called on a sampler's thread, and rows go
	 * by `samples`. A collector that is a radio's has a sampler of its own, the others share one. */
	enum collector_thread thread;
};

/* Sums two sets of counters; of the maximum the larger. */
void pipeline_stats_add(struct pipeline_stats *sum, const struct pipeline_stats *more);

extern const struct collector_ops collect_nl80211, collect_qdisc, collect_packet, collect_tap, collect_beacon,
	collect_neigh, collect_tcp, collect_replay;

/* All of them; ends with NULL. */
extern const struct collector_ops *const collector_all[];

/* Opens every tap that a configuration names, while there are privileges; collectors of the same sections then share
 * these. 0, or the first negative errno with the reason. */
int collect_taps_hold(const struct config *, char *err, size_t err_size);
/* Closes those that no collector has taken. */
void collect_taps_let_go(void);

#endif
