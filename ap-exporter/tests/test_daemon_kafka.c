/*
 * The Kafka sink against librdkafka's own broker, which speaks the protocol over loopback: delivery, an absence, and
 * what is kept meanwhile. (The real Kafka, with TLS, is in the platform's tests.)
 */
#include "check.h"
#include "base/clock.h"
#include "enrol/mac_keys.h"
#include "oal_schema.h"
#include "ship/kafka_sender.h"
#include "ship/sink.h"

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <poll.h>
#include <unistd.h>

#define PATIENCE_US 30000000

static uint8_t batch[20000];

static void put(void *sink, uint32_t number, size_t len)
{
	struct sink_batch b = { "ap-1", OAL_TOPIC_PACKETS, batch, len, 0 };

	memcpy(batch, &number, sizeof number);
	sink_kafka.send(sink, &b);
}

/* Polls until `delivered + let_go` batches are accounted for. */
static struct sink_stats wait_for(void *sink, uint64_t delivered, uint64_t let_go)
{
	uint64_t give_up = clock_monotonic_us() + PATIENCE_US;
	struct sink_stats s;

	do {
		poll(NULL, 0, 10);
		sink_kafka.stats(sink, &s);
	} while ((s.delivered < delivered || s.let_go < let_go) && clock_monotonic_us() < give_up);
	return s;
}

/* MAC keys that a record of this topic may be signed with; what it was signed with is counted by key id. */
static struct mac_key macs[3];
static unsigned signed_by[3], unsigned_records, forged;

static void look_at_mac(const rd_kafka_message_t *m)
{
	uint8_t want[MAC_HEADER_BYTES];
	rd_kafka_headers_t *headers;
	const void *value;
	size_t len;

	if (rd_kafka_message_headers(m, &headers) || rd_kafka_header_get_last(headers, MAC_HEADER, &value, &len)) {
		unsigned_records++;
		return;
	}
	CHECK_EQ(len, MAC_HEADER_BYTES);
	for (unsigned i = 1; i < 3; i++) {
		mac_header(want, &macs[i], OAL_TOPIC_PACKETS, m->payload, m->len);
		if (!memcmp(want, value, sizeof want)) {
			signed_by[i]++;
			return;
		}
	}
	forged++;
}

/* Reads the topic from its start; the numbers of the batches in order. */
static unsigned consume(const char *brokers, const char *topic, uint32_t *numbers, unsigned most)
{
	rd_kafka_topic_partition_list_t *parts = rd_kafka_topic_partition_list_new(1);
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	uint64_t give_up = clock_monotonic_us() + PATIENCE_US;
	unsigned n = 0, idle = 0;
	char why[256];
	rd_kafka_t *rk;

	rd_kafka_conf_set(conf, "bootstrap.servers", brokers, why, sizeof why);
	rd_kafka_conf_set(conf, "group.id", "test", why, sizeof why);
	rd_kafka_conf_set(conf, "auto.offset.reset", "earliest", why, sizeof why);
	rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why);
	rd_kafka_topic_partition_list_add(parts, topic, 0)->offset = RD_KAFKA_OFFSET_BEGINNING;
	rd_kafka_assign(rk, parts);
	while (n < most && idle < 10 && clock_monotonic_us() < give_up) {
		rd_kafka_message_t *m = rd_kafka_consumer_poll(rk, 500);

		if (!m) {
			idle += n > 0;
			continue;
		}
		if (!m->err) {
			CHECK(m->key_len == 4 && !memcmp(m->key, "ap-1", 4));
			memcpy(&numbers[n++], m->payload, 4);
			look_at_mac(m);
		}
		rd_kafka_message_destroy(m);
	}
	rd_kafka_topic_partition_list_destroy(parts);
	rd_kafka_consumer_close(rk);
	rd_kafka_destroy(rk);
	return n;
}

