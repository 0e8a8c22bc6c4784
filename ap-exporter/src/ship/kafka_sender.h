/* kafka_sender.h: the thread that signs batches and hands them to librdkafka, oldest first; sink_kafka.c starts it. */
#ifndef OAL_KAFKA_SENDER_H
#define OAL_KAFKA_SENDER_H
#ifdef HAVE_KAFKA

#include "base/config.h"
#include "base/sha256.h"
#include "enrol/mac_keys.h"
#include "ship/kafka_producer.h"
#include "ship/send_queue.h"
#include "ship/sink.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Precedes each batch in the queue. */
struct kafka_head {
	uint8_t topic, key_len;
	char key[CONFIG_NAME + 8];
};

/* A batch out of the queue that librdkafka does not have yet, or has given back. */
struct kafka_waiting {
	struct kafka_waiting *next;
	struct kafka_head head;
	size_t len;
	uint8_t *bytes;
};

struct kafka_sender {
	struct config config;
	struct kafka_events events;
	/* Of the thread, once it runs. */
	struct kafka_producer producer;
	struct mac_keys *keys;                /* NULL: batches are not signed */
	struct kafka_waiting *first, **last;  /* go before those in the queue */
	bool requeue_purged;                  /* what is purged unsent goes to the new producer */
	uint64_t renew_until_us;              /* 0: nothing is being renewed */
	/* Of the main thread. */
	pthread_t thread;
	uint8_t tls[SHA256_BYTES];            /* hash of the TLS files that the newest producer was made with */
	uint64_t let_go_reported, errors_reported, throttled_reported; /* what was last logged */

	int wake;                             /* eventfd: a batch, a delivery report, news, or the end */
	_Atomic size_t inflight;              /* bytes at librdkafka and in `first`; written by the thread only */
	pthread_mutex_t lock;                 /* guards what follows */
	struct kafka_producer next;           /* to go on with; rk NULL: none */
	struct mac_keys *next_keys;           /* likewise */
	uint64_t stop_at_us;                  /* 0: run; else flush until then */
	struct send_queue *queue;
	struct sink_stats stats;
};

/* Ends the thread's wait. Any thread. */
void kafka_sender_wake(struct kafka_sender *);
/* The thread: runs until stop_at_us, and flushes. */
void *kafka_sender_run(void *);
/* Forgets the first of those that wait; not its bytes. */
void kafka_sender_drop_first(struct kafka_sender *);
/* For struct kafka_events. */
void kafka_sender_delivered(rd_kafka_t *, const rd_kafka_message_t *, void *ctx);
void kafka_sender_error(rd_kafka_t *, int err, const char *reason, void *ctx);
void kafka_sender_throttled(rd_kafka_t *, const char *broker, int32_t id, int ms, void *ctx);

#endif
#endif
