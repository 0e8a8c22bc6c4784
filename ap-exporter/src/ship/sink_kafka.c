/*
 * Sink: Kafka. The tick path only copies a batch into a queue; a thread signs them and hands them to librdkafka, oldest first, and never
 * more than inflight_kb at once. So while Kafka is away the queue fills and keeps the newest, and librdkafka holds a little
 * of the oldest, which it sends first when Kafka is back: nothing is reordered and nothing is sent twice.
 *
 * Certificates and MAC keys may be renewed: the thread lets the old producer finish, then goes on with a new one and the same queue.
 */
#ifdef HAVE_KAFKA

#include "ship/sink.h"

#include "base/clock.h"
#include "ship/kafka_producer.h"
#include "base/log.h"
#include "enrol/mac_keys.h"
#include "oal_schema.h"
#include "ship/send_queue.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define SENDER_STACK (128 * 1024)

/* Precedes each batch in the queue. */
struct head {
	uint8_t topic, key_len;
	char key[CONFIG_NAME + 8];
};

/* A batch out of the queue that librdkafka does not have yet, or has given back. */
struct waiting {
	struct waiting *next;
	struct head head;
	size_t len;
	uint8_t *bytes;
};

struct kafka {
	struct config config;
	struct kafka_events events;
	/* Of the sender thread, once it runs. */
	struct kafka_producer producer;
	struct mac_keys *keys;              /* NULL: batches are not signed */
	struct waiting *first, **last;      /* go before those in the queue */
	bool give_back;                     /* what is purged unsent is taken back */
	uint64_t renew_until_us;            /* 0: nothing is being renewed */
	/* Of the main thread. */
	pthread_t sender;
	uint8_t tls[SHA256_BYTES];          /* hash of the TLS files that the newest producer was made with */
	uint64_t let_go_told, errors_told;  /* what was last logged */

	int wake;                           /* eventfd: a batch, a delivery report, news, or the end */
	_Atomic size_t inflight;            /* bytes at librdkafka and in `first`; written by the sender thread only */
	pthread_mutex_t lock;               /* guards what follows */
	struct kafka_producer next;         /* to go on with; rk NULL: none */
	struct mac_keys *next_keys;         /* likewise */
	uint64_t stop_at_us;                /* 0: run; else flush until then */
	struct send_queue *queue;
	struct sink_stats stats;
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

static void let_go(struct kafka *k, int topic, const char *why)
{
	static const char *const names[OAL_N_TOPICS] = { "samples", "packets", "events" };
	char text[160];

	if (why) {
		snprintf(text, sizeof text, "batch of %s: %.120s", names[topic], why);
		error_text(k, text);
	}
	pthread_mutex_lock(&k->lock);
	k->stats.let_go++;
	pthread_mutex_unlock(&k->lock);
}

static void wait_again(struct kafka *k, struct waiting *w)
{
	w->next = NULL;
	*k->last = w;
	k->last = &w->next;
	k->inflight += w->len;
}

/* A batch that the old producer never sent: librdkafka frees its bytes after this. */
static bool take_back(struct kafka *k, const rd_kafka_message_t *m)
{
	struct waiting *w;

	if (!k->give_back || rd_kafka_message_status(m) != RD_KAFKA_MSG_STATUS_NOT_PERSISTED)
		return false;
	w = calloc(1, sizeof *w);
	if (w)
		w->bytes = malloc(m->len);
	if (!w || !w->bytes) {
		free(w);
		return false;
	}
	w->head.topic = (uint8_t)(uintptr_t)m->_private;
	w->head.key_len = (uint8_t)m->key_len;
	memcpy(w->head.key, m->key, m->key_len);
	w->len = m->len;
	memcpy(w->bytes, m->payload, m->len);
	wait_again(k, w);
	return true;
}

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *m, void *ctx)
{
	const bool purged = m->err == RD_KAFKA_RESP_ERR__PURGE_QUEUE || m->err == RD_KAFKA_RESP_ERR__PURGE_INFLIGHT;
	struct kafka *k = ctx;

	(void)rk;
	k->inflight -= m->len;
	if (m->err) {
		if (!purged || !take_back(k, m))
			let_go(k, (int)(uintptr_t)m->_private, purged ? NULL : rd_kafka_err2str(m->err));
		return;
	}
	pthread_mutex_lock(&k->lock);
	k->stats.delivered++;
	pthread_mutex_unlock(&k->lock);
}

static void on_error(rd_kafka_t *rk, int err, const char *reason, void *ctx)
{
	(void)rk;
	if (err != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) /* follows the errors that say why */
		error_text(ctx, reason);
}

/* --- the sender thread */

/* The oldest batch that librdkafka does not have, off the queue: the tick thread may push it out of there at any time. */
static struct waiting *oldest(struct kafka *k)
{
	const uint8_t *record;
	struct waiting *w;
	size_t len;

