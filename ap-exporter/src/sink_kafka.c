/*
 * Sink: Kafka. The tick path only copies a batch into a ring; a thread hands them to librdkafka, oldest first, and never
 * more than inflight_kb at once. So while Kafka is away the ring fills and keeps the newest, and librdkafka holds a little
 * of the oldest, which it sends first when Kafka is back: nothing is reordered and nothing is sent twice.
 */
#ifdef HAVE_KAFKA

#include "sink.h"

#include "clock.h"
#include "log.h"
#include "oal_schema.h"
#include "ring.h"

#include <errno.h>
#include <librdkafka/rdkafka.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define N_TOPICS 3
#define SENDER_STACK (128 * 1024)

static const char *const topic_names[N_TOPICS] = {
	[OAL_TOPIC_SAMPLES] = "ap.samples.v1",
	[OAL_TOPIC_PACKETS] = "ap.packets.v1",
	[OAL_TOPIC_EVENTS] = "ap.events.v1",
};

/* Precedes each batch in the ring. */
struct head {
	uint8_t topic, key_len;
	char key[CONFIG_NAME + 8];
};

struct kafka {
	struct config config;
	rd_kafka_t *rk;                     /* sender thread only, after open */
	rd_kafka_topic_t *topics[N_TOPICS];
	pthread_t sender;
	int wake;                           /* eventfd: a batch, a delivery report, or the end */
	_Atomic size_t inflight;            /* bytes at librdkafka; written by the sender thread only */
	uint64_t stop_at_us;                /* 0: run; else flush until then. Under lock */
	pthread_mutex_t lock;               /* guards ring, stats and stop_at_us */
	struct ring *ring;
	struct sink_stats stats;
	uint64_t let_go_told, errors_told;  /* main thread: what was last logged */
};

static void wake(struct kafka *k)
{
	const uint64_t one = 1;

	if (write(k->wake, &one, sizeof one) < 0)
		return; /* counter at its limit: the sender is awake anyway */
}

static void error_text(struct kafka *k, const char *text)
{
	pthread_mutex_lock(&k->lock);
	k->stats.errors++;
	snprintf(k->stats.last_error, sizeof k->stats.last_error, "%.190s", text);
	pthread_mutex_unlock(&k->lock);
}

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *m, void *opaque)
{
	struct kafka *k = opaque;

	(void)rk;
	k->inflight -= m->len;
	if (m->err && m->err != RD_KAFKA_RESP_ERR__PURGE_QUEUE && m->err != RD_KAFKA_RESP_ERR__PURGE_INFLIGHT) {
		char text[160];

		snprintf(text, sizeof text, "batch for %s: %s", rd_kafka_topic_name(m->rkt), rd_kafka_err2str(m->err));
		error_text(k, text);
	}
	pthread_mutex_lock(&k->lock);
	if (m->err)
		k->stats.let_go++;
	else
		k->stats.delivered++;
	pthread_mutex_unlock(&k->lock);
}

static void on_error(rd_kafka_t *rk, int err, const char *reason, void *opaque)
{
	(void)rk;
	if (err != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) /* follows the errors that say why */
		error_text(opaque, reason);
}

/* librdkafka says the same again through on_error; its own lines would come from its threads and at any rate. */
static void on_log(const rd_kafka_t *rk, int level, const char *facility, const char *text)
{
	(void)rk;
	(void)level;
	(void)facility;
	(void)text;
}

static int set(rd_kafka_conf_t *conf, const char *name, const char *value, char *err, size_t err_size)
{
	char why[256];

	if (rd_kafka_conf_set(conf, name, value, why, sizeof why) == RD_KAFKA_CONF_OK)
		return 0;
	snprintf(err, err_size, "kafka: librdkafka refuses %s: %s", name, why);
	return -EINVAL;
}

static int set_number(rd_kafka_conf_t *conf, const char *name, uint64_t value, char *err, size_t err_size)
{
	char text[24];

	snprintf(text, sizeof text, "%llu", (unsigned long long)value);
	return set(conf, name, text, err, err_size);
}

