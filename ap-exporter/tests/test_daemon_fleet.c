/* test_daemon_fleet.c: the simulated fleet (fleet/): what it sends for each AP is what that AP would have sent, signed
 * with that AP's key. */
#include "check.h"

#include "../fleet/fleet.h"
#include "../fleet/restamp.h"
#include "wire/batch_decode.h"
#include "wire/capture_file.h"
#include "base/clock.h"
#include "enrol/mac.h"

#include <errno.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <unistd.h>

#define CAPTURE "../lab/captures/congested.oalcap"
enum { MOST_BATCHES = 60 };

/* Every row, name and flow of both is the same, at times that differ by `shift_us`. */
static void same_but_later(const struct batch_view *a, const struct batch_view *b, uint64_t shift_us)
{
	static uint8_t row_a[4096], row_b[4096];
	struct batch_cursor x, y;
	struct batch_flow_cursor f, g;
	struct batch_flow flow_a, flow_b;
	struct batch_missed_cursor m, n;
	uint64_t start_a, start_b, ticks_a, ticks_b;

	CHECK_EQ(b->t0_us, a->t0_us + shift_us);
	CHECK(a->tick_us == b->tick_us && a->ticks == b->ticks && a->schema_revision == b->schema_revision &&
	      a->feature_hash == b->feature_hash);
	CHECK(a->ring_drops == b->ring_drops && a->rows_dropped == b->rows_dropped &&
	      a->dumps_interrupted == b->dumps_interrupted);
	CHECK(a->tick_late_max_us == b->tick_late_max_us && a->clock_state == b->clock_state &&
	      a->clock_error_us == b->clock_error_us);
	CHECK(a->n_names == b->n_names && a->n_flows == b->n_flows && a->n_missed == b->n_missed);
	for (uint32_t i = 0; i < a->n_names && i < b->n_names; i++)
		CHECK(batch_name(a, i).len == batch_name(b, i).len &&
		      !memcmp(batch_name(a, i).at, batch_name(b, i).at, batch_name(a, i).len));
	batch_flows(&f, a);
	batch_flows(&g, b);
	while (batch_next_flow(&f, &flow_a))
		CHECK(batch_next_flow(&g, &flow_b) && flow_a.flow_id == flow_b.flow_id &&
		      flow_a.client_port == flow_b.client_port);
	batch_missed(&m, a);
	batch_missed(&n, b);
	while (batch_next_missed(&m, &start_a, &ticks_a))
		CHECK(batch_next_missed(&n, &start_b, &ticks_b) && start_a == start_b && ticks_a == ticks_b);
	for (int t = 0; t < OAL_N_TABLES; t++) {
		CHECK_EQ(a->n_rows[t], b->n_rows[t]);
		batch_rows(&x, a, (enum oal_table_id)t);
		batch_rows(&y, b, (enum oal_table_id)t);
		while (batch_next_row(&x, row_a)) {
			CHECK(batch_next_row(&y, row_b));
			CHECK(!memcmp(row_a, row_b, oal_tables[t].row_size));
			CHECK_EQ(batch_row_time_us(b, (enum oal_table_id)t, row_b),
			         batch_row_time_us(a, (enum oal_table_id)t, row_a) + shift_us);
		}
	}
}

static bool is(struct batch_span s, const char *text)
{
	return s.len == strlen(text) && (!s.len || !memcmp(s.at, text, s.len));
}

/* --- a fleet against librdkafka's own broker */

enum { APS = 20, TICKS = 500, LATER = 250 };

struct seen {
	uint64_t boot_id, next_seq[OAL_N_TOPICS], t0_us[OAL_N_TOPICS];
};

