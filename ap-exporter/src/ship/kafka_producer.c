#ifdef HAVE_KAFKA
#include "ship/kafka_producer.h"

#include <errno.h>
#include <string.h>

static const char *const topic_names[OAL_N_TOPICS] = {
	[OAL_TOPIC_SAMPLES] = "ap.samples.v1",
	[OAL_TOPIC_PACKETS] = "ap.packets.v1",
	[OAL_TOPIC_EVENTS] = "ap.events.v1",
};

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

int kafka_producer_new(struct kafka_producer *p, const struct config *config, const struct kafka_events *events,
                       char *err, size_t err_size)
{
	static const char *const fixed[][2] = {
		{ "enable.idempotence", "true" },
		{ "acks", "all" },
		{ "compression.codec", "lz4" },
		{ "message.timeout.ms", "0" },          /* only our send queue lets data go */
		{ "partitioner", "murmur2_random" },    /* the Java clients' rule for keys */
		{ "reconnect.backoff.ms", "100" },
		{ "reconnect.backoff.max.ms", "2000" }, /* back soon after Kafka is */
		{ "retry.backoff.ms", "100" },
		{ "log.connection.close", "false" },
		{ "topic.metadata.refresh.interval.ms", "60000" },
		{ "socket.keepalive.enable", "true" },
		{ "socket.send.buffer.bytes", "131072" },
		{ "socket.receive.buffer.bytes", "16384" },
	};
	const struct config_kafka *c = &config->kafka;
	const unsigned max_messages = events->max_messages ? events->max_messages : 10000;
	/* Twice what may be in flight, and one batch of any size: producing cannot fail for want of room. */
	const uint64_t max_kbytes = 2 * (uint64_t)c->inflight_kb + 2048;
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	rd_kafka_t *rk = NULL;
	char why[256];
	int ret = 0;

	memset(p, 0, sizeof *p);
	for (size_t i = 0; i < sizeof fixed / sizeof fixed[0] && !ret; i++)
		ret = set(conf, fixed[i][0], fixed[i][1], err, err_size);
	ret = ret ? ret : set(conf, "bootstrap.servers", c->brokers, err, err_size);
	ret = ret ? ret : set(conf, "client.id", config->exporter.ap_id, err, err_size);
	ret = ret ? ret : set_number(conf, "queue.buffering.max.messages", max_messages, err, err_size);
	ret = ret ? ret : set_number(conf, "linger.ms", c->linger_ms, err, err_size);
	ret = ret ? ret : set_number(conf, "message.max.bytes", OAL_SETTING_MAX_BATCH_BYTES + 4096, err, err_size);
	ret = ret ? ret : set_number(conf, "queue.buffering.max.kbytes", max_kbytes, err, err_size);
	if (!c->plaintext) {
		ret = ret ? ret : set(conf, "security.protocol", "ssl", err, err_size);
		ret = ret ? ret : set(conf, "ssl.ca.location", c->ca, err, err_size);
		ret = ret ? ret : set(conf, "ssl.certificate.location", c->certificate, err, err_size);
		ret = ret ? ret : set(conf, "ssl.key.location", c->key, err, err_size);
	}
	if (ret)
		goto out;
	rd_kafka_conf_set_opaque(conf, events->ctx);
	rd_kafka_conf_set_dr_msg_cb(conf, events->delivered);
	rd_kafka_conf_set_error_cb(conf, events->error);
	rd_kafka_conf_set_throttle_cb(conf, events->throttled);
	rd_kafka_conf_set_log_cb(conf, on_log);
	rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
	if (!rk) {
		snprintf(err, err_size, "kafka: cannot make a producer for %s: %s", c->brokers, why);
		ret = -EINVAL;
		goto out;
	}
	conf = NULL; /* the producer owns it */
	for (int i = 0; i < OAL_N_TOPICS; i++) {
		char name[CONFIG_NAME + 32];

		snprintf(name, sizeof name, "%s%s", c->topic_prefix, topic_names[i]);
		p->topics[i] = rd_kafka_topic_new(rk, name, NULL);
		if (!p->topics[i]) {
			snprintf(err, err_size, "kafka: topic name %s: %s", name,
			         rd_kafka_err2str(rd_kafka_last_error()));
			ret = -EINVAL;
			goto out;
		}
	}
	if (events->wake >= 0) {
		const uint64_t one = 1;
		rd_kafka_queue_t *reports = rd_kafka_queue_get_main(rk);

		rd_kafka_queue_io_event_enable(reports, events->wake, &one, sizeof one);
		rd_kafka_queue_destroy(reports);
	}
	p->rk = rk;
	return 0;
out:
	if (conf)
		rd_kafka_conf_destroy(conf);
	if (rk) {
		for (int i = 0; i < OAL_N_TOPICS; i++)
			if (p->topics[i])
				rd_kafka_topic_destroy(p->topics[i]);
		rd_kafka_destroy(rk);
	}
	memset(p->topics, 0, sizeof p->topics);
	return ret;
}

rd_kafka_resp_err_t kafka_producer_send(struct kafka_producer *p, int topic, const char *ap_id, size_t ap_id_len,
                                        void *bytes, size_t len, const struct mac_key *key, void *opaque)
{
	uint8_t mac[MAC_HEADER_BYTES];

	if (!key)
		return rd_kafka_producev(p->rk, RD_KAFKA_V_RKT(p->topics[topic]),
		                         RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_FREE), RD_KAFKA_V_VALUE(bytes, len),
		                         RD_KAFKA_V_KEY(ap_id, ap_id_len), RD_KAFKA_V_OPAQUE(opaque), RD_KAFKA_V_END);
	mac_header(mac, key, topic, bytes, len);
	return rd_kafka_producev(p->rk, RD_KAFKA_V_RKT(p->topics[topic]), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_FREE),
	                         RD_KAFKA_V_VALUE(bytes, len), RD_KAFKA_V_KEY(ap_id, ap_id_len),
	                         RD_KAFKA_V_HEADER(MAC_HEADER, mac, sizeof mac), RD_KAFKA_V_OPAQUE(opaque),
	                         RD_KAFKA_V_END);
}

void kafka_producer_free(struct kafka_producer *p)
{
	if (!p->rk)
		return;
	rd_kafka_purge(p->rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
	rd_kafka_flush(p->rk, 500); /* reads the reports of what was purged, so that all of it is counted */
	for (int i = 0; i < OAL_N_TOPICS; i++)
		rd_kafka_topic_destroy(p->topics[i]);
	rd_kafka_destroy(p->rk);
	memset(p, 0, sizeof *p);
}
#else
typedef int kafka_producer_is_not_in_this_build;
#endif