/* The producer and its topics, into k. */
static int produce_to(struct kafka *k, char *err, size_t err_size)
{
	static const char *const fixed[][2] = {
		{ "enable.idempotence", "true" },
		{ "acks", "all" },
		{ "compression.codec", "lz4" },
		{ "message.timeout.ms", "0" },          /* only our ring lets data go */
		{ "partitioner", "murmur2_random" },    /* the Java clients' rule for keys */
		{ "queue.buffering.max.messages", "10000" },
		{ "reconnect.backoff.ms", "100" },
		{ "reconnect.backoff.max.ms", "2000" }, /* back soon after Kafka is */
		{ "retry.backoff.ms", "100" },
		{ "log.connection.close", "false" },
		{ "topic.metadata.refresh.interval.ms", "60000" },
		{ "socket.keepalive.enable", "true" },
		{ "socket.send.buffer.bytes", "131072" },
		{ "socket.receive.buffer.bytes", "16384" },
	};
	const struct config_kafka *c = &k->config.kafka;
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	rd_kafka_t *rk = NULL;
	char why[256];
	int ret = 0;

	for (size_t i = 0; i < sizeof fixed / sizeof fixed[0] && !ret; i++)
		ret = set(conf, fixed[i][0], fixed[i][1], err, err_size);
	ret = ret ? ret : set(conf, "bootstrap.servers", c->brokers, err, err_size);
	ret = ret ? ret : set(conf, "client.id", k->config.exporter.ap_id, err, err_size);
	ret = ret ? ret : set_number(conf, "linger.ms", c->linger_ms, err, err_size);
	ret = ret ? ret : set_number(conf, "message.max.bytes", OAL_SETTING_MAX_BATCH_BYTES + 4096, err, err_size);
	/* Twice the window, and one batch of any size: producing cannot fail for want of room. */
	ret = ret ? ret : set_number(conf, "queue.buffering.max.kbytes", 2 * (uint64_t)c->inflight_kb + 2048, err, err_size);
	if (!c->plaintext) {
		ret = ret ? ret : set(conf, "security.protocol", "ssl", err, err_size);
		ret = ret ? ret : set(conf, "ssl.ca.location", c->ca, err, err_size);
		ret = ret ? ret : set(conf, "ssl.certificate.location", c->certificate, err, err_size);
		ret = ret ? ret : set(conf, "ssl.key.location", c->key, err, err_size);
	}
	if (ret)
		goto out;
	rd_kafka_conf_set_opaque(conf, k);
	rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
	rd_kafka_conf_set_error_cb(conf, on_error);
	rd_kafka_conf_set_log_cb(conf, on_log);
	rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
	if (!rk) {
		snprintf(err, err_size, "kafka: cannot make a producer for %s: %s", c->brokers, why);
		ret = -EINVAL;
		goto out;
	}
	conf = NULL; /* the producer owns it */
	for (int i = 0; i < N_TOPICS; i++) {
		char name[CONFIG_NAME + 32];

		snprintf(name, sizeof name, "%s%s", c->topic_prefix, topic_names[i]);
		k->topics[i] = rd_kafka_topic_new(rk, name, NULL);
		if (!k->topics[i]) {
			snprintf(err, err_size, "kafka: topic name %s: %s", name, rd_kafka_err2str(rd_kafka_last_error()));
			ret = -EINVAL;
			goto out;
		}
	}
	{
		const uint64_t one = 1;
		rd_kafka_queue_t *reports = rd_kafka_queue_get_main(rk);

		rd_kafka_queue_io_event_enable(reports, k->wake, &one, sizeof one);
		rd_kafka_queue_destroy(reports);
	}
	k->rk = rk;
	return 0;
out:
	if (conf)
		rd_kafka_conf_destroy(conf);
	if (rk) {
		for (int i = 0; i < N_TOPICS; i++)
			if (k->topics[i])
				rd_kafka_topic_destroy(k->topics[i]);
		rd_kafka_destroy(rk);
	}
	memset(k->topics, 0, sizeof k->topics);
	return ret;
}

