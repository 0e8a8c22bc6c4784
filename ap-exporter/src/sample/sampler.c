#include "sample/sampler.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
	STOP_WAIT_MS = 250, /* for a thread in the middle of a request; most take less than one */
	SAMPLER_NICE = -10, /* as the tick thread: a sample is due now */
	MOST_REST_US = 10000000,
	MOST_PACE = 8,
};

struct sampler {
	char name[32];
	struct samples *samples;
	struct sampler_source sources[SAMPLER_SOURCES];
	unsigned n;
	pthread_t thread;
	bool started, anchored; /* of the tick thread */

	int news; /* an eventfd: tells the thread of `begin` and `stop`; waiting for it takes one system call */
	pthread_mutex_t lock; /* guards what follows, up to the blank line; `end` tells of `ended` */
	pthread_cond_t end;
	bool begin, stop, ended, left; /* left: nobody waits for the end any more */
	uint64_t first_number, first_us; /* the first tick; all others follow from it */

	/* Written by one thread, read by the other, each by itself. */
	uint32_t pace, rounds, skipped, longest_us, cpu_permille, round_began_ms;
};

static void free_all(struct sampler *s)
{
	for (unsigned i = 0; i < s->n; i++)
		s->sources[i].stop(s->sources[i].self);
	samples_free(s->samples);
	close(s->news);
	pthread_cond_destroy(&s->end);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

int sampler_new(struct sampler **out, const char *name, size_t bytes)
{
	struct sampler *s = calloc(1, sizeof *s);
	pthread_condattr_t monotonic;
	int ret = s ? samples_new(&s->samples, bytes) : -ENOMEM;

	if (!ret && (s->news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0) {
		ret = -errno;
		samples_free(s->samples);
	}
	if (ret) {
		free(s);
		return ret;
	}
	snprintf(s->name, sizeof s->name, "%s", name);
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&s->end, &monotonic);
	pthread_condattr_destroy(&monotonic);
	*out = s;
	return 0;
}

struct samples *sampler_samples(const struct sampler *s)
{
	return s->samples;
}

const char *sampler_name(const struct sampler *s)
{
	return s->name;
}

int sampler_add(struct sampler *s, const struct sampler_source *source)
{
	if (s->n == SAMPLER_SOURCES)
		return -ENOSPC;
	s->sources[s->n++] = *source;
	return 0;
}

/* --- the thread */

static uint64_t cpu_us(void)
{
	struct timespec t = { 0 };

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

static struct timespec at(uint64_t monotonic_us)
{
	return (struct timespec){ .tv_sec = (time_t)(monotonic_us / 1000000u),
				  .tv_nsec = (long)(monotonic_us % 1000000u) * 1000 };
}

/* The thread looks at `begin` and `stop`. */
static void wake(const struct sampler *s)
{
	(void)!write(s->news, &(uint64_t){ 1 }, sizeof(uint64_t));
}

/* Waits until `monotonic_us`; with 0, for the first tick. False: stop. */
static bool await(struct sampler *s, uint64_t monotonic_us)
{
	for (;;) {
		const uint64_t now = clock_monotonic_us();
		const struct timespec left = at(monotonic_us > now ? monotonic_us - now : 0);
		struct pollfd news = { .fd = s->news, .events = POLLIN };
		bool go, due;

		pthread_mutex_lock(&s->lock);
		go = !s->stop;
		due = monotonic_us ? now >= monotonic_us : s->begin;
		pthread_mutex_unlock(&s->lock);
		if (!go || due)
			return go;
		if (ppoll(&news, 1, monotonic_us ? &left : NULL, NULL) > 0)
			(void)!read(s->news, &(uint64_t){ 0 }, sizeof(uint64_t));
	}
}

struct second {
	uint64_t began_us, cpu_us;
	uint32_t longest_us;
};

/* Once a second: what the second cost, and what the sources look at then. */
static void close_second(struct sampler *s, struct second *of, uint64_t now_us)
{
	const uint64_t cpu = cpu_us(), wall = now_us - of->began_us;

	__atomic_store_n(&s->cpu_permille, (uint32_t)((cpu - of->cpu_us) * 1000u / wall), __ATOMIC_RELAXED);
	__atomic_store_n(&s->longest_us, of->longest_us, __ATOMIC_RELAXED);
	*of = (struct second){ .began_us = now_us, .cpu_us = cpu };
	for (unsigned i = 0; i < s->n; i++)
		if (s->sources[i].second)
			s->sources[i].second(s->sources[i].self);
}

static void round_of(struct sampler *s, uint64_t number, struct second *second)
{
	const struct collector_tick t = {
		.number = number,
		.monotonic_us = s->first_us + (number - s->first_number) * OAL_SETTING_TICK_US,
		.pace = __atomic_load_n(&s->pace, __ATOMIC_RELAXED),
	};
	const uint64_t began = clock_monotonic_us();
	uint64_t took;

	samples_tick(s->samples, number);
	__atomic_store_n(&s->round_began_ms, (uint32_t)(began / 1000u) | 1u, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < s->n; i++)
		s->sources[i].tick(s->sources[i].self, &t);
	__atomic_store_n(&s->round_began_ms, 0, __ATOMIC_RELAXED);
	took = clock_monotonic_us() - began;
	if (took > second->longest_us)
		second->longest_us = took > UINT32_MAX ? UINT32_MAX : (uint32_t)took;
	__atomic_store_n(&s->rounds, s->rounds + 1, __ATOMIC_RELAXED);
}

/* The next tick that a source is due at. */
static uint64_t next_due(const struct sampler *s, uint64_t number)
{
	uint64_t next = number + 1000000 / OAL_SETTING_TICK_US;

	for (unsigned i = 0; i < s->n; i++) {
		const uint64_t due = s->sources[i].due ? s->sources[i].due(s->sources[i].self) : 0;

		if (due < next)
			next = due;
	}
	return next > number ? next : number + 1;
}

/* When the round for a tick begins. */
static uint64_t begins_us(const struct sampler *s, uint64_t number)
{
	return s->first_us - SAMPLER_LEAD_US + (number - s->first_number) * OAL_SETTING_TICK_US;
}

/* The tick of the next round. Those that went by while the last one took its time are counted. */
static uint64_t after(struct sampler *s, uint64_t number)
{
	const uint64_t now = clock_monotonic_us(), next = begins_us(s, number + 1);
	const uint64_t late = now > next ? (now - next) / OAL_SETTING_TICK_US : 0, due = next_due(s, number);

	if (late)
		__atomic_store_n(&s->skipped, s->skipped + (uint32_t)late, __ATOMIC_RELAXED);
	return due > number + 1 + late ? due : number + 1 + late;
}

static void *run(void *self)
{
	struct sampler *s = self;
	struct second second;
	uint64_t number;
	bool alone;

	setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), SAMPLER_NICE); /* only root may */
	if (await(s, 0)) {
		second = (struct second){ .began_us = clock_monotonic_us(), .cpu_us = cpu_us() };
		for (number = s->first_number + 1;; number = after(s, number)) {
			if (!await(s, begins_us(s, number)))
				break;
			round_of(s, number, &second);
			if (clock_monotonic_us() - second.began_us >= 1000000)
				close_second(s, &second, clock_monotonic_us());
		}
	}
	pthread_mutex_lock(&s->lock);
	s->ended = true;
	alone = s->left;
	pthread_cond_broadcast(&s->end);
	pthread_mutex_unlock(&s->lock);
	if (alone)
		free_all(s);
	return NULL;
}

