/*
 * Sink: Kafka. The tick path only copies a batch into a queue; a thread signs them and hands them to librdkafka, oldest
 * first, and never more than inflight_kb at once. So while Kafka is away the queue fills and keeps the newest, and
 * librdkafka holds a little of the oldest, which it sends first when Kafka is back: nothing is reordered and nothing is
 * sent twice.
 *
 * Certificates and MAC keys may be renewed: the thread lets the old producer finish, then goes on with a new one and
 * the same queue.
 */
#ifdef HAVE_KAFKA

#include "ship/sink.h"

#include "base/clock.h"
#include "base/log.h"
#include "ship/kafka_files.h"
#include "ship/kafka_sender.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define SENDER_STACK (128 * 1024)

static int kafka_wanted(const struct config *c)
{
	return c->n_kafka > 0;
}

static int kafka_check(const struct config *c, char *err, size_t err_size)
{
	uint8_t hash[SHA256_BYTES];
	struct mac_keys *keys;
	int ret = kafka_files_hash(hash, c, err, err_size);

	if (ret)
		return ret;
	ret = kafka_files_keys(&keys, c, err, err_size);
	mac_keys_free(keys);
	return ret;
}

/* Signals belong to the main thread; glibc and musl both start threads, librdkafka's too, with this stack. */
static void quiet_threads(pthread_attr_t *attr, sigset_t *before)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, before);
	pthread_attr_init(attr);
	pthread_attr_setstacksize(attr, SENDER_STACK);
	pthread_setattr_default_np(attr);
}

static int kafka_open(void **self, const struct config *c, char *err, size_t err_size)
{
	struct kafka_sender *k = calloc(1, sizeof *k);
	pthread_attr_t attr;
	sigset_t before;
	int ret;

	if (!k) {
		snprintf(err, err_size, "kafka: out of memory");
		return -ENOMEM;
	}
	k->config = *c;
	k->last = &k->first;
	pthread_mutex_init(&k->lock, NULL);
	k->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	k->events = (struct kafka_events){ kafka_sender_delivered, kafka_sender_error, kafka_sender_throttled, k,
	                                   k->wake, 0 };
	k->queue = send_queue_new((size_t)c->kafka.buffer_kb * 1024);
	ret = kafka_files_hash(k->tls, c, err, err_size);
	ret = ret ? ret : kafka_files_keys(&k->keys, c, err, err_size);
	if (!ret && (k->wake < 0 || !k->queue)) {
		ret = k->wake < 0 ? -errno : -ENOMEM;
		snprintf(err, err_size, "kafka: cannot make a buffer of %u KiB: %s", c->kafka.buffer_kb,
		         strerror(-ret));
	}
	if (ret)
		goto fail;
	quiet_threads(&attr, &before);
	ret = kafka_producer_new(&k->producer, c, &k->events, err, err_size);
	if (!ret) {
		ret = -pthread_create(&k->thread, &attr, kafka_sender_run, k);
		if (ret)
			snprintf(err, err_size, "kafka: cannot start the sender thread: %s", strerror(-ret));
	}
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (ret)
		goto fail;
	*self = k;
	return 0;
fail:
	kafka_producer_free(&k->producer);
	mac_keys_free(k->keys);
	if (k->wake >= 0)
		close(k->wake);
	send_queue_free(k->queue);
	pthread_mutex_destroy(&k->lock);
	free(k);
	return ret;
}

static void kafka_send(void *self, const struct sink_batch *b)
{
	struct kafka_sender *k = self;
	struct kafka_head head = { .topic = (uint8_t)b->topic };
	size_t key_len = strnlen(b->ap_id, sizeof head.key);
	int pushed_out;

	head.key_len = (uint8_t)key_len;
	memcpy(head.key, b->ap_id, key_len);
	pthread_mutex_lock(&k->lock);
	pushed_out = send_queue_push(k->queue, &head, sizeof head, b->bytes, b->len);
	k->stats.let_go += pushed_out < 0 ? 1 : (uint64_t)pushed_out;
	pthread_mutex_unlock(&k->lock);
	kafka_sender_wake(k);
}