static void drop_producer(struct kafka *k)
{
	if (!k->rk)
		return;
	rd_kafka_purge(k->rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
	rd_kafka_flush(k->rk, 500); /* reads the reports of what was purged, so that all of it is counted */
	for (int i = 0; i < N_TOPICS; i++)
		rd_kafka_topic_destroy(k->topics[i]);
	rd_kafka_destroy(k->rk);
	k->rk = NULL;
	k->inflight = 0;
}

/* Hands the oldest batches of the ring to librdkafka, as many as the window takes. */
static void hand_over(struct kafka *k)
{
	size_t window = (size_t)k->config.kafka.inflight_kb * 1024, len;
	const uint8_t *record;

	pthread_mutex_lock(&k->lock);
	while (k->inflight < window && (record = ring_peek(k->ring, &len))) {
		struct head head;
		size_t body = len - sizeof head;
		int failed;

		memcpy(&head, record, sizeof head);
		failed = rd_kafka_produce(k->topics[head.topic], RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY,
					  (void *)(uintptr_t)(record + sizeof head), body, head.key, head.key_len, NULL);
		if (failed && rd_kafka_last_error() == RD_KAFKA_RESP_ERR__QUEUE_FULL)
			break; /* reports that are still to be read will make room */
		if (failed) {
			k->stats.errors++;
			k->stats.let_go++;
			snprintf(k->stats.last_error, sizeof k->stats.last_error, "batch for %s: %s",
				 rd_kafka_topic_name(k->topics[head.topic]), rd_kafka_err2str(rd_kafka_last_error()));
		} else {
			k->inflight += body;
		}
		ring_pop(k->ring);
	}
	pthread_mutex_unlock(&k->lock);
}

/* After a fatal error of the idempotent producer only a new one goes on; what the old one held is counted as let go. */
static void restart_if_fatal(struct kafka *k)
{
	char why[256];

	if (k->rk && !rd_kafka_fatal_error(k->rk, why, sizeof why))
		return;
	drop_producer(k);
	if (produce_to(k, why, sizeof why) < 0) {
		error_text(k, why);
		poll(NULL, 0, 1000);
	}
}

static void *sender(void *arg)
{
	struct kafka *k = arg;

	for (;;) {
		struct pollfd p = { .fd = k->wake, .events = POLLIN };
		uint64_t news, stop_at;
		bool empty;

		poll(&p, 1, 500);
		if (read(k->wake, &news, sizeof news) < 0)
			news = 0; /* woken by the timeout */
		restart_if_fatal(k);
		if (k->rk) {
			rd_kafka_poll(k->rk, 0);
			hand_over(k);
		}
		pthread_mutex_lock(&k->lock);
		stop_at = k->stop_at_us;
		empty = !ring_records(k->ring);
		pthread_mutex_unlock(&k->lock);
		if (!stop_at)
			continue;
		if (!k->rk || (empty && !rd_kafka_outq_len(k->rk)) || clock_monotonic_us() >= stop_at)
			break;
		rd_kafka_flush(k->rk, 50); /* skips the linger */
		wake(k);
	}
	drop_producer(k);
	return NULL;
}

static int kafka_wanted(const struct config *c)
{
	return c->n_kafka > 0;
}

static int kafka_check(const struct config *c, char *err, size_t err_size)
{
	const char *files[] = { c->kafka.ca, c->kafka.certificate, c->kafka.key };

	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
		if (!files[i][0] || access(files[i], R_OK) == 0)
			continue;
		snprintf(err, err_size, "kafka: cannot read %s: %s", files[i], strerror(errno));
		return -errno;
	}
	return 0;
}

