#ifdef HAVE_KAFKA
#include "ship/kafka_sender.h"

#include "base/clock.h"
#include "oal_schema.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void kafka_sender_wake(struct kafka_sender *k)
{
	const uint64_t one = 1;

	if (write(k->wake, &one, sizeof one) < 0)
		return; /* counter at its limit: the sender is awake anyway */
}

static void error_text(struct kafka_sender *k, const char *text)
{
	pthread_mutex_lock(&k->lock);
	k->stats.errors++;
	snprintf(k->stats.last_error, sizeof k->stats.last_error, "%.190s", text);
	pthread_mutex_unlock(&k->lock);
}

static void count_let_go(struct kafka_sender *k, int topic, const char *why)
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

static void append_waiting(struct kafka_sender *k, struct kafka_waiting *w)
{
	w->next = NULL;
	*k->last = w;
	k->last = &w->next;
	k->inflight += w->len;
}

/* A batch that the old producer never sent: librdkafka frees its bytes after this. */
static bool requeue(struct kafka_sender *k, const rd_kafka_message_t *m)
{
	struct kafka_waiting *w;

	if (!k->requeue_purged || rd_kafka_message_status(m) != RD_KAFKA_MSG_STATUS_NOT_PERSISTED)
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
	append_waiting(k, w);
	return true;
}

void kafka_sender_delivered(rd_kafka_t *rk, const rd_kafka_message_t *m, void *ctx)
{
	const bool purged = m->err == RD_KAFKA_RESP_ERR__PURGE_QUEUE || m->err == RD_KAFKA_RESP_ERR__PURGE_INFLIGHT;
	struct kafka_sender *k = ctx;

	(void)rk;
	k->inflight -= m->len;
	if (m->err) {
		if (!purged || !requeue(k, m))
			count_let_go(k, (int)(uintptr_t)m->_private, purged ? NULL : rd_kafka_err2str(m->err));
		return;
	}
	pthread_mutex_lock(&k->lock);
	k->stats.delivered++;
	pthread_mutex_unlock(&k->lock);
}

void kafka_sender_error(rd_kafka_t *rk, int err, const char *reason, void *ctx)
{
	(void)rk;
	if (err != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) /* follows the errors that say why */
		error_text(ctx, reason);
}

/* The broker's quota: nothing is lost by it while the queue has room. */
void kafka_sender_throttled(rd_kafka_t *rk, const char *broker, int32_t id, int ms, void *ctx)
{
	struct kafka_sender *k = ctx;

	(void)rk;
	(void)broker;
	(void)id;
	if (ms <= 0)
		return; /* it is let go on */
	pthread_mutex_lock(&k->lock);
	k->stats.throttled_ms += (uint64_t)ms;
	pthread_mutex_unlock(&k->lock);
}

/* The oldest batch that librdkafka does not have, off the queue: the tick thread may push it out of there at any
 * time. */
static struct kafka_waiting *oldest(struct kafka_sender *k)
{
	const uint8_t *record;
	struct kafka_waiting *w;
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
	append_waiting(k, w);
	return w;
}

void kafka_sender_drop_first(struct kafka_sender *k)
{
	struct kafka_waiting *w = k->first;

	k->first = w->next;
	if (!k->first)
		k->last = &k->first;
	free(w);
}

/* Signs the oldest batches and hands them to librdkafka, up to inflight_kb. */
static void hand_over(struct kafka_sender *k)
{
	const size_t most = (size_t)k->config.kafka.inflight_kb * 1024;
	struct kafka_waiting *w;

	while ((k->first || k->inflight < most) && (w = oldest(k))) {
		const struct mac_key *key = k->keys ? mac_keys_find(k->keys, w->head.key, w->head.key_len) : NULL;
		rd_kafka_resp_err_t err;

		if (k->keys && !key) {
			count_let_go(k, w->head.topic, "no MAC key for its AP");
			k->inflight -= w->len;
			free(w->bytes);
			kafka_sender_drop_first(k);
			continue;
		}
		err = kafka_producer_send(&k->producer, w->head.topic, w->head.key, w->head.key_len, w->bytes, w->len,
		                          key, (void *)(uintptr_t)w->head.topic);
		if (err == RD_KAFKA_RESP_ERR__QUEUE_FULL)
			break; /* reports that are still to be read will make room */
		if (err) {
			count_let_go(k, w->head.topic, rd_kafka_err2str(err));
			k->inflight -= w->len;
			free(w->bytes);
		}
		kafka_sender_drop_first(k); /* its bytes are librdkafka's now, and still count in `inflight` */
	}
}

/* After a fatal error of the idempotent producer only a new one goes on; what the old one held is counted as let go. */
static void restart_if_fatal(struct kafka_sender *k)
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

/* Takes over new keys at once, and a new producer when the old one has delivered what it had. True: hand nothing over
 * meanwhile. */
static bool renew_producer(struct kafka_sender *k)
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
	if (!k->renew_until_us) /* after that, what was never sent goes to the new one */
		k->renew_until_us = now_us + (uint64_t)k->config.kafka.flush_ms * 1000 + 1;
	if (k->producer.rk && rd_kafka_outq_len(k->producer.rk) && now_us < k->renew_until_us)
		return true;
	k->requeue_purged = true;
	kafka_producer_free(&k->producer);
	k->requeue_purged = false;
	k->renew_until_us = 0;
	pthread_mutex_lock(&k->lock);
	k->producer = k->next;
	memset(&k->next, 0, sizeof k->next);
	pthread_mutex_unlock(&k->lock);
	return false;
}

void *kafka_sender_run(void *arg)
{
	struct kafka_sender *k = arg;

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
			if (!renew_producer(k))
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
		kafka_sender_wake(k);
	}
	kafka_producer_free(&k->producer);
	return NULL;
}

#else
typedef int kafka_sender_is_not_in_this_build;
#endif
