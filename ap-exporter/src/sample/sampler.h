/* sampler.h: a thread that asks the kernel, so that the tick thread never has to: a driver may take its time.
 *
 * It wakes a little before each tick that something is due at, lets its sources ask, and what they learn goes to the
 * tick thread by samples.h. A round that takes longer than a tick costs the ticks in between; they are counted. What it
 * spends of the processor, kernel included, is measured; the tick thread sets its pace (budget.h). */
#ifndef OAL_SAMPLER_H
#define OAL_SAMPLER_H

#include "sample/samples.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sampler;

/* When something is sampled, or served. */
struct collector_tick {
	uint64_t number;       /* ticks since the start, missed ones included */
	uint64_t due_us;       /* realtime; 0 on a sampler's thread */
	uint64_t monotonic_us; /* when the tick was due */
	bool more;             /* of the tick thread: another tick is due already, and comes next */
	unsigned pace;         /* of a sampler: 0 as configured, each more is half as often; see pace_interval() */
};

/* What a sampler runs. Everything but stop() is called on its thread. */
struct sampler_source {
	void *self;
	void (*tick)(void *self, const struct collector_tick *);
	void (*second)(void *self); /* once a second; may be NULL */
	/* The next tick at which something is due, as it looks after tick(): the thread sleeps until then, a second
	 * at the most. NULL: the next. */
	uint64_t (*due)(void *self);
	void (*stop)(void *self);   /* frees it: after the last call of the others */
};

struct sampler_stats {
	uint64_t rounds;     /* ticks that it sampled at */
	uint64_t skipped;    /* ticks that went by while a round took longer than a tick */
	uint32_t longest_us; /* the longest round of the last full second; the one that goes on now if it is longer */
	uint32_t cpu_permille; /* of one core, kernel included, in the last full second */
	unsigned pace;
};

enum {
	SAMPLER_SOURCES = 24, /* eight sections each of three kinds */
	SAMPLER_LEAD_US = 1000, /* so long before a tick its sampling begins: then its rows are there at the tick */
};

/* `name`: for status and logs; copied. `bytes`: of the ring to the tick thread. 0 or a negative errno. */
int sampler_new(struct sampler **, const char *name, size_t bytes);
struct samples *sampler_samples(const struct sampler *);
const char *sampler_name(const struct sampler *);
/* From here on the sampler stops and frees the source. Before sampler_start(); -ENOSPC beyond SAMPLER_SOURCES. */
int sampler_add(struct sampler *, const struct sampler_source *);
/* Starts the thread, which waits for the first tick. 0 or a negative errno. */
int sampler_start(struct sampler *);
/* Ends the thread and frees everything. A thread that hangs in the kernel is left to itself after a moment: it frees
 * everything once the kernel lets it go. */
void sampler_stop(struct sampler *);

/* --- tick thread */
/* At each tick: the first starts the sampling; then hands over what was sampled. Neither waits nor allocates. */
void sampler_tick(struct sampler *, const struct collector_tick *, struct pipeline *, struct collector_counts *);
/* Ticks after which it should be called again, after `passed` ticks, so that its ring does not fill. */
uint32_t sampler_rest(struct sampler *, uint32_t passed);
void sampler_stats(const struct sampler *, struct sampler_stats *);
void sampler_set_pace(struct sampler *, unsigned pace);

/* --- for sources */
/* Ticks until something that is wanted each `interval` ticks is due again, at this pace, after an answer that took
 * `took_us`: an answer slower than a tick is not asked for again before `patience` times as long has passed (10 s at
 * the most). */
uint32_t pace_interval(uint32_t interval, unsigned pace, uint32_t took_us, unsigned patience);

#endif