	if (k->first)
		return k->first;
	w = malloc(sizeof *w);
	if (!w)
		return NULL;
	w->bytes = NULL;
	pthread_mutex_lock(&k->lock);
	record = send_queue_peek(k->queue, &len);
	if (record) {
		w->len = len - sizeof w->head;
		w->bytes = malloc(w->len ? w->len : 1);
	}
	if (w->bytes) {
		memcpy(&w->head, record, sizeof w->head);
		memcpy(w->bytes, record + sizeof w->head, w->len);
		send_queue_pop(k->queue);
	}
	pthread_mutex_unlock(&k->lock);
	if (!w->bytes) { /* none, or no memory now */
		free(w);
		return NULL;
	}
	wait_again(k, w);
	return w;
}

static void forget_first(struct kafka *k)
{
	struct waiting *w = k->first;

	k->first = w->next;
	if (!k->first)
		k->last = &k->first;
	free(w);
}

/* Signs the oldest batches and hands them to librdkafka, as many as the window takes. */
static void hand_over(struct kafka *k)
{
	const size_t window = (size_t)k->config.kafka.inflight_kb * 1024;
	struct waiting *w;

	while ((k->first || k->inflight < window) && (w = oldest(k))) {
		const struct mac_key *key = k->keys ? mac_keys_find(k->keys, w->head.key, w->head.key_len) : NULL;
		rd_kafka_resp_err_t err;

		if (k->keys && !key) {
			let_go(k, w->head.topic, "no MAC key for its AP");
			k->inflight -= w->len;
			free(w->bytes);
			forget_first(k);
			continue;
		}
		err = kafka_producer_put(&k->producer, w->head.topic, w->head.key, w->head.key_len, w->bytes, w->len, key, (void *)(uintptr_t)w->head.topic);
		if (err == RD_KAFKA_RESP_ERR__QUEUE_FULL)
			break; /* reports that are still to be read will make room */
		if (err) {
			let_go(k, w->head.topic, rd_kafka_err2str(err));
			k->inflight -= w->len;
			free(w->bytes);
		}
		forget_first(k); /* its bytes are librdkafka's now, and still count in `inflight` */
	}
}

/* After a fatal error of the idempotent producer only a new one goes on; what the old one held is counted as let go. */
static void restart_if_fatal(struct kafka *k)
{
	char why[256];

	if (k->producer.rk && !rd_kafka_fatal_error(k->producer.rk, why, sizeof why))
		return;
	kafka_producer_free(&k->producer);
	if (kafka_producer_new(&k->producer, &k->config, &k->events, why, sizeof why) < 0) {
		error_text(k, why);
		poll(NULL, 0, 1000);
	}
}

/* Takes over new keys at once, and a new producer when the old one has delivered what it had. True: hand nothing over meanwhile. */
static bool renew(struct kafka *k)
{
	struct mac_keys *old = NULL;
	const uint64_t now_us = clock_monotonic_us();
	bool wanted;

	pthread_mutex_lock(&k->lock);
	wanted = k->next.rk;
	if (k->next_keys) {
		old = k->keys;
		k->keys = k->next_keys;
		k->next_keys = NULL;
	}
	pthread_mutex_unlock(&k->lock);
	mac_keys_free(old);
	if (!wanted)
		return false;
	if (!k->renew_until_us)
		k->renew_until_us = now_us + (uint64_t)k->config.kafka.flush_ms * 1000 + 1; /* then what was never sent goes to the new one */
	if (k->producer.rk && rd_kafka_outq_len(k->producer.rk) && now_us < k->renew_until_us)
		return true;
	k->give_back = true;
	kafka_producer_free(&k->producer);
	k->give_back = false;
	k->renew_until_us = 0;
	pthread_mutex_lock(&k->lock);
	k->producer = k->next;
	memset(&k->next, 0, sizeof k->next);
	pthread_mutex_unlock(&k->lock);
	return false;
}

static void *sender(void *arg)
{
	struct kafka *k = arg;

	for (;;) {
		struct pollfd p = { .fd = k->wake, .events = POLLIN };
		uint64_t news, stop_at;
		bool empty;

		poll(&p, 1, k->renew_until_us ? 50 : 500);
		if (read(k->wake, &news, sizeof news) < 0)
			news = 0; /* woken by the timeout */
		restart_if_fatal(k);
		if (k->producer.rk) {
			rd_kafka_poll(k->producer.rk, 0);
			if (!renew(k))
				hand_over(k);
		}
		pthread_mutex_lock(&k->lock);
		stop_at = k->stop_at_us;
		empty = !send_queue_records(k->queue) && !k->first;
		pthread_mutex_unlock(&k->lock);
		if (!stop_at)
			continue;
		if (!k->producer.rk || (empty && !rd_kafka_outq_len(k->producer.rk)) || clock_monotonic_us() >= stop_at)
			break;
		rd_kafka_flush(k->producer.rk, 50); /* skips the linger */
		wake(k);
	}
	kafka_producer_free(&k->producer);
	return NULL;
}

/* --- what a configuration names */

static int kafka_wanted(const struct config *c)
{
	return c->n_kafka > 0;
}

