#include "kmod/kmod_source.h"

#include "base/clock.h"
#include "base/log.h"
#include "kmod/kmod_ring.h"
#include "kmod/kmod_table.h"
#include "oal_schema.h"
#include "sample/rest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

enum {
	RETRY_S = 10, /* before the module is asked again after it failed */
	STALE_TICKS = 250, /* without a tick of the module, after which it counts as stopped */
	STATION_RING_BYTES = 2048, /* of the ring for each station: six ticks of one that uses every category */
	IDLE_PACE = 2, /* paces that slow only what is asked of stations without traffic, as with nl80211 */
	PATIENCE = 1, /* of a driver that takes longer than a tick: asked half of the time at the most */
};

/* Whose it is. Only the owner goes on to the next. */
enum phase {
	OFF,      /* the sampler's: nothing runs */
	READING,  /* the tick thread's */
	LEFT,     /* the sampler's again: the module is to be stopped */
};

enum why { NONE, ABSENT, REFUSED, OVERRUN, STOPPED, BROKEN, INTERFACE };

static const char *const words[] = {
	[ABSENT] = "the module is not loaded",
	[REFUSED] = "the module refuses",
	[OVERRUN] = "its ring overran",
	[STOPPED] = "the module stopped",
	[BROKEN] = "its ring cannot be read",
	[INTERFACE] = "the interface went away",
};

struct kmod_source {
	struct kmod_source_config config;
	char interface[32];
	struct kmod_ring ring;
	struct kmod_table *table; /* the tick thread's while it reads */
	struct oal_sampler_start start;
	uint32_t phase; /* atomic */
	uint32_t end; /* atomic: the sampler's thread wants it back */
	uint64_t retry_us; /* monotonic; the sampler's thread */
	uint32_t rested_at; /* bytes taken when it was last asked how long it may rest; the tick thread */
	int reported; /* why + 1, or -1 while it reads; 0: nothing so far */

	/* For status; each written by one thread, and read by itself. */
	uint32_t why, refusal, overruns, starts, kernel_us, base_kernel_us, missed, base_missed;
	uint64_t records;
};