static void *open_sink(struct config *c, const char *brokers)
{
	char err[512] = "";
	void *sink = NULL;

	snprintf(c->exporter.ap_id, sizeof c->exporter.ap_id, "ap-1");
	snprintf(c->kafka.brokers, sizeof c->kafka.brokers, "%s", brokers);
	c->kafka.plaintext = true;
	c->n_kafka = 1;
	if (sink_kafka.open(&sink, c, err, sizeof err) < 0)
		printf("# %s\n", err);
	CHECK(sink != NULL);
	return sink;
}

/* Signed, renewed while batches come, on another topic than the rest. */
static void signing(struct config *c, const char *brokers)
{
	static const char lines[] = "ap-1 lab 1 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n";
	static const char more[] = "ap-1 lab 2 //////////////////////////////////////////8=\n";
	static uint32_t numbers[400];
	char path[] = "/tmp/oal-mac-keys.XXXXXX", err[512];
	const int fd = mkstemp(path);
	struct sink_stats s;
	uint8_t raw[32];
	unsigned n;
	void *sink;

	for (unsigned i = 0; i < sizeof raw; i++)
		raw[i] = (uint8_t)i;
	mac_key_begin(&macs[1], 1, raw);
	memset(raw, 0xff, sizeof raw);
	mac_key_begin(&macs[2], 2, raw);
	CHECK(fd >= 0 && write(fd, lines, sizeof lines - 1) == (ssize_t)sizeof lines - 1);
	snprintf(c->kafka.mac_keys, sizeof c->kafka.mac_keys, "%s", path);
	snprintf(c->kafka.topic_prefix, sizeof c->kafka.topic_prefix, "signed.");
	c->n_packet = 1;

	test("with mac_keys an AP without a key, or at another site, is refused at the start");
	CHECK(sink_kafka.check(c, err, sizeof err) < 0 && strstr(err, "site 'lab'"));
	snprintf(c->exporter.site, sizeof c->exporter.site, "lab");
	CHECK_EQ(sink_kafka.check(c, err, sizeof err), 0);
	snprintf(c->exporter.ap_id, sizeof c->exporter.ap_id, "ap-2");
	CHECK(sink_kafka.open(&sink, c, err, sizeof err) < 0 && strstr(err, "no MAC key for AP ap-2"));
	c->n_packet = 0;
	c->n_replay = 1;
	c->replay[0] = (struct config_replay){ .aps = 2, .ap_prefix = "ap" };
	CHECK(sink_kafka.check(c, err, sizeof err) < 0 && strstr(err, "no MAC key for AP ap-0001"));
	c->n_replay = 0;

	test("every batch is signed, by the new key from when it is read on, and none is lost by that");
	sink = open_sink(c, brokers);
	for (uint32_t i = 0; i < 100; i++)
		put(sink, i, 1000);
	wait_for(sink, 100, 0);
	CHECK(write(fd, more, sizeof more - 1) == (ssize_t)sizeof more - 1);
	CHECK_EQ(sink_kafka.reread(sink, c, err, sizeof err), 0);
	for (uint32_t i = 100; i < 200; i++)
		put(sink, i, 1000);
	wait_for(sink, 200, 0);
	CHECK(write(fd, "x", 1) == 1);
	CHECK(sink_kafka.reread(sink, c, err, sizeof err) < 0 && strstr(err, ":3: not a MAC key"));
	for (uint32_t i = 200; i < 250; i++)
		put(sink, i, 1000);
	s = wait_for(sink, 250, 0);
	CHECK_EQ(s.delivered, 250);
	CHECK_EQ(s.let_go, 0);
	unsigned_records = forged = 0;
	n = consume(brokers, "signed.ap.packets.v1", numbers, 250);
	CHECK_EQ(n, 250);
	for (unsigned i = 0; i < n; i++)
		CHECK_EQ(numbers[i], i);
	CHECK_EQ(signed_by[1], 100);
	CHECK_EQ(signed_by[2], 150);
	CHECK_EQ(unsigned_records + forged, 0);
	sink_kafka.close(sink, NULL);
	c->kafka.mac_keys[0] = c->kafka.topic_prefix[0] = '\0';
	close(fd);
	unlink(path);
}

/* New TLS files, here any file: a new producer goes on where the old one stopped, also with what that could not
 * deliver. */
