/* kmod_source.h: stations from the kernel module oal_sampler, where it is loaded; else whoever asked goes on with
 * nl80211.
 *
 * Two threads share it, one at a time: the sampler's opens, starts and stops, which are system calls; while the module
 * samples it is the tick thread's, which reads memory and calls nothing. */
#ifndef OAL_KMOD_SOURCE_H
#define OAL_KMOD_SOURCE_H

#include "base/json.h"
#include "kmod/oal_sampler.h"
#include "sample/sampler.h"

#include <stdbool.h>
#include <stdint.h>

struct kmod_source;
struct pipeline;

struct kmod_source_config {
	const char *device; /* the module's file */
	const char *interface; /* for status and logs */
	struct pipeline *pipeline;
	uint16_t device_name; /* the interface in rows */
	uint32_t max_stations, idle_interval_ticks, active_hold_ticks;
};

/* Opens the module's file, if it is there: later there may be no right to. 0 or -ENOMEM. */
int kmod_source_new(struct kmod_source **, const struct kmod_source_config *);
void kmod_source_free(struct kmod_source *);

/* --- the sampler's thread */
/* Does the module sample the interface's stations? Starts it at the tick `t`, unless it failed just now; sets its
 * intervals by the pace. *handed_over: true when it was started or has ended with this call. */
bool kmod_source_samples(struct kmod_source *, uint32_t ifindex, const struct collector_tick *t, bool *handed_over);
/* The interface is not what it was: the module has to end. */
void kmod_source_end(struct kmod_source *);
/* Once a second: logs what has changed. */
void kmod_source_second(struct kmod_source *);

/* --- the tick thread */
/* Hands the pipeline what was sampled up to this tick. */
void kmod_source_tick(struct kmod_source *, const struct collector_tick *t);
/* Ticks that may go by until the next of these, `passed` ticks after it was last asked. */
uint32_t kmod_source_rest(struct kmod_source *, uint32_t passed);
/* Time that the kernel took for it since the start, µs. */
uint64_t kmod_source_kernel_us(const struct kmod_source *);
/* An object: interface, source, why not the module, records, overruns, … */
void kmod_source_json(const struct kmod_source *, struct json *);

#endif