static uint32_t load(const uint32_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static void store(uint32_t *p, uint32_t v)
{
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
}

static uint32_t ring_bytes(uint32_t stations)
{
	uint32_t bytes = OAL_SAMPLER_RING_MIN;

	while (bytes < stations * STATION_RING_BYTES && bytes < OAL_SAMPLER_RING_MAX)
		bytes *= 2;
	return bytes;
}

static void open_device(struct kmod_source *k)
{
	const int ret = kmod_ring_open(&k->ring, k->config.device);

	store(&k->why, ret == -ENOENT ? ABSENT : ret ? REFUSED : NONE);
	store(&k->refusal, (uint32_t)-ret);
}

int kmod_source_new(struct kmod_source **out, const struct kmod_source_config *c)
{
	struct kmod_source *k = calloc(1, sizeof *k);

	if (!k)
		return -ENOMEM;
	k->config = *c;
	k->ring.fd = -1;
	snprintf(k->interface, sizeof k->interface, "%s", c->interface);
	k->config.interface = k->interface;
	k->start = (struct oal_sampler_start){
		.version = OAL_SAMPLER_VERSION,
		.tick_ns = OAL_SETTING_TICK_US * 1000u,
		.active_hold_ticks = c->active_hold_ticks,
		.max_stations = c->max_stations < OAL_SAMPLER_STATIONS_MAX ? c->max_stations
									   : OAL_SAMPLER_STATIONS_MAX,
		.ring_bytes = ring_bytes(c->max_stations),
	};
	k->table = kmod_table_new(c->pipeline, c->device_name, k->start.max_stations, c->active_hold_ticks);
	if (!k->table) {
		free(k);
		return -ENOMEM;
	}
	open_device(k);
	*out = k;
	return 0;
}

void kmod_source_free(struct kmod_source *k)
{
	if (!k)
		return;
	kmod_ring_close(&k->ring);
	kmod_table_free(k->table);
	free(k);
}

/* --- the sampler's thread */

static void begin(struct kmod_source *k, uint32_t ifindex, const struct collector_tick *t)
{
	int ret;

	if (k->ring.fd < 0)
		open_device(k);
	if (k->ring.fd < 0)
		return;
	k->start.ifindex = ifindex;
	k->start.first_ns = (t->monotonic_us - SAMPLER_LEAD_US) * 1000u;
	ret = kmod_ring_start(&k->ring, &k->start);
	if (ret) {
		store(&k->refusal, (uint32_t)-ret);
		store(&k->why, ret == -ENODEV ? INTERFACE : REFUSED);
		return;
	}
	store(&k->why, NONE);
	store(&k->starts, k->starts + 1);
	store(&k->end, 0);
	store(&k->phase, READING);
}

static void set_intervals(struct kmod_source *k, unsigned pace)
{
	struct oal_sampler_reader *r = k->ring.reader;
	const uint32_t took_us = __atomic_load_n(&k->ring.header->longest_us, __ATOMIC_RELAXED);
	const unsigned quick = pace > IDLE_PACE ? pace - IDLE_PACE : 0;

	__atomic_store_n(&r->active_interval_ticks, pace_interval(1, quick, took_us, PATIENCE), __ATOMIC_RELAXED);
	__atomic_store_n(&r->idle_interval_ticks,
			 pace_interval(k->config.idle_interval_ticks, pace < IDLE_PACE ? pace : IDLE_PACE, 0, 0),
			 __ATOMIC_RELAXED);
}

bool kmod_source_samples(struct kmod_source *k, uint32_t ifindex, const struct collector_tick *t, bool *handed_over)
{
	enum phase phase = load(&k->phase);

	*handed_over = false;
	if (phase == LEFT) {
		ioctl(k->ring.fd, OAL_SAMPLER_STOP);
		k->retry_us = load(&k->why) == INTERFACE ? 0 : t->monotonic_us + RETRY_S * 1000000u;
		store(&k->phase, phase = OFF);
		*handed_over = true;
	}
	if (phase == OFF && ifindex && t->monotonic_us >= k->retry_us) {
		k->retry_us = t->monotonic_us + RETRY_S * 1000000u;
		begin(k, ifindex, t);
		phase = load(&k->phase);
		*handed_over |= phase == READING;
	}
	if (phase != READING)
		return false;
	set_intervals(k, t->pace);
	return true;
}

void kmod_source_end(struct kmod_source *k)
{
	store(&k->end, 1);
	k->retry_us = 0;
}

void kmod_source_second(struct kmod_source *k)
{
	const bool reading = load(&k->phase) == READING;
	const uint32_t why = load(&k->why);
	const int now = reading ? -1 : (int)why + 1;

	if (now == k->reported)
		return;
	k->reported = now;
	if (reading)
		log_info("stations of %s are sampled by the kernel module", k->interface);
	else if (why == REFUSED)
		log_warn("stations of %s are sampled by nl80211: the kernel module refuses: %s", k->interface,
			 strerror((int)load(&k->refusal)));
	else if (why > REFUSED)
		log_warn("stations of %s are sampled by nl80211: %s", k->interface, words[why]);
}

/* --- the tick thread */

static void leave(struct kmod_source *k, enum why why)
{
	kmod_table_forget(k->table);
	__atomic_store_n(&k->base_kernel_us, k->kernel_us, __ATOMIC_RELAXED);
	__atomic_store_n(&k->base_missed, k->missed, __ATOMIC_RELAXED);
	store(&k->why, why);
	store(&k->phase, LEFT);
}

/* What is the matter with the module, after its records were taken? */
static enum why check_module(struct kmod_source *k, uint32_t tick)
{
	const struct oal_sampler_header *h = k->ring.header;
	const uint32_t lost = __atomic_load_n(&h->records_lost, __ATOMIC_RELAXED);

	__atomic_store_n(&k->kernel_us,
			 k->base_kernel_us + __atomic_load_n(&h->tick_us, __ATOMIC_RELAXED) +
				 __atomic_load_n(&h->counters_us, __ATOMIC_RELAXED),
			 __ATOMIC_RELAXED);
	__atomic_store_n(&k->missed, k->base_missed + __atomic_load_n(&h->ticks_missed, __ATOMIC_RELAXED),
			 __ATOMIC_RELAXED);
	if (lost) {
		__atomic_store_n(&k->overruns, k->overruns + lost, __ATOMIC_RELAXED);
		return OVERRUN;
	}
	if (__atomic_load_n(&h->state, __ATOMIC_RELAXED) == OAL_SAMPLER_GONE)
		return INTERFACE;
	if ((int32_t)(tick - __atomic_load_n(&h->tick, __ATOMIC_ACQUIRE)) > STALE_TICKS)
		return STOPPED;
	return NONE;
}

void kmod_source_tick(struct kmod_source *k, const struct collector_tick *t)
{
	const struct oal_sampler_record *r;
	uint32_t tick;
	int broken;
	enum why why;

	if (load(&k->phase) != READING)
		return;
	if (load(&k->end)) {
		leave(k, INTERFACE);
		return;
	}
	tick = (uint32_t)((t->monotonic_us * 1000u - k->start.first_ns) / k->start.tick_ns);
	while ((r = kmod_ring_next(&k->ring, tick, &broken))) {
		kmod_table_record(k->table, r, k->ring.reader, t->due_us);
		kmod_ring_release(&k->ring, r);
		k->records++;
	}
	why = broken ? BROKEN : check_module(k, tick);
	if (why)
		leave(k, why);
}

uint32_t kmod_source_rest(struct kmod_source *k, uint32_t passed)
{
	const uint32_t taken = k->ring.tail - k->rested_at;

	if (load(&k->phase) != READING)
		return REST_FLOOD;
	k->rested_at = k->ring.tail;
	return rest_for(taken, k->ring.size, passed);
}

uint64_t kmod_source_kernel_us(const struct kmod_source *k)
{
	return __atomic_load_n(&k->kernel_us, __ATOMIC_RELAXED);
}

void kmod_source_json(const struct kmod_source *k, struct json *j)
{
	const bool reading = load(&k->phase) == READING;
	const uint32_t why = load(&k->why);

	json_add(j, "{\"interface\": ");
	json_string(j, k->interface);
	json_add(j, ", \"source\": \"%s\"", reading ? "module" : "nl80211");
	if (!reading && why) {
		json_add(j, ", \"instead\": ");
		json_string(j, why == REFUSED ? strerror((int)load(&k->refusal)) : words[why]);
	}
	json_count(j, "starts", load(&k->starts));
	json_count(j, "records", k->records);
	json_count(j, "records_lost", load(&k->overruns));
	json_count(j, "ticks_missed", load(&k->missed));
	json_count(j, "kernel_us", kmod_source_kernel_us(k));
	json_add(j, "}");
}
