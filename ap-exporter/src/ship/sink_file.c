/* Sink: a capture file. A disk that is full is counted; writing goes on when there is room again. */
#include "wire/capture_file.h"
#include "base/log.h"
#include "ship/sink.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct file {
	struct config_file config;
	struct capture_writer writer;
	struct sink_stats stats;
	uint64_t let_go_reported;
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

static int file_open(void **self, const struct config *c, char *err, size_t err_size)
{
	struct file *f = calloc(1, sizeof *f);
	int ret = f ? capture_create(&f->writer, c->file.path) : -ENOMEM;

	if (ret < 0) {
		snprintf(err, err_size, "file: cannot create capture %s: %s", c->file.path, strerror(-ret));
		free(f);
		return ret;
	}
	f->config = c->file;
	*self = f;
	return 0;
}

static void file_send(void *self, const struct sink_batch *b)
{
	struct capture_record r = { .topic = b->topic, .bytes = b->bytes, .len = b->len, .t0_us = b->t0_us };
	struct file *f = self;
	int ret = 0;

	if (f->config.max_mb && f->writer.size + b->len + CAPTURE_HEADER_BYTES > (uint64_t)f->config.max_mb << 20) {
		f->stats.let_go++; /* as configured: no error */
		return;
	}
	ret = capture_append(&f->writer, &r);
	if (ret == 0) {
		f->stats.delivered++;
		return;
	}
	f->stats.let_go++;
	f->stats.errors++;
	snprintf(f->stats.last_error, sizeof f->stats.last_error, "%s", strerror(-ret));
}

static void file_second(void *self)
{
	struct file *f = self;

	if (f->stats.let_go != f->let_go_reported)
		log_warn("file %s: %llu batches not written in the last second: %s", f->config.path,
		         (unsigned long long)(f->stats.let_go - f->let_go_reported),
		         f->stats.errors ? f->stats.last_error : "'max_mb' is reached");
	f->let_go_reported = f->stats.let_go;
}

static void file_stats(void *self, struct sink_stats *s)
{
	*s = ((struct file *)self)->stats;
}

static void file_close(void *self, struct sink_stats *last)
{
	struct file *f = self;
	int ret = capture_close(&f->writer);

	if (ret < 0) {
		f->stats.errors++;
		snprintf(f->stats.last_error, sizeof f->stats.last_error, "closing: %s", strerror(-ret));
	}
	if (last)
		*last = f->stats;
	free(f);
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