/* Every AP whose batches this process makes must have a key, for its site. */
static int check_keys(const struct config *c, const struct mac_keys *keys, char *err, size_t err_size)
{
	const bool live = c->n_nl80211 || c->n_qdisc || c->n_packet || c->n_beacon;
	const char *path = c->kafka.mac_keys, *site = c->exporter.site;
	int ret = live ? mac_keys_check(keys, path, c->exporter.ap_id, site, err, err_size) : 0;

	for (uint32_t i = 0; i < c->n_replay; i++) {
		const struct config_replay *r = &c->replay[i];

		for (unsigned ap = 0; !ret && ap < r->aps; ap++) {
			char name[CONFIG_NAME + 16];

			config_virtual_ap(name, sizeof name, r->ap_prefix[0] ? r->ap_prefix : c->exporter.ap_id, r->aps, ap);
			ret = mac_keys_check(keys, path, name, site, err, err_size);
		}
	}
	return ret;
}

/* Without `mac_keys` 0 and NULL. */
static int read_keys(struct mac_keys **keys, const struct config *c, char *err, size_t err_size)
{
	char why[512];
	int ret;

	*keys = NULL;
	if (!c->kafka.mac_keys[0])
		return 0;
	ret = mac_keys_read(keys, c->kafka.mac_keys, why, sizeof why);
	if (!ret)
		ret = check_keys(c, *keys, why, sizeof why);
	if (ret) {
		snprintf(err, err_size, "kafka: %s", why);
		mac_keys_free(*keys);
		*keys = NULL;
	}
	return ret;
}

/* Hash of what the TLS files hold; negative errno with the file in `err`. */
static int hash_files(uint8_t hash[SHA256_BYTES], const struct config *c, char *err, size_t err_size)
{
	const char *files[] = { c->kafka.ca, c->kafka.certificate, c->kafka.key };
	struct sha256 s;

	sha256_begin(&s);
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
		char bytes[2048];
		size_t n;
		FILE *f;

		if (!files[i][0])
			continue;
		f = fopen(files[i], "re");
		if (!f) {
			const int ret = -errno;

			snprintf(err, err_size, "kafka: cannot read %s: %s", files[i], strerror(-ret));
			return ret;
		}
		while ((n = fread(bytes, 1, sizeof bytes, f)))
			sha256_add(&s, bytes, n);
		fclose(f);
		explicit_bzero(bytes, sizeof bytes);
		sha256_add(&s, "", 1);
	}
	sha256_end(&s, hash);
	return 0;
}

static int kafka_check(const struct config *c, char *err, size_t err_size)
{
	uint8_t hash[SHA256_BYTES];
	struct mac_keys *keys;
	int ret = hash_files(hash, c, err, err_size);

	if (ret)
		return ret;
	ret = read_keys(&keys, c, err, err_size);
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
	struct kafka *k = calloc(1, sizeof *k);
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
	k->events = (struct kafka_events){ on_delivery, on_error, k, k->wake, 0 };
	k->queue = send_queue_new((size_t)c->kafka.buffer_kb * 1024);
	ret = hash_files(k->tls, c, err, err_size);
	ret = ret ? ret : read_keys(&k->keys, c, err, err_size);
	if (!ret && (k->wake < 0 || !k->queue)) {
		ret = k->wake < 0 ? -errno : -ENOMEM;
		snprintf(err, err_size, "kafka: cannot make a buffer of %u KiB: %s", c->kafka.buffer_kb, strerror(-ret));
	}
	if (ret)
		goto fail;
	quiet_threads(&attr, &before);
	ret = kafka_producer_new(&k->producer, c, &k->events, err, err_size);
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
	kafka_producer_free(&k->producer);
	mac_keys_free(k->keys);
	if (k->wake >= 0)
		close(k->wake);
	send_queue_free(k->queue);
	pthread_mutex_destroy(&k->lock);
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
	pushed_out = send_queue_push(k->queue, &head, sizeof head, b->bytes, b->len);
	k->stats.let_go += pushed_out < 0 ? 1 : (uint64_t)pushed_out;
	pthread_mutex_unlock(&k->lock);
	wake(k);
}

static void kafka_stats(void *self, struct sink_stats *s)
{
	struct kafka *k = self;

	pthread_mutex_lock(&k->lock);
	*s = k->stats;
	s->queued_bytes = send_queue_bytes(k->queue);
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
	k->stats.let_go += send_queue_records(k->queue);
	for (; k->first; k->stats.let_go++) {
		free(k->first->bytes);
		forget_first(k);
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
	struct kafka *k = self;
	uint8_t hash[SHA256_BYTES];
	pthread_attr_t attr;
	sigset_t before;
	int ret = hash_files(hash, c, err, err_size);

	ret = ret ? ret : read_keys(&keys, c, err, err_size);
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
	wake(k);
	return 0;
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
	.reread = kafka_reread,
};

#else
typedef int sink_kafka_is_not_in_this_build;
#endif