int sampler_start(struct sampler *s)
{
	int ret = pthread_create(&s->thread, NULL, run, s);

	s->started = !ret;
	return -ret;
}

void sampler_stop(struct sampler *s)
{
	const struct timespec until = at(clock_monotonic_us() + STOP_WAIT_MS * 1000u);
	bool ended;
	int ret = 0;

	if (!s)
		return;
	if (s->started) {
		samples_close(s->samples);
		pthread_mutex_lock(&s->lock);
		s->stop = true;
		wake(s);
		while (!s->ended && !ret)
			ret = pthread_cond_timedwait(&s->end, &s->lock, &until);
		ended = s->ended;
		s->left = !ended;
		pthread_mutex_unlock(&s->lock);
		if (!ended) {
			pthread_detach(s->thread);
			return; /* the thread frees it */
		}
		pthread_join(s->thread, NULL);
	}
	free_all(s);
}

/* --- tick thread */

void sampler_tick(struct sampler *s, const struct collector_tick *t, struct pipeline *p,
		  struct collector_counts *counts)
{
	if (!s->anchored) {
		pthread_mutex_lock(&s->lock); /* the thread does nothing yet but wait for this */
		s->first_number = t->number;
		s->first_us = t->monotonic_us;
		s->begin = s->anchored = true;
		wake(s);
		pthread_mutex_unlock(&s->lock);
	}
	samples_drain(s->samples, p, counts, t);
}

uint32_t sampler_rest(struct sampler *s, uint32_t passed)
{
	return samples_rest(s->samples, passed);
}

void sampler_stats(const struct sampler *s, struct sampler_stats *out)
{
	const uint32_t began = __atomic_load_n(&s->round_began_ms, __ATOMIC_RELAXED);
	const uint32_t now = (uint32_t)(clock_monotonic_us() / 1000u);
	uint32_t goes_on = began && now - began < UINT32_MAX / 2 ? now - began : 0;

	if (goes_on > UINT32_MAX / 1000)
		goes_on = UINT32_MAX / 1000;
	*out = (struct sampler_stats){
		.rounds = __atomic_load_n(&s->rounds, __ATOMIC_RELAXED),
		.skipped = __atomic_load_n(&s->skipped, __ATOMIC_RELAXED) + goes_on * 1000 / OAL_SETTING_TICK_US,
		.longest_us = __atomic_load_n(&s->longest_us, __ATOMIC_RELAXED),
		.cpu_permille = __atomic_load_n(&s->cpu_permille, __ATOMIC_RELAXED),
		.pace = __atomic_load_n(&s->pace, __ATOMIC_RELAXED),
	};
	if (goes_on * 1000 > out->longest_us)
		out->longest_us = goes_on * 1000;
}

void sampler_set_pace(struct sampler *s, unsigned pace)
{
	__atomic_store_n(&s->pace, pace > MOST_PACE ? MOST_PACE : pace, __ATOMIC_RELAXED);
}

/* --- for sources */

uint32_t pace_interval(uint32_t interval, unsigned pace, uint32_t took_us, unsigned patience)
{
	uint64_t ticks = (uint64_t)interval << (pace > MOST_PACE ? MOST_PACE : pace);

	if (took_us > OAL_SETTING_TICK_US) {
		uint64_t rest_us = (uint64_t)took_us * patience;

		if (rest_us > MOST_REST_US)
			rest_us = MOST_REST_US;
		if (rest_us / OAL_SETTING_TICK_US > ticks)
			ticks = rest_us / OAL_SETTING_TICK_US;
	}
	return ticks > UINT32_MAX ? UINT32_MAX : (uint32_t)ticks;
}
