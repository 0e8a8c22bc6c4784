/* kafka_producer.h: a librdkafka producer as `config kafka` describes it, with a topic each for samples, packets and
 * events. */
#ifndef OAL_KAFKA_PRODUCER_H
#define OAL_KAFKA_PRODUCER_H
#ifdef HAVE_KAFKA

#include "base/config.h"
#include "enrol/mac.h"
#include "oal_schema.h"

#include <librdkafka/rdkafka.h>
#include <stddef.h>
#include <stdint.h>

struct kafka_producer {
	rd_kafka_t *rk; /* NULL: there is none */
	rd_kafka_topic_t *topics[OAL_N_TOPICS];
};

struct kafka_events {
	/* Called by rd_kafka_poll(), rd_kafka_flush() and kafka_producer_free(). */
	void (*delivered)(rd_kafka_t *, const rd_kafka_message_t *, void *ctx);
	void (*error)(rd_kafka_t *, int err, const char *reason, void *ctx);
	void (*throttled)(rd_kafka_t *, const char *broker, int32_t id, int ms, void *ctx);
	void *ctx;
	int wake; /* eventfd that a delivery report is written to; negative: none */
	unsigned max_messages; /* that the producer may hold; 0: plenty for one AP */
};

/* Negative errno with the reason in `err`. Connects by itself, later. */
int kafka_producer_new(struct kafka_producer *, const struct config *, const struct kafka_events *, char *err,
                       size_t err_size);
/*
 * Hands a batch over; `bytes` come from malloc() and are librdkafka's from then on. `key` NULL: it is not signed.
 * `opaque` comes back as the message's `_private`. 0, or librdkafka's error: then the bytes are still the caller's.
 */
rd_kafka_resp_err_t kafka_producer_send(struct kafka_producer *, int topic, const char *ap_id, size_t ap_id_len,
                                        void *bytes, size_t len, const struct mac_key *key, void *opaque);
/* Gives up what is not delivered, and reports it. */
void kafka_producer_free(struct kafka_producer *);

#endif
#endif
