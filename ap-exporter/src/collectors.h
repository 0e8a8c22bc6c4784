/* collectors.h: every collector of a configuration, running: one for each section that asks for one. */
#ifndef OAL_COLLECTORS_H
#define OAL_COLLECTORS_H

#include "base/config.h"
#include "base/json.h"
#include "collect/collector.h"
#include "sample/budget.h"

#include <stdbool.h>
#include <stddef.h>

enum { COLLECTORS_MAX = 7 * CONFIG_EACH };
#ifdef HAVE_KMOD
enum { COLLECTORS_DIRECT = CONFIG_EACH }; /* what the kernel samples by itself: radios */
#else
enum { COLLECTORS_DIRECT = 0 };
#endif

struct collectors {
	struct {
		const struct collector_ops *ops;
		void *self;
	} running[COLLECTORS_MAX];
	unsigned n;
	struct sampler *samplers[1 + CONFIG_EACH]; /* those that are a radio's, and one that the others share */
	unsigned n_samplers;
	bool asks; /* a radio's stations are nl80211's alone */
	struct {
		const struct collector_direct *ops;
		void *self; /* the sampler's, which ends after its last use here */
		unsigned sampler;
		uint64_t kernel_us; /* a second ago */
		uint32_t kernel_permille; /* of a core, in the last second */
	} direct[COLLECTORS_DIRECT + 1]; /* what the kernel samples by itself, and the tick thread reads; one over */
	unsigned n_direct;
	struct pipeline *pipeline;
	struct collector_counts *counts;
	struct budget budget;
	uint32_t budget_permille; /* of a core, for all samplers together */
	char names[256]; /* of the running ones, as a JSON list; of very many only the first */
};

/* Can every collector work here? 0, or negative errno with the reason in `err`. */
int collectors_check(const struct config *, char *err, size_t err_size);
/* Does one of them feed the daemon's own AP? Else there is only replay, which makes APs itself. */
bool collectors_live(const struct config *);
/* `c` is all zero. Those that were started before a failure are collectors_stop()'s. */
int collectors_start(struct collectors *c, const struct collector_env *, char *err, size_t err_size);
void collectors_before_tick(struct collectors *, const struct collector_tick *);
void collectors_tick(struct collectors *, const struct collector_tick *);
/* Ticks that may go by until the next two of these, `passed` ticks after it was last asked. */
uint32_t collectors_rest(struct collectors *, uint32_t passed);
/* Once a second. */
void collectors_second(struct collectors *);
/* What sampling costs and lacks, all samplers together. */
struct sampling {
	uint64_t late_ticks; /* that went by without samples, since an answer took longer than a tick */
	uint32_t longest_us, cpu_permille; /* in the last second */
	unsigned pace; /* of the one slowed most */
};
struct sampling collectors_sampling(const struct collectors *);
/* Adds `"samplers": [...]`, `"stations": [...]` and `"taps": [...]` to a JSON object that has members. */
void collectors_json(const struct collectors *, struct json *);
/* What a running collector, counted from 0, has to say in words: its length, 0 for nothing; -1 beyond the last. */
int collectors_alarm(const struct collectors *, unsigned i, char *buf, size_t size);
/* True when every one has come to its end. */
bool collectors_done(const struct collectors *);
/* Adds what those with pipelines of their own counted. */
void collectors_add_stats(const struct collectors *, struct pipeline_stats *sum);
void collectors_stop(struct collectors *);

#endif