static void look(struct seen seen[APS], const rd_kafka_message_t *m, int topic, const uint8_t master[MAC_KEY_BYTES])
{
	uint8_t raw[MAC_KEY_BYTES], want[MAC_HEADER_BYTES];
	rd_kafka_headers_t *headers;
	struct batch_view v;
	struct mac_key key;
	const void *value;
	char name[32];
	size_t len;
	int number;

	snprintf(name, sizeof name, "%.*s", (int)m->key_len, (const char *)m->key);
	CHECK(sscanf(name, "sim-%d", &number) == 1 && number >= 1 && number <= APS);
	CHECK_EQ(batch_decode(&v, topic, m->payload, m->len, name, 0), BATCH_OK);
	CHECK(v.site.len == 3 && !memcmp(v.site.at, "lab", 3));
	mac_key_derive(raw, master, name, "lab");
	mac_key_begin(&key, 7, raw);
	mac_header(want, &key, topic, m->payload, m->len);
	CHECK(!rd_kafka_message_headers(m, &headers) && !rd_kafka_header_get_last(headers, MAC_HEADER, &value, &len));
	CHECK(len == sizeof want && !memcmp(value, want, sizeof want));
	struct seen *s = &seen[number - 1];

	CHECK(!s->boot_id || s->boot_id == v.boot_id);
	s->boot_id = v.boot_id;
	CHECK_EQ(v.seq, s->next_seq[topic]);
	CHECK(v.t0_us >= s->t0_us[topic]);
	s->next_seq[topic]++;
	s->t0_us[topic] = v.t0_us;
}

/* Reads as many records as were delivered. */
static void consume(const char *brokers, uint64_t most, struct seen seen[APS], const uint8_t master[MAC_KEY_BYTES])
{
	static const char *const topics[] = { "ap.samples.v1", "ap.packets.v1", "ap.events.v1" };
	rd_kafka_topic_partition_list_t *parts = rd_kafka_topic_partition_list_new(3);
	const uint64_t give_up = clock_monotonic_us() + 30000000;
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	uint64_t n = 0;
	char why[256];
	rd_kafka_t *rk;

	rd_kafka_conf_set(conf, "bootstrap.servers", brokers, why, sizeof why);
	rd_kafka_conf_set(conf, "group.id", "test", why, sizeof why);
	rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why);
	for (int i = 0; i < 3; i++)
		rd_kafka_topic_partition_list_add(parts, topics[i], 0)->offset = RD_KAFKA_OFFSET_BEGINNING;
	rd_kafka_assign(rk, parts);
	while (n < most && clock_monotonic_us() < give_up) {
		rd_kafka_message_t *m = rd_kafka_consumer_poll(rk, 500);

		if (!m)
			continue;
		for (int i = 0; i < 3 && !m->err; i++)
			if (!strcmp(rd_kafka_topic_name(m->rkt), topics[i]))
				look(seen, m, i, master);
		n += !m->err;
		rd_kafka_message_destroy(m);
	}
	CHECK_EQ(n, most);
	rd_kafka_topic_partition_list_destroy(parts);
	rd_kafka_consumer_close(rk);
	rd_kafka_destroy(rk);
}

static void play(void)
{
	static const char *const topics[] = { "ap.samples.v1", "ap.packets.v1", "ap.events.v1" };
	static struct fleet_options o = {
		.capture = CAPTURE, .prefix = "sim", .site = "lab", .aps = APS, .from = APS / 2, .producers = 2,
	};
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	const uint64_t began_us = UINT64_C(1795310240000000), monotonic_us = 1000000;
	char path[] = "/tmp/oal-masters.XXXXXX", why[256], err[512];
	static const char lines[] = "2 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n# newest\n7 "
	                            "//////////////////////////////////////////8=\n";
	const int fd = mkstemp(path);
	struct fleet_counts counts, last;
	static struct seen seen[APS];
	uint8_t master[MAC_KEY_BYTES];
	rd_kafka_mock_cluster_t *broker;
	struct fleet *f = NULL;
	rd_kafka_t *rk;
	unsigned complete = 0;

	test("every AP of a fleet sends every batch, numbered from 0, signed with its own key, at its own time");
	memset(master, 0xff, sizeof master);
	CHECK(fd >= 0 && write(fd, lines, sizeof lines - 1) == (ssize_t)sizeof lines - 1);
	rd_kafka_conf_set(conf, "log_level", "0", why, sizeof why);
	rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
	broker = rd_kafka_mock_cluster_new(rk, 1);
	for (int i = 0; i < 3; i++)
		rd_kafka_mock_topic_create(broker, topics[i], 1, 1);
	o.mac_masters = path;
	o.start_us = began_us;
	o.config.kafka = (struct config_kafka){
		.enabled = true, .plaintext = true, .inflight_kb = 32768, .linger_ms = 5, .flush_ms = 20000,
	};
	snprintf(o.config.kafka.brokers, sizeof o.config.kafka.brokers, "%s", rd_kafka_mock_cluster_bootstraps(broker));
	snprintf(o.config.exporter.ap_id, sizeof o.config.exporter.ap_id, "sim");
	CHECK_EQ(fleet_new(&f, &o, err, sizeof err), 0);
	for (unsigned tick = 0; f && tick < TICKS; tick++) {
		if (tick == LATER)
			fleet_grow(f, 1000); /* no more than there are */
		fleet_run(f, began_us + tick * UINT64_C(4000), monotonic_us + tick * UINT64_C(4000));
	}
	if (!f)
		exit(1);
	CHECK_EQ(fleet_aps(f), APS);
	fleet_counts(f, &counts);
	CHECK(counts.late_max_us < 8000); /* a tick of the injected clock, and what the AP's own phase rounds */
	fleet_end(f, &last);
	CHECK_EQ(last.let_go, 0);
	CHECK_EQ(last.delivered, last.batches);
	CHECK(last.rows > 1000 * APS && last.bytes > 1000 * APS);
	consume(rd_kafka_mock_cluster_bootstraps(broker), last.delivered, seen, master);
	for (unsigned i = 0; i < APS; i++) {
		CHECK(seen[i].boot_id != 0 && (!i || seen[i].boot_id != seen[i - 1].boot_id));
		/* Two seconds of a batch each 252 ms, or one; the last are open or on their way. */
		CHECK(seen[i].next_seq[OAL_TOPIC_SAMPLES] >= (i < APS / 2 ? 5 : 2));
		complete += seen[i].next_seq[OAL_TOPIC_PACKETS] > 0;
	}
	CHECK_EQ(complete, APS);

	test("a file of master keys with a mistake is refused with file and line");
	CHECK(write(fd, "300 x\n", 6) == 6);
	CHECK(fleet_new(&f, &o, err, sizeof err) < 0 && strstr(err, ":4: not a master key"));
	close(fd);
	unlink(path);
	rd_kafka_mock_cluster_destroy(broker);
	rd_kafka_destroy(rk);
}

