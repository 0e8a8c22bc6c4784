/* Sink: a capture file. A thread writes it: flash that cleans up stands still for seconds, and the tick must not. A
 * disk that is full is counted; writing goes on when there is room again. */
#include "base/log.h"
#include "ship/send_queue.h"
#include "ship/sink.h"
#include "wire/capture_file.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	QUEUE_BYTES = 1 << 20, /* for what a disk that stands still makes wait: three seconds of a busy access point */
	CLOSE_WAIT_S = 5, /* for what waits at the end */
};

struct head { /* before each batch in the queue */
	uint64_t t0_us;
	int topic;
};

struct file {
	struct config_file config;
	struct capture_writer writer; /* of the thread, once it runs */
	pthread_t thread;
	bool patient; /* a replay waits for the disk: there is no tick to miss */
	uint64_t let_go_reported; /* of the tick thread */
	uint8_t *batch; /* of the thread: the one that is written */
	size_t batch_room;

	pthread_mutex_t lock; /* guards what follows; held for copies in memory alone */
	pthread_cond_t news; /* a batch to write, room, or the end */
	struct send_queue *queue;
	uint64_t written, writing; /* bytes in the file, and of the batch on its way there */
	struct sink_stats stats;
	bool stop, ended, left; /* left: nobody waits for the end any more */
};

static int file_wanted(const struct config *c)
{
	return c->n_file > 0;
}

static int file_check(const struct config *c, char *err, size_t err_size)
{
	char dir[CONFIG_FILE], *slash;

	snprintf(dir, sizeof dir, "%s", c->file.path);
	slash = strrchr(dir, '/');
	if (slash)
		slash[slash == dir] = '\0';
	if (!slash || access(dir, W_OK | X_OK) == 0)
		return 0;
	snprintf(err, err_size, "file: cannot write to the folder of %s: %s", c->file.path, strerror(errno));
	return -errno;
}

/* --- the thread */

static void count_failure(struct file *f, int error)
{
	f->stats.let_go++;
	f->stats.errors++;
	snprintf(f->stats.last_error, sizeof f->stats.last_error, "%s", strerror(-error));
}

static void write_one(struct file *f, const struct head *h, size_t len)
{
	const struct capture_record r = { .topic = h->topic, .bytes = f->batch, .len = len, .t0_us = h->t0_us };
	const int ret = capture_append(&f->writer, &r);

	pthread_mutex_lock(&f->lock);
	if (ret < 0)
		count_failure(f, ret);
	else
		f->stats.delivered++;
	f->written = f->writer.size;
	f->writing = 0;
	pthread_mutex_unlock(&f->lock);
}

/* Takes the oldest batch out of the queue. Its length; 0: there is none, and there will be none. */
static size_t dequeue(struct file *f, struct head *h)
{
	const uint8_t *record = NULL;
	size_t len = 0;

	pthread_mutex_lock(&f->lock);
	while (!(record = send_queue_peek(f->queue, &len)) && !f->stop)
		pthread_cond_wait(&f->news, &f->lock);
	if (record) {
		memcpy(h, record, sizeof *h);
		len -= sizeof *h;
		if (len > f->batch_room) {
			uint8_t *more = realloc(f->batch, len);

			f->batch = more ? more : f->batch;
			f->batch_room = more ? len : f->batch_room;
		}
		if (len <= f->batch_room) {
			memcpy(f->batch, record + sizeof *h, len);
			f->writing = len + CAPTURE_HEADER_BYTES;
		} else {
			count_failure(f, -ENOMEM);
		}
		send_queue_pop(f->queue);
		f->stats.queued_bytes = send_queue_bytes(f->queue);
		pthread_cond_broadcast(&f->news);
	}
	pthread_mutex_unlock(&f->lock);
	return record ? len : 0;
}

static void free_file(struct file *f)
{
	pthread_cond_destroy(&f->news);
	pthread_mutex_destroy(&f->lock);
	send_queue_free(f->queue);
	free(f->batch);
	free(f);
}

static void *run(void *self)
{
	struct file *f = self;
	struct head h;
	size_t len;
	bool alone;
	int ret;

	while ((len = dequeue(f, &h)) > 0)
		if (len <= f->batch_room)
			write_one(f, &h, len);
	ret = capture_close(&f->writer);
	pthread_mutex_lock(&f->lock);
	if (ret < 0) {
		f->stats.errors++;
		snprintf(f->stats.last_error, sizeof f->stats.last_error, "closing: %s", strerror(-ret));
	}
	f->ended = true;
	alone = f->left;
	pthread_cond_broadcast(&f->news);
	pthread_mutex_unlock(&f->lock);
	if (alone)
		free_file(f);
	return NULL;
}