static void kafka_stats(void *self, struct sink_stats *s)
{
	struct kafka_sender *k = self;

	pthread_mutex_lock(&k->lock);
	*s = k->stats;
	s->queued_bytes = send_queue_bytes(k->queue);
	pthread_mutex_unlock(&k->lock);
	s->queued_bytes += k->inflight;
}

static void kafka_second(void *self)
{
	struct kafka_sender *k = self;
	struct sink_stats s;

	kafka_stats(k, &s);
	if (s.throttled_ms && !k->throttled_reported) /* once; the status has how long in all */
		log_warn("kafka %s: the broker makes us wait, for we send more than our quota",
		         k->config.kafka.brokers);
	k->throttled_reported = s.throttled_ms;
	if (s.errors != k->errors_reported || s.let_go != k->let_go_reported)
		log_warn("kafka %s: %llu errors and %llu batches let go in the last second, %llu KiB waiting; "
		         "latest: %s",
		         k->config.kafka.brokers, (unsigned long long)(s.errors - k->errors_reported),
		         (unsigned long long)(s.let_go - k->let_go_reported), (unsigned long long)s.queued_bytes / 1024,
		         s.last_error[0] ? s.last_error : "buffer full");
	k->errors_reported = s.errors;
	k->let_go_reported = s.let_go;
}

static void kafka_close(void *self, struct sink_stats *last)
{
	struct kafka_sender *k = self;

	pthread_mutex_lock(&k->lock);
	k->stop_at_us = clock_monotonic_us() + (uint64_t)k->config.kafka.flush_ms * 1000 + 1;
	pthread_mutex_unlock(&k->lock);
	kafka_sender_wake(k);
	pthread_join(k->thread, NULL);
	k->stats.let_go += send_queue_records(k->queue);
	for (; k->first; k->stats.let_go++) {
		free(k->first->bytes);
		kafka_sender_drop_first(k);
	}
	if (last)
		*last = k->stats;
	kafka_producer_free(&k->next);
	mac_keys_free(k->next_keys);
	mac_keys_free(k->keys);
	close(k->wake);
	send_queue_free(k->queue);
	pthread_mutex_destroy(&k->lock);
	free(k);
}

/* --- a reload */

static int kafka_same(const struct config *a, const struct config *b)
{
	return !memcmp(&a->kafka, &b->kafka, sizeof a->kafka) && !strcmp(a->exporter.ap_id, b->exporter.ap_id);
}

static int kafka_reread(void *self, const struct config *c, char *err, size_t err_size)
{
	struct kafka_producer next = { 0 }, late = { 0 };
	struct mac_keys *keys = NULL, *late_keys;
	struct kafka_sender *k = self;
	uint8_t hash[SHA256_BYTES];
	pthread_attr_t attr;
	sigset_t before;
	int ret = kafka_files_hash(hash, c, err, err_size);

	ret = ret ? ret : kafka_files_keys(&keys, c, err, err_size);
	if (ret == -EACCES) { /* privileges were dropped since: what it has is as good as before */
		log_warn("%s; what was read at the start stays in use: give the file to the exporter's user", err);
		return 0;
	}
	if (!ret && memcmp(hash, k->tls, sizeof hash)) {
		quiet_threads(&attr, &before);
		ret = kafka_producer_new(&next, c, &k->events, err, err_size);
		pthread_attr_destroy(&attr);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
		if (!ret)
			memcpy(k->tls, hash, sizeof hash);
	}
	if (ret) {
		mac_keys_free(keys);
		return ret;
	}
	pthread_mutex_lock(&k->lock);
	late_keys = k->next_keys;
	k->next_keys = keys;
	if (next.rk) {
		late = k->next;
		k->next = next;
	}
	pthread_mutex_unlock(&k->lock);
	mac_keys_free(late_keys); /* replaced before the sender took them */
	kafka_producer_free(&late);
	if (next.rk)
		log_info("kafka: goes on with the new certificate");
	kafka_sender_wake(k);
	return 0;
}

const struct sink_ops sink_kafka = {
	.name = "kafka",
	.wanted = kafka_wanted,
	.check = kafka_check,
	.open = kafka_open,
	.send = kafka_send,
	.second = kafka_second,
	.stats = kafka_stats,
	.close = kafka_close,
	.same = kafka_same,
	.reread = kafka_reread,
};
#else
typedef int sink_kafka_is_not_in_this_build;
#endif