static void renewing(struct config *c, rd_kafka_mock_cluster_t *broker)
{
	const char *brokers = rd_kafka_mock_cluster_bootstraps(broker);
	static uint32_t numbers[500];
	char path[] = "/tmp/oal-ca.XXXXXX", err[512];
	const int fd = mkstemp(path);
	struct sink_stats s;
	unsigned n;
	void *sink;

	snprintf(c->kafka.topic_prefix, sizeof c->kafka.topic_prefix, "renewed.");
	snprintf(c->kafka.ca, sizeof c->kafka.ca, "%s", path);
	CHECK(write(fd, "1", 1) == 1);
	c->kafka.flush_ms = 300;
	test("with a renewed certificate a new producer goes on, in order and without a loss");
	sink = open_sink(c, brokers);
	for (uint32_t i = 0; i < 300; i++) {
		put(sink, i, 1000);
		if (i % 100 == 50) {
			CHECK(write(fd, "2", 1) == 1);
			CHECK_EQ(sink_kafka.reread(sink, c, err, sizeof err), 0);
		}
	}
	s = wait_for(sink, 300, 0);
	CHECK_EQ(s.delivered, 300);
	test("so it does with what the old one could not deliver: nothing is lost with a certificate that no broker "
	     "took");
	rd_kafka_mock_broker_set_down(broker, 1);
	for (uint32_t i = 300; i < 330; i++)
		put(sink, i, 1000);
	/* Until the producer knows that it has no broker: then nothing of it is on its way. */
	for (int i = 0; i < 1000; i++) {
		sink_kafka.stats(sink, &s);
		if (s.errors)
			break;
		poll(NULL, 0, 10);
	}
	CHECK(s.errors > 0);
	CHECK(write(fd, "3", 1) == 1);
	CHECK_EQ(sink_kafka.reread(sink, c, err, sizeof err), 0);
	for (uint32_t i = 330; i < 400; i++)
		put(sink, i, 1000);
	for (uint64_t until = clock_monotonic_us() + 1000000; clock_monotonic_us() < until;)
		poll(NULL, 0, 100); /* past the old one's flush_ms */
	rd_kafka_mock_broker_set_up(broker, 1);
	s = wait_for(sink, 400, 0);
	CHECK_EQ(s.delivered + s.let_go, 400);
	CHECK_EQ(s.let_go, 0);
	n = consume(brokers, "renewed.ap.packets.v1", numbers, 400);
	CHECK_EQ(n, 400);
	for (unsigned i = 0; i < n; i++)
		CHECK_EQ(numbers[i], i);
	sink_kafka.close(sink, NULL);
	c->kafka.ca[0] = c->kafka.topic_prefix[0] = '\0';
	c->kafka.flush_ms = 5000;
	close(fd);
	unlink(path);
}

/* The broker of these tests knows no quotas; the real one's are in platform/local/tests/test_quotas.py. */
static void throttled(void)
{
	static struct kafka_sender k = { .lock = PTHREAD_MUTEX_INITIALIZER };

	test("what the broker makes it wait for its quota is counted");
	kafka_sender_throttled(NULL, "kafka", 1, 1500, &k);
	kafka_sender_throttled(NULL, "kafka", 1, 0, &k); /* that it is over */
	kafka_sender_throttled(NULL, "kafka", 1, 250, &k);
	CHECK_EQ(k.stats.throttled_ms, 1750);
}