static int kafka_open(void **self, const struct config *c, char *err, size_t err_size)
{
	struct kafka *k = calloc(1, sizeof *k);
	pthread_attr_t attr;
	sigset_t all, before;
	int ret = kafka_check(c, err, err_size);

	if (ret || !k) {
		free(k);
		if (!ret)
			snprintf(err, err_size, "kafka: out of memory");
		return ret ? ret : -ENOMEM;
	}
	k->config = *c;
	pthread_mutex_init(&k->lock, NULL);
	k->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	k->ring = ring_new((size_t)c->kafka.buffer_kb * 1024);
	if (k->wake < 0 || !k->ring) {
		ret = k->wake < 0 ? -errno : -ENOMEM;
		snprintf(err, err_size, "kafka: cannot make a buffer of %u KiB: %s", c->kafka.buffer_kb, strerror(-ret));
		goto fail;
	}
	/* Signals belong to the main thread; glibc and musl both start threads, librdkafka's too, with this stack. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, SENDER_STACK);
	pthread_setattr_default_np(&attr);
	ret = produce_to(k, err, err_size);
	if (!ret) {
		ret = -pthread_create(&k->sender, &attr, sender, k);
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
	drop_producer(k);
	if (k->wake >= 0)
		close(k->wake);
	ring_free(k->ring);
	free(k);
	return ret;
}

static void kafka_put(void *self, const struct sink_batch *b)
{
	struct kafka *k = self;
	struct head head = { .topic = (uint8_t)b->topic };
	size_t key_len = strnlen(b->ap_id, sizeof head.key);
	int pushed_out;

	head.key_len = (uint8_t)key_len;
	memcpy(head.key, b->ap_id, key_len);
	pthread_mutex_lock(&k->lock);
	pushed_out = ring_put(k->ring, &head, sizeof head, b->bytes, b->len);
	k->stats.let_go += pushed_out < 0 ? 1 : (uint64_t)pushed_out;
	pthread_mutex_unlock(&k->lock);
	wake(k);
}

static void kafka_stats(void *self, struct sink_stats *s)
{
	struct kafka *k = self;

	pthread_mutex_lock(&k->lock);
	*s = k->stats;
	s->queued_bytes = ring_bytes(k->ring);
	pthread_mutex_unlock(&k->lock);
	s->queued_bytes += k->inflight;
}

static void kafka_second(void *self)
{
	struct kafka *k = self;
	struct sink_stats s;

	kafka_stats(k, &s);
	if (s.errors != k->errors_told || s.let_go != k->let_go_told)
		log_warn("kafka %s: %llu errors and %llu batches let go in the last second, %llu KiB waiting; latest: %s",
			 k->config.kafka.brokers, (unsigned long long)(s.errors - k->errors_told),
			 (unsigned long long)(s.let_go - k->let_go_told), (unsigned long long)s.queued_bytes / 1024,
			 s.last_error[0] ? s.last_error : "buffer full");
	k->errors_told = s.errors;
	k->let_go_told = s.let_go;
}

static void kafka_close(void *self, struct sink_stats *last)
{
	struct kafka *k = self;

	pthread_mutex_lock(&k->lock);
	k->stop_at_us = clock_monotonic_us() + (uint64_t)k->config.kafka.flush_ms * 1000 + 1;
	pthread_mutex_unlock(&k->lock);
	wake(k);
	pthread_join(k->sender, NULL);
	k->stats.let_go += ring_records(k->ring);
	if (last)
		*last = k->stats;
	close(k->wake);
	ring_free(k->ring);
	pthread_mutex_destroy(&k->lock);
	free(k);
}

static int kafka_same(const struct config *a, const struct config *b)
{
	return !memcmp(&a->kafka, &b->kafka, sizeof a->kafka) && !strcmp(a->exporter.ap_id, b->exporter.ap_id);
}

const struct sink_ops sink_kafka = {
	.name = "kafka",
	.wanted = kafka_wanted,
	.check = kafka_check,
	.open = kafka_open,
	.put = kafka_put,
	.second = kafka_second,
	.stats = kafka_stats,
	.close = kafka_close,
	.same = kafka_same,
};

#else
typedef int sink_kafka_is_not_in_this_build;
#endif