/* --- the tick thread */

static int file_open(void **self, const struct config *c, char *err, size_t err_size)
{
	struct file *f = calloc(1, sizeof *f);
	pthread_condattr_t monotonic;
	int ret = f ? capture_create(&f->writer, c->file.path) : -ENOMEM;

	if (ret < 0) {
		snprintf(err, err_size, "file: cannot create capture %s: %s", c->file.path, strerror(-ret));
		free(f);
		return ret;
	}
	f->config = c->file;
	f->patient = c->n_replay > 0;
	f->written = f->writer.size;
	pthread_mutex_init(&f->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&f->news, &monotonic);
	pthread_condattr_destroy(&monotonic);
	f->queue = send_queue_new(QUEUE_BYTES);
	ret = f->queue ? -pthread_create(&f->thread, NULL, run, f) : -ENOMEM;
	if (ret < 0) {
		snprintf(err, err_size, "file: no thread to write %s: %s", c->file.path, strerror(-ret));
		capture_close(&f->writer);
		free_file(f);
		return ret;
	}
	*self = f;
	return 0;
}

static uint64_t size_with_waiting(const struct file *f)
{
	return f->written + f->writing + send_queue_bytes(f->queue) +
	       send_queue_records(f->queue) * (CAPTURE_HEADER_BYTES - sizeof(struct head));
}

static void file_send(void *self, const struct sink_batch *b)
{
	const struct head h = { .topic = b->topic, .t0_us = b->t0_us };
	const size_t record = sizeof h + b->len, whole = b->len + CAPTURE_HEADER_BYTES;
	struct file *f = self;
	int out;

	pthread_mutex_lock(&f->lock);
	if (f->config.max_mb && size_with_waiting(f) + whole > (uint64_t)f->config.max_mb << 20) {
		f->stats.let_go++; /* as configured: no error */
		pthread_mutex_unlock(&f->lock);
		return;
	}
	while (f->patient && send_queue_bytes(f->queue) && send_queue_bytes(f->queue) + 2 * record > QUEUE_BYTES)
		pthread_cond_wait(&f->news, &f->lock);
	out = send_queue_push(f->queue, &h, sizeof h, b->bytes, b->len);
	if (out) {
		f->stats.let_go += out < 0 ? 1 : (unsigned)out;
		f->stats.errors++;
		snprintf(f->stats.last_error, sizeof f->stats.last_error,
			 out < 0 ? "a batch larger than what may wait" : "the disk is too slow: the oldest are let go");
	}
	f->stats.queued_bytes = send_queue_bytes(f->queue);
	pthread_cond_broadcast(&f->news);
	pthread_mutex_unlock(&f->lock);
}

static void file_stats(void *self, struct sink_stats *s)
{
	struct file *f = self;

	pthread_mutex_lock(&f->lock);
	*s = f->stats;
	pthread_mutex_unlock(&f->lock);
}

static void file_second(void *self)
{
	struct file *f = self;
	struct sink_stats s;

	file_stats(f, &s);
	if (s.let_go != f->let_go_reported)
		log_warn("file %s: %llu batches not written in the last second: %s", f->config.path,
			 (unsigned long long)(s.let_go - f->let_go_reported),
			 s.errors ? s.last_error : "'max_mb' is reached");
	f->let_go_reported = s.let_go;
}

static void file_close(void *self, struct sink_stats *last)
{
	struct file *f = self;
	struct timespec until;
	bool ended;
	int ret = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += CLOSE_WAIT_S;
	pthread_mutex_lock(&f->lock);
	f->stop = true;
	pthread_cond_broadcast(&f->news);
	while (!f->ended && !ret)
		ret = pthread_cond_timedwait(&f->news, &f->lock, &until);
	ended = f->ended;
	f->left = !ended;
	f->stats.let_go += send_queue_records(f->queue); /* the disk stands still: they may come too late */
	if (last)
		*last = f->stats;
	pthread_mutex_unlock(&f->lock);
	if (ended) {
		pthread_join(f->thread, NULL);
		free_file(f);
	} else {
		pthread_detach(f->thread); /* it frees everything once the disk lets it go */
	}
}

static int file_same(const struct config *a, const struct config *b)
{
	/* Opening it again would empty it; max_mb is as it was at the start. */
	return !strcmp(a->file.path, b->file.path);
}

const struct sink_ops sink_file = {
	.name = "file",
	.wanted = file_wanted,
	.check = file_check,
	.open = file_open,
	.send = file_send,
	.second = file_second,
	.stats = file_stats,
	.close = file_close,
	.same = file_same,
};