int main(void)
{
	static struct config c;
	static uint32_t numbers[1000];
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	rd_kafka_mock_cluster_t *broker;
	char err[512], why[256];
	struct sink_stats s;
	rd_kafka_t *rk;
	unsigned n;
	void *sink;

	rd_kafka_conf_set(conf, "log_level", "0", why, sizeof why);
	rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
	broker = rd_kafka_mock_cluster_new(rk, 1);
	rd_kafka_mock_topic_create(broker, "ap.packets.v1", 1, 1);

	c.kafka = (struct config_kafka){
		.enabled = true, .buffer_kb = 512, .inflight_kb = 64, .linger_ms = 5, .flush_ms = 5000,
	};
	throttled();
	test("batches arrive, once each and in order, with the AP as key");
	sink = open_sink(&c, rd_kafka_mock_cluster_bootstraps(broker));
	for (uint32_t i = 0; i < 200; i++) {
		put(sink, i, 2000);
		wait_for(sink, i > 100 ? i - 100 : 0, 0); /* no more than the buffer holds */
	}
	s = wait_for(sink, 200, 0);
	CHECK_EQ(s.delivered, 200);
	CHECK_EQ(s.let_go, 0);
	CHECK_EQ(s.queued_bytes, 0);
	n = consume(rd_kafka_mock_cluster_bootstraps(broker), "ap.packets.v1", numbers, 200);
	CHECK_EQ(n, 200);
	for (unsigned i = 0; i < n; i++)
		CHECK_EQ(numbers[i], i);

	test("while the broker is away the newest are kept, the rest is counted, and nothing is reordered when it is "
	     "back");
	rd_kafka_mock_broker_set_down(broker, 1);
	for (uint32_t i = 200; i < 500; i++) {
		put(sink, i, 20000);
		if (i == 201)
			poll(NULL, 0, 600); /* the sender has handed some of the oldest over by now */
	}
	s = wait_for(sink, 200, 200);
	CHECK(s.let_go >= 200);
	CHECK(s.queued_bytes > 400000 && s.queued_bytes < 650000); /* never more than buffer and window */
	rd_kafka_mock_broker_set_up(broker, 1);
	s = wait_for(sink, 500 - s.let_go, s.let_go);
	CHECK_EQ(s.delivered + s.let_go, 500);
	n = consume(rd_kafka_mock_cluster_bootstraps(broker), "ap.packets.v1", numbers, (unsigned)s.delivered);
	CHECK_EQ(n, s.delivered);
	for (unsigned i = 1; i < n; i++)
		CHECK(numbers[i] > numbers[i - 1]);
	CHECK_EQ(numbers[n - 1], 499);
	for (unsigned i = 0; i < 20; i++) /* the newest stretch has no hole */
		CHECK_EQ(numbers[n - 1 - i], 499 - i);
	sink_kafka.close(sink, &s);
	CHECK_EQ(s.delivered + s.let_go, 500);

	CHECK(unsigned_records > 0 && !forged && !signed_by[1]); /* without mac_keys there is no header */

	rd_kafka_mock_topic_create(broker, "signed.ap.packets.v1", 1, 1);
	rd_kafka_mock_topic_create(broker, "renewed.ap.packets.v1", 1, 1);
	signing(&c, rd_kafka_mock_cluster_bootstraps(broker));
	snprintf(c.exporter.ap_id, sizeof c.exporter.ap_id, "ap-1");
	renewing(&c, broker);

	test("closing without a broker takes bounded time and counts what was left");
	c.kafka.flush_ms = 300;
	sink = open_sink(&c, "127.0.0.1:1");
	for (uint32_t i = 0; i < 50; i++)
		put(sink, i, 2000);
	sink_kafka.close(sink, &s);
	CHECK_EQ(s.delivered, 0);
	CHECK_EQ(s.let_go, 50);

	test("a broker that cannot be reached is an error that names it");
	sink = open_sink(&c, "127.0.0.1:1");
	put(sink, 0, 100);
	for (int i = 0; i < 500; i++) {
		sink_kafka.stats(sink, &s);
		if (s.errors)
			break;
		poll(NULL, 0, 10);
	}
	CHECK(s.errors > 0 && strstr(s.last_error, "127.0.0.1") != NULL);
	sink_kafka.close(sink, NULL);

	test("missing TLS files are named before anything starts");
	c.kafka.plaintext = false;
	snprintf(c.kafka.ca, sizeof c.kafka.ca, "/nonexistent/ca.pem");
	CHECK(sink_kafka.check(&c, err, sizeof err) < 0);
	CHECK(strstr(err, "/nonexistent/ca.pem") != NULL);

	rd_kafka_mock_cluster_destroy(broker);
	rd_kafka_destroy(rk);
	return done();
}