int main(void)
{
	static const char *const names[] = { "fleet-0001", "f",
	                                     "fleet-with-a-long-name-that-is-still-a-name-of-64-characters-0042",
	                                     "fleet-99999" };
	static uint8_t out[OAL_SETTING_MAX_BATCH_BYTES + 4096];
	struct capture_reader reader;
	struct capture_record record;
	struct batch_view was, now;
	struct restamp *r;
	uint64_t rows = 0, counted = 0;
	unsigned batches = 0;
	size_t len, n;
	uint8_t *file = check_file(CAPTURE, &len);

	test("a re-stamped batch decodes to the same rows at shifted times, under another AP's name, site, boot and "
	     "number");
	CHECK_EQ(capture_open(&reader, file, len), 0);
	for (; batches < MOST_BATCHES && capture_next(&reader, &record); batches++) {
		const char *name = names[batches % 4], *site = batches % 3 ? "hall-1" : "";
		const struct restamp_to to = { name, site, 0x8000000000000001u + batches, batches,
		                               batches * UINT64_C(4001) };

		CHECK_EQ(batch_decode(&was, record.topic, record.bytes, record.len, NULL, 0), BATCH_OK);
		CHECK_EQ(restamp_new(&r, record.topic, record.bytes, record.len), 0);
		CHECK(restamp_room(r) <= sizeof out);
		n = restamp_write(r, &to, out, restamp_room(r));
		CHECK(n > 0);
		CHECK_EQ(batch_decode(&now, record.topic, out, n, name, 0), BATCH_OK);
		CHECK(is(now.ap_id, name) && is(now.site, site) && now.boot_id == to.boot_id && now.seq == to.seq);
		same_but_later(&was, &now, to.shift_us);
		for (int t = 0; t < OAL_N_TABLES; t++)
			counted += now.n_rows[t];
		rows += restamp_rows(r);
		restamp_free(r);
	}
	CHECK_EQ(batches, MOST_BATCHES);
	CHECK(rows > 1000 && rows == counted);

	test("what is no batch is refused, and what does not fit is not written");
	CHECK_EQ(restamp_new(&r, 0, (const uint8_t *)"no batch", 8), -EINVAL);
	CHECK_EQ(capture_open(&reader, file, len), 0);
	CHECK(capture_next(&reader, &record));
	CHECK_EQ(restamp_new(&r, record.topic, record.bytes, record.len), 0);
	CHECK_EQ(restamp_write(r, &(struct restamp_to){ "a", "", 1, 0, 0 }, out, restamp_room(r) / 2), 0);
	restamp_free(r);
	free(file);
	play();
	return done();
}
