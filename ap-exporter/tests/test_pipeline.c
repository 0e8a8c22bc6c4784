/* test_pipeline.c: the data path from rows and packets to batches and features, with a made-up AP. */
#include "wire/batch_decode.h"
#include "check.h"
#include "frame.h"
#include "packet/flow_table.h"
#include "offline.h"
#include "packet/packet.h"
#include "feature/feature_vector.h"
#include "pipeline/pipeline.h"

#include <errno.h>

enum { MAX_BATCHES = 600, MAX_INSTANTS = 400, STATIONS = 5 };
static const uint64_t START_US = UINT64_C(1800000000000000);
static const uint64_t MAC = UINT64_C(0x020000000100);

/* What a pipeline gave. */
struct sink {
	struct {
		int topic;
		uint8_t *bytes;
		size_t len;
		uint64_t seq, t0_us;
	} batches[MAX_BATCHES];
	unsigned n_batches;
	uint64_t instants[MAX_INSTANTS];
	int64_t features[MAX_INSTANTS][OAL_MAX_FEATURES];
	unsigned n_instants, n_compared, n_features;
};

static void emit(void *ctx, const struct batch_out *b)
{
	struct sink *s = ctx;

	if (s->n_batches == MAX_BATCHES)
		exit(1);
	s->batches[s->n_batches].topic = b->topic;
	s->batches[s->n_batches].bytes = memcpy(malloc(b->len), b->bytes, b->len);
	s->batches[s->n_batches].len = b->len;
	s->batches[s->n_batches].seq = b->seq;
	s->batches[s->n_batches++].t0_us = b->t0_us;
}

static void on_features(void *ctx, unsigned slot, const struct feature_vector *x)
{
	struct sink *s = ctx;

	if (s->n_instants == MAX_INSTANTS)
		exit(1);
	s->instants[s->n_instants] = x->instant_us;
	s->n_features = x->n;
	memcpy(s->features[s->n_instants++], x->values, x->n * sizeof(int64_t));
}

static void clear(struct sink *s)
{
	while (s->n_batches)
		free(s->batches[--s->n_batches].bytes);
	memset(s, 0, sizeof *s);
}

static struct pipeline *start(struct sink *s, const struct oal_feature_program *program)
{
	const struct pipeline_config c = {.ap_id = "ap-1", .site = "lab", .boot_id = 77, .program = program,
		.emit = emit, .ctx = s, .consumer = {.features = on_features, .ctx = s}};
	struct pipeline *p = NULL;

	clear(s);
	CHECK_EQ(pipeline_new(&p, &c), 0);
	return p;
}

static struct batch_view view(const struct sink *s, unsigned i)
{
	struct batch_view v;

	CHECK_EQ(batch_decode(&v, s->batches[i].topic, s->batches[i].bytes, s->batches[i].len, "ap-1",
	                      s->batches[i].t0_us + 1000000),
	         BATCH_OK);
	return v;
}

/* Rows of a table in all batches of the sink, with their times; returns their number. */
struct seen_row {
	uint64_t t_us, batch_t0_us;
	_Alignas(8) uint8_t bytes[OFFLINE_ROW_SIZE];
};
static unsigned rows_of(const struct sink *s, enum oal_table_id t, struct seen_row *out, unsigned max)
{
	unsigned n = 0, i;

	for (i = 0; i < s->n_batches; i++) {
		struct batch_view v;
		struct batch_cursor c;

		if (s->batches[i].topic != oal_tables[t].topic)
			continue;
		v = view(s, i);
		for (batch_rows(&c, &v, t); n < max && batch_next_row(&c, out[n].bytes); n++) {
			out[n].t_us = batch_row_time_us(&v, t, out[n].bytes);
			out[n].batch_t0_us = v.t0_us;
		}
	}
	return n;
}

static struct packet packet(uint64_t t_us, unsigned direction, uint16_t port, uint32_t seq, uint32_t ack, uint32_t len,
                            uint8_t flags)
{
	struct packet k = {
		.t_us = t_us, .direction = (uint8_t)direction, .addr_len = 4, .flags = flags, .seq = seq, .ack = ack,
		.payload_bytes = len, .window_raw = 500, .has_ts = true, .ts_val = (uint32_t)(t_us / 1000),
		.ts_ecr = (uint32_t)(t_us / 1000) - 20,
	};
	const uint8_t client[4] = {10, 0, 0, 1}, server[4] = {192, 0, 2, 7};

	memcpy(direction ? k.src : k.dst, client, 4);
	memcpy(direction ? k.dst : k.src, server, 4);
	k.src_port = direction ? port : 443;
	k.dst_port = direction ? 443 : port;
	*(direction ? &k.src_mac : &k.dst_mac) = MAC + port % STATIONS;
	return k;
}

/* A random AP: stations that come and go, counters that grow, wrap and restart, queues, channel, flows with loss. */
struct world {
	uint64_t random;
	struct oal_station_row station[STATIONS];
	struct oal_station_ac_row ac[STATIONS];
	struct oal_channel_row channel;
	struct oal_queue_row queue;
	bool present[STATIONS];
	uint32_t seq[8];
};

static uint64_t below(struct world *w, uint64_t n)
{
	return check_random(&w->random) % n;
}

static void world_start(struct world *w, struct pipeline *p, uint64_t seed)
{
	unsigned i;

	memset(w, 0, sizeof *w);
	w->random = seed;
	for (i = 0; i < STATIONS; i++) {
		w->present[i] = i != 4;
		w->station[i] = (struct oal_station_row){
			.absent = i == 2 ? 5 : 4, .mac = MAC + i, .device = pipeline_name(p, "wlan0"),
			.interval_ticks = 1, .tx_pkts = i ? 100 * i : 4294967000u, .signal_dbm = -50,
			.signal_avg_dbm = -52, .tx_bitrate_kbps = 65000,
		};
		w->ac[i] = (struct oal_station_ac_row){
			.mac = MAC + i, .device = pipeline_name(p, "wlan0"), .ac = 2,
			.tx_bytes = i == 1 ? 4294960000u : 0,
		};
	}
	w->channel = (struct oal_channel_row){
		.absent = 8, .device = pipeline_name(p, "wlan0"), .frequency_mhz = 2412, .width_mhz = 20,
		.noise_dbm = -92,
	};
	w->queue = (struct oal_queue_row){
		.device = pipeline_name(p, "eth0"), .handle = 0x10000, .parent = 0xffffffff,
		.kind = pipeline_name(p, "fq_codel"),
	};
	for (i = 0; i < 8; i++)
		w->seq[i] = (uint32_t)check_random(&w->random);
}

static void world_rows(struct world *w, struct pipeline *p)
{
	unsigned i;

	for (i = 0; i < STATIONS; i++) {
		struct oal_station_row *s = &w->station[i];
		struct oal_station_ac_row *a = &w->ac[i];

		if (!below(w, 200)) {
			w->present[i] ^= 1;
			if (!w->present[i]) {
				pipeline_gone(p, OAL_STATION, s);
				pipeline_gone(p, OAL_STATION_AC, a);
			} else if (!below(w, 2)) {
				s->tx_pkts = s->tx_retries = 0; /* a new association: counters restart */
				a->tx_bytes = a->drops = 0;
			}
		}
		if (!w->present[i])
			continue;
		s->inactive_ms = (uint32_t)below(w, 50);
		if (!below(w, 3)) {
			s->tx_pkts += (uint32_t)below(w, 20);
			s->tx_bytes += below(w, 30000);
			s->tx_retries += (uint32_t)below(w, 3);
			s->tx_failed += !below(w, 30);
			s->signal_avg_dbm = (int8_t)(-50 - (int)below(w, 20));
		}
		if (!below(w, 3)) {
			a->backlog_bytes = (uint32_t)below(w, 60000);
			a->backlog_pkts = a->backlog_bytes / 1500;
			a->tx_bytes += (uint32_t)below(w, 30000);
			a->drops += !below(w, 10);
		}
		pipeline_row(p, OAL_STATION, s);
		pipeline_row(p, OAL_STATION_AC, a);
	}
	w->channel.busy_ms += below(w, 3);
	w->channel.active_ms += 4;
	pipeline_row(p, OAL_CHANNEL, &w->channel);
	w->queue.drops += !below(w, 40);
	w->queue.backlog_bytes = (uint32_t)below(w, 3000);
	pipeline_row(p, OAL_QUEUE, &w->queue);
}

/* Packets of the time before `due_us`, in order. */
static void world_packets(struct world *w, struct pipeline *p, uint64_t due_us)
{
	unsigned n = (unsigned)below(w, 8), i;

	for (i = 0; i < n; i++) {
		const uint64_t t_us = due_us - 3900 + i * 480 + below(w, 400);
		const unsigned flow = (unsigned)below(w, 8);
		const bool down = below(w, 3) > 0, again = !below(w, 12);
		struct packet k;

		if (down) {
			k = packet(t_us, 0, (uint16_t)(5000 + flow), w->seq[flow] - (again ? 1448 : 0), 7, 1448,
			           PACKET_ACK);
			w->seq[flow] += again ? 0 : 1448;
		} else {
			k = packet(t_us, 1, (uint16_t)(5000 + flow), 7, w->seq[flow], 0, PACKET_ACK);
		}
		pipeline_packet(p, &k);
	}
}

static void compare_instant(void *ctx, uint64_t t_us, const int64_t *x, unsigned n)
{
	struct sink *s = ctx;
	unsigned i;

	if (s->n_compared == s->n_instants)
		return; /* the pipeline was stopped before this instant */
	CHECK_EQ(s->instants[s->n_compared], t_us);
	for (i = 0; i < n; i++)
		if (s->features[s->n_compared][i] != x[i] && check_errors++ < 10)
			printf("# instant %" PRIu64 " %s: pipeline %" PRId64 ", offline %" PRId64 "\n", t_us,
			       oal_feature_congestion.names[i], s->features[s->n_compared][i], x[i]);
	s->n_compared++;
}

/* The pipeline's features are those that the cluster computes from the batches. */
static void compare_offline(struct sink *s)
{
	struct offline *o = offline_new(&oal_feature_congestion, compare_instant, s);
	unsigned i, k;

	for (i = 0; i < s->n_batches;) {
		struct batch_view group[2];
		unsigned n = 0;

		for (k = i; k < s->n_batches && s->batches[k].t0_us == s->batches[i].t0_us; k++)
			if (s->batches[k].topic != OAL_TOPIC_EVENTS && n < 2)
				group[n++] = view(s, k);
		offline_feed(o, group, n);
		i = k;
	}
	offline_free(o);
	CHECK(s->n_compared + 6 > s->n_instants);
	CHECK(s->n_compared > 30);
}

static void random_world(uint64_t seed, uint64_t offset_us, bool stalls)
{
	static struct sink s;
	struct pipeline *p = start(&s, &oal_feature_congestion);
	struct pipeline_stats stats;
	struct world w;
	uint64_t due = START_US + offset_us;
	unsigned tick, i, rows = 0;

	world_start(&w, p, seed);
	for (tick = 0; tick < 2000; tick++, due += 4000) {
		uint32_t missed = 0;

		if (stalls && !below(&w, 60)) {
			missed = (uint32_t)below(&w, below(&w, 10) ? 5 : 200);
			due += 4000 * (uint64_t)missed;
		}
		world_packets(&w, p, due);
		pipeline_tick(p, due, missed, (uint32_t)below(&w, 300));
		world_rows(&w, p);
	}
	pipeline_flush(p);
	pipeline_stats(p, &stats);
	for (i = 0; i < s.n_batches; i++) {
		const struct batch_view v = view(&s, i);
		unsigned t;

		for (t = 0; t < OAL_N_TABLES; t++)
			rows += v.n_rows[t];
	}
	CHECK_EQ(stats.rows_dropped, 0);
	CHECK_EQ(stats.rows_sent, rows);
	CHECK_EQ(stats.table_rows[OAL_PACKET], stats.packets);
	CHECK(stats.table_rows[OAL_STATION] * 2 < stats.rows_sampled);
	if (!stalls)
		CHECK_EQ(stats.packets_late, 0);
	compare_offline(&s);
	pipeline_free(p);
	clear(&s);
}

static void test_features(void)
{
	uint64_t seed;

	test("features computed at the AP are those computed from its batches, random world");
	for (seed = 1; seed <= 4; seed++)
		random_world(seed, 0, false);
	test("the same when ticks do not meet the decision instants");
	random_world(11, 1300, false);
	random_world(12, 3999, false);
	test("the same when the daemon stalls");
	for (seed = 21; seed <= 24; seed++)
		random_world(seed, 0, true);
}

static struct oal_station_row station(struct pipeline *p, unsigned i)
{
	return (struct oal_station_row){.mac = MAC + i, .device = pipeline_name(p, "wlan0"), .interval_ticks = 1};
}

static void test_dedup(void)
{
	static struct sink s;
	static struct seen_row rows[1000];
	struct pipeline *p = start(&s, NULL);
	struct oal_station_row a = station(p, 0), b = station(p, 1);
	unsigned tick, n, i, per_batch[3] = {0};

	test("a row is sent only on a change that counts; each batch opens with the last known values");
	for (tick = 0; tick < 3 * 63; tick++) {
		pipeline_tick(p, START_US + tick * 4000, 0, 0);
		a.inactive_ms = tick;
		a.tx_bytes = tick >= 70 ? 1000 : 0;
		pipeline_row(p, OAL_STATION, &a);
		if (tick < 80) {
			b.tx_pkts = tick; /* changes always; leaves in the second batch */
			pipeline_row(p, OAL_STATION, &b);
		} else if (tick == 80) {
			pipeline_gone(p, OAL_STATION, &b);
		}
	}
	pipeline_flush(p);
	n = rows_of(&s, OAL_STATION, rows, 1000);
	for (i = 0; i < n; i++) {
		const struct oal_station_row *r = (const void *)rows[i].bytes;
		const unsigned batch = (unsigned)((rows[i].batch_t0_us - START_US) / 252000);

		CHECK(batch < 3);
		if (r->mac == a.mac) {
			per_batch[batch % 3]++;
			CHECK(r->tick == 0 || (batch == 1 && r->tick == 7 && r->tx_bytes == 1000));
			/* The keyframe is of its own tick when the entity was sampled then. */
			CHECK_EQ(r->inactive_ms, batch * 63 + r->tick);
		} else {
			CHECK(batch < 2);
			CHECK_EQ(r->tx_pkts, batch * 63 + r->tick);
		}
	}
	CHECK_EQ(per_batch[0], 1);
	CHECK_EQ(per_batch[1], 2);
	CHECK_EQ(per_batch[2], 1);
	CHECK_EQ(n, 4 + 63 + 17);
	pipeline_free(p);

	test("a station that leaves and returns within a batch goes on with what it has");
	p = start(&s, NULL);
	a = station(p, 0);
	for (tick = 0; tick < 63; tick++) {
		pipeline_tick(p, START_US + tick * 4000, 0, 0);
		if (tick == 10)
			pipeline_gone(p, OAL_STATION, &a);
		if (tick < 10 || tick >= 20)
			pipeline_row(p, OAL_STATION, &a);
	}
	pipeline_flush(p);
	n = rows_of(&s, OAL_STATION, rows, 1000);
	CHECK_EQ(n, 2);
	CHECK_EQ(((const struct oal_station_row *)(const void *)rows[1].bytes)->tick, 20);
	pipeline_free(p);

	test("entities that a complete round did not show have left");
	p = start(&s, NULL);
	a = station(p, 0);
	b = station(p, 1);
	for (tick = 0; tick < 200; tick++) {
		const uint64_t due = START_US + tick * 4000;

		pipeline_tick(p, due, 0, 0);
		pipeline_row(p, OAL_STATION, &a);
		if (tick < 5)
			pipeline_row(p, OAL_STATION, &b);
		pipeline_gone_before(p, OAL_STATION, a.device, due);
	}
	pipeline_flush(p);
	for (n = rows_of(&s, OAL_STATION, rows, 1000), i = 0; i < n; i++)
		CHECK(((const struct oal_station_row *)(const void *)rows[i].bytes)->mac == a.mac ||
		      rows[i].t_us < START_US + 252000);
	pipeline_free(p);
	clear(&s);
}

static void test_time(void)
{
	static struct sink s;
	static struct seen_row rows[1000];
	struct pipeline *p = start(&s, NULL);
	struct oal_station_row a = station(p, 0);
	struct batch_missed_cursor c;
	struct batch_view v;
	uint64_t from, n, due = START_US;
	unsigned tick, i;

	test("missed ticks are in the header, also across the end of a batch");
	for (tick = 0; tick < 140; tick++, due += 4000) {
		if ((tick >= 5 && tick < 9) || (tick >= 60 && tick < 70))
			continue;
		pipeline_tick(p, due, tick == 9 ? 4 : tick == 70 ? 10 : 0, 50);
		pipeline_row(p, OAL_STATION, &a);
	}
	pipeline_flush(p);
	v = view(&s, 0);
	CHECK_EQ(v.ticks, 63);
	batch_missed(&c, &v);
	CHECK(batch_next_missed(&c, &from, &n) && from == 5 && n == 4);
	CHECK(batch_next_missed(&c, &from, &n) && from == 60 && n == 3);
	CHECK(!batch_next_missed(&c, &from, &n));
	v = view(&s, 2);
	CHECK_EQ(v.t0_us, START_US + 252000);
	batch_missed(&c, &v);
	CHECK(batch_next_missed(&c, &from, &n) && from == 0 && n == 7);
	CHECK(!batch_next_missed(&c, &from, &n));
	v = view(&s, 4);
	CHECK_EQ(v.ticks, 140 - 126);
	CHECK_EQ(v.tick_late_max_us, 50);
	pipeline_free(p);

	test("a clock that is stepped back ends the batch, and sequence numbers go on");
	p = start(&s, &oal_feature_congestion);
	a = station(p, 0);
	for (tick = 0; tick < 20; tick++)
		pipeline_tick(p, START_US + tick * 4000, 0, 0);
	pipeline_account(p, 3, 1, 3, 1000);
	for (tick = 0; tick < 20; tick++) {
		pipeline_tick(p, START_US - 3600000000u + tick * 4000, 0, 0);
		pipeline_row(p, OAL_STATION, &a);
	}
	pipeline_flush(p);
	CHECK_EQ(s.n_batches, 4);
	v = view(&s, 0);
	CHECK_EQ(v.ticks, 20);
	CHECK_EQ(v.clock_state, 3);
	CHECK_EQ(v.dumps_interrupted, 1);
	v = view(&s, 1);
	CHECK_EQ(v.ring_drops, 3);
	v = view(&s, 2);
	CHECK_EQ(v.seq, 1);
	CHECK_EQ(v.t0_us, START_US - 3600000000u);
	pipeline_free(p);

	test("after a long hole a batch begins where sampling does");
	p = start(&s, NULL);
	for (tick = 0; tick < 20; tick++)
		pipeline_tick(p, START_US + tick * 4000 + (tick >= 10 ? 10000000 : 0), tick == 10 ? 2499 : 0, 0);
	pipeline_flush(p);
	CHECK_EQ(s.n_batches, 4);
	CHECK_EQ(view(&s, 0).ticks, 10);
	CHECK_EQ(view(&s, 2).t0_us, START_US + 10040000);
	pipeline_free(p);

	test("a packet that comes after its batch began to leave keeps its place in time if it is within the settling "
	     "time");
	p = start(&s, NULL);
	for (tick = 0; tick < 130; tick++) {
		/* Two ticks late. */
		struct packet k = packet(START_US + tick * 4000 - 9000, 1, 5000, tick, 0, 1, PACKET_ACK);

		if (tick >= 3)
			pipeline_packet(p, &k);
		pipeline_tick(p, START_US + tick * 4000, 0, 0);
	}
	pipeline_flush(p);
	CHECK_EQ(rows_of(&s, OAL_PACKET, rows, 1000), 127);
	for (i = 0; i < 127; i++)
		CHECK_EQ(rows[i].t_us, START_US + (i + 3) * 4000 - 9000);
	pipeline_free(p);
	clear(&s);
}

static void test_drops(void)
{
	static struct sink s;
	static struct seen_row rows[100];
	struct pipeline *p = start(&s, NULL);
	struct oal_station_row a = station(p, 0);
	struct oal_station_ac_row ac = {.mac = MAC, .device = pipeline_name(p, "wlan0"), .ac = 2, .drops = 4294967290u};
	struct oal_queue_row q = {
		.device = pipeline_name(p, "eth0"), .handle = 0x80010000, .kind = pipeline_name(p, "fq_codel"),
		.drops = 5,
	};
	struct oal_queue_row mq = {.device = pipeline_name(p, "eth0"), .kind = pipeline_name(p, "mq"), .drops = 5};
	unsigned tick, n, i, seen[5] = {0};

	test("growth of loss counters becomes drop events, over wrap and restart");
	for (tick = 0; tick < 63; tick++) {
		pipeline_tick(p, START_US + tick * 4000, 0, 0);
		if (tick == 10)
			a.tx_failed = 3;
		if (tick == 20)
			ac.drops = 4; /* wrapped: 10 more */
		if (tick == 21)
			ac.overlimit = 2;
		if (tick == 30)
			q.drops = mq.drops = 2; /* restarted: 2 */
		if (tick == 40) /* the counters go, and come again with other values: nothing was dropped */
			a.tx_failed = 0, a.absent = OAL_STATION_ABSENT_TX_FAILED,
			ac.drops = 0, ac.absent = OAL_STATION_AC_ABSENT_DROPS;
		if (tick == 50)
			a.tx_failed = 900, a.absent = 0, ac.drops = 700, ac.absent = 0;
		pipeline_row(p, OAL_STATION, &a);
		pipeline_row(p, OAL_STATION_AC, &ac);
		pipeline_row(p, OAL_QUEUE, &q);
		pipeline_row(p, OAL_QUEUE, &mq);
	}
	pipeline_flush(p);
	n = rows_of(&s, OAL_DROP_EVENT, rows, 100);
	CHECK_EQ(n, 4);
	for (i = 0; i < n; i++) {
		const struct oal_drop_event_row *r = (const void *)rows[i].bytes;

		seen[r->cause < 5 ? r->cause : 0]++;
		CHECK(r->cause != 1 || (r->count == 10 && r->mac == MAC && r->queue == 2 && r->tick == 20));
		CHECK(r->cause != 2 || (r->count == 2 && r->tick == 21));
		CHECK(r->cause != 3 || (r->count == 2 && r->mac == 0 && r->queue == 0x80010000));
		CHECK(r->cause != 4 || (r->count == 3 && r->mac == MAC && r->queue == 0));
	}
	CHECK(seen[1] == 1 && seen[2] == 1 && seen[3] == 1 && seen[4] == 1);
	pipeline_free(p);
	clear(&s);
}

static void test_flows(void)
{
	static struct sink s;
	static struct seen_row rows[4000];
	struct pipeline_config config = {
		.ap_id = "ap-1", .boot_id = 1, .max_flows = 16, .emit = emit, .ctx = &s, .settle_ticks = 1,
	};
	static const uint8_t key[16] = "0123456789abcdef";
	struct pipeline *p = start(&s, NULL);
	struct pipeline_stats stats;
	struct oal_station_row a = station(p, 0);
	struct batch_flow_cursor c;
	struct batch_flow f, g;
	struct batch_view v;
	struct packet k;
	unsigned tick, n, i;

	test("a short flow's bytes are complete in its rows: they start at zero");
	for (tick = 0; tick < 200; tick++) {
		for (i = 0; tick == 70 && i < 3; i++) {
			k = packet(START_US + 279000 + i, 0, 5000, 1000 + i * 100, 1, 100, PACKET_ACK);
			pipeline_packet(p, &k);
		}
		pipeline_tick(p, START_US + tick * 4000, 0, 0);
		pipeline_row(p, OAL_STATION, &a);
	}
	CHECK(pipeline_station_active(p, MAC, START_US) && !pipeline_station_active(p, MAC, START_US + 300000));
	pipeline_flush(p);
	n = rows_of(&s, OAL_FLOW, rows, 4000);
	CHECK(n >= 3);
	CHECK_EQ(((const struct oal_flow_row *)(const void *)rows[0].bytes)->sent_bytes, 0);
	CHECK_EQ(((const struct oal_flow_row *)(const void *)rows[1].bytes)->sent_bytes, 300);
	CHECK(rows[0].t_us <= START_US + 279000 && rows[1].t_us == START_US + 300000);
	test("a flow belongs to the station whose MAC address it carries");
	v = view(&s, 3);
	CHECK_EQ(v.topic, OAL_TOPIC_PACKETS);
	batch_flows(&c, &v);
	CHECK(batch_next_flow(&c, &f) && f.station_mac == MAC && f.client_port == 5000 && f.server_port == 443 &&
	      f.protocol == 6);
	CHECK_EQ(f.flow_id, batch_flow_id(&f));
	CHECK(f.client_addr[0] == 10 && f.server_addr[0] == 192);
	pipeline_free(p);

	test("on a routed AP a flow belongs to the owner of its address");
	p = start(&s, NULL);
	pipeline_station_addr(p, (const uint8_t[]){10, 0, 0, 1}, 4, MAC + 9);
	for (tick = 0; tick < 63; tick++) {
		k = packet(START_US + tick * 4000, 0, 5000, tick, 1, 1, PACKET_ACK);
		k.dst_mac = UINT64_C(0xaabbccddeeff);
		pipeline_packet(p, &k);
		pipeline_tick(p, START_US + tick * 4000, 0, 0);
	}
	pipeline_flush(p);
	v = view(&s, 1);
	batch_flows(&c, &v);
	CHECK(batch_next_flow(&c, &f) && f.station_mac == MAC + 9);
	pipeline_free(p);

	test("pseudonyms hide addresses, of the same length, the same in every batch, with a flow id of their own");
	config.pseudonym_key = key;
	config.pseudonym_key_len = sizeof key;
	clear(&s);
	CHECK_EQ(pipeline_new(&p, &config), 0);
	for (tick = 0; tick < 130; tick++) {
		k = packet(START_US + tick * 4000, 1, 5000, tick, 1, 1, PACKET_ACK);
		pipeline_packet(p, &k);
		pipeline_tick(p, START_US + tick * 4000, 0, 0);
	}
	pipeline_flush(p);
	v = view(&s, 1);
	batch_flows(&c, &v);
	CHECK(batch_next_flow(&c, &g) && g.addr_len == 4 && memcmp(g.client_addr, f.client_addr, 4) &&
	      g.flow_id == batch_flow_id(&g));
	v = view(&s, 3);
	batch_flows(&c, &v);
	CHECK(batch_next_flow(&c, &f) && f.flow_id == g.flow_id && !memcmp(f.client_addr, g.client_addr, 4) &&
	      memcmp(f.client_addr, f.server_addr, 4));
	pipeline_free(p);

	test("a table full of flows forgets the idle ones, counts it, and never mixes up two flows of a batch");
	config.pseudonym_key = NULL;
	clear(&s);
	CHECK_EQ(pipeline_new(&p, &config), 0);
	for (tick = 0; tick < 63 * 40; tick++) {
		if (tick % 16 == 0) { /* 4 new flows per batch, all of 16 places taken soon; flows go quiet after 2 s */
			k = packet(START_US + tick * 4000, 1, (uint16_t)(5000 + tick / 16), 1, 0, tick / 16 + 1,
			           PACKET_ACK);
			pipeline_packet(p, &k);
		}
		pipeline_tick(p, START_US + tick * 4000, 0, 0);
	}
	pipeline_flush(p);
	pipeline_stats(p, &stats);
	CHECK(stats.flows_evicted > 10);
	CHECK(stats.rows_dropped > 0);
	CHECK_EQ(stats.flows, 16);
	for (i = 0; i < s.n_batches; i++) {
		struct batch_cursor rc;
		struct oal_packet_row r;

		if (s.batches[i].topic != OAL_TOPIC_PACKETS)
			continue;
		v = view(&s, i);
		for (batch_rows(&rc, &v, OAL_PACKET); batch_next_row(&rc, &r);) {
			for (batch_flows(&c, &v), n = 0; n <= r.flow; n++)
				CHECK(batch_next_flow(&c, &f));
			CHECK_EQ(f.client_port, 5000 + r.payload_bytes - 1);
		}
	}
	pipeline_free(p);
	clear(&s);
}

/* The window that a pipeline's last flow row of this direction has; 0: none. */
static uint32_t last_window(const struct sink *s, unsigned direction)
{
	static struct seen_row rows[400];
	const unsigned n = rows_of(s, OAL_FLOW, rows, 400);
	uint32_t window = 0;

	for (unsigned i = 0; i < n; i++) {
		const struct oal_flow_row *row = (const void *)rows[i].bytes;

		if (row->direction == direction)
			window = row->absent & OAL_FLOW_ABSENT_RWND_BYTES ? 0 : row->rwnd_bytes;
	}
	return window;
}

static void handshake(struct pipeline *p, uint16_t port, uint64_t t_us)
{
	struct packet k = packet(t_us, 1, port, 99, 0, 0, PACKET_SYN);

	k.syn_options = PACKET_SYN_WSCALE | PACKET_SYN_MSS;
	k.wscale = 7;
	k.mss_bytes = 1448;
	pipeline_packet(p, &k);
	k = packet(t_us + 1, 0, port, 999, 100, 0, PACKET_SYN | PACKET_ACK);
	k.syn_options = PACKET_SYN_WSCALE | PACKET_SYN_MSS;
	k.wscale = 9;
	k.mss_bytes = 1448;
	pipeline_packet(p, &k);
}

/* 40 ticks in which a segment goes down and is acknowledged. */
static void exchange(struct pipeline *p, uint16_t port, uint64_t begin_us, uint32_t seq)
{
	for (unsigned tick = 0; tick < 40; tick++) {
		const uint64_t t_us = begin_us + tick * 4000;
		struct packet k = packet(t_us, 0, port, seq + tick * 1000, 100, 1000, PACKET_ACK);

		pipeline_packet(p, &k);
		k = packet(t_us + 1, 1, port, 100, seq + tick * 1000 + 1000, 0, PACKET_ACK);
		pipeline_packet(p, &k);
		pipeline_tick(p, t_us + 4000, 0, 0);
	}
	pipeline_flush(p);
}

/* The window scale is the last option, as in what Linux sends. */
static void test_cut_syn(void)
{
	static const uint8_t options[20] = { 2, 4, 5, 180, 4, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 3, 7 };
	const struct frame syn = frame_simple(99, PACKET_SYN, options, sizeof options, 0);
	static struct sink s;

	test("a SYN that is cut at any length leaves windows unknown, never of scale 0; a whole one does not");
	for (uint32_t len = 0; len <= syn.len; len++) {
		struct pipeline *p = start(&s, NULL);
		struct packet answer = packet(START_US + 1000, 0, 5000, 999, 100, 0, PACKET_SYN | PACKET_ACK);

		pipeline_tick(p, START_US, 0, 0);
		pipeline_frame(p, syn.bytes, len, syn.len, START_US + 500, PIPELINE_UP);
		answer.syn_options = PACKET_SYN_WSCALE;
		answer.wscale = 9;
		pipeline_packet(p, &answer);
		exchange(p, 5000, START_US + 4000, 1000);
		CHECK_EQ(last_window(&s, 0), len == syn.len ? 500u << 7 : 0);
		pipeline_free(p);
	}
	clear(&s);
}

static void test_adopted_flows(void)
{
	static struct sink first, second, small;
	struct pipeline_config config = {
		.ap_id = "ap-1", .site = "lab", .boot_id = 78, .emit = emit, .ctx = &small, .max_flows = 2,
	};
	struct pipeline *p = start(&first, NULL), *next = start(&second, NULL);
	struct pipeline_stats stats;
	struct packet k;

	test("the data path after a reload knows the scales of flows whose SYNs the one before saw, and makes rows of "
	     "them from zero");
	pipeline_tick(p, START_US, 0, 0);
	for (uint16_t port = 5000; port < 5003; port++)
		handshake(p, port, START_US + port);
	k = packet(START_US + 6000, 0, 5003, 1, 1, 10, PACKET_ACK); /* its SYN went by before */
	pipeline_packet(p, &k);
	exchange(p, 5000, START_US + 20000, 1000);
	CHECK_EQ(last_window(&first, 0), 500u << 7);
	pipeline_adopt_flows(next, p);
	pipeline_stats(next, &stats);
	CHECK_EQ(stats.flows, 4);
	pipeline_tick(next, START_US + 1000000, 0, 0);
	k = packet(START_US + 1000100, 0, 5003, 11, 1, 10, PACKET_ACK);
	pipeline_packet(next, &k);
	exchange(next, 5000, START_US + 1004000, 41000);
	CHECK_EQ(last_window(&second, 0), 500u << 7);
	for (unsigned i = 0; i < second.n_batches; i++)
		if (second.batches[i].topic == OAL_TOPIC_PACKETS) {
			struct batch_view v = view(&second, i);
			struct batch_flow_cursor c;
			struct batch_flow f;

			for (batch_flows(&c, &v); batch_next_flow(&c, &f);) /* those without packets stay silent */
				CHECK(f.client_port == 5000 || f.client_port == 5003);
		}
	pipeline_free(next);

	test("SYNs that the earlier data path holds and has not looked at count too, also those of another "
	     "connection on the ports of an earlier one");
	next = start(&second, NULL);
	handshake(p, 5004, START_US + 600000); /* staged: no tick comes any more */
	k = packet(START_US + 600010, 1, 5000, 70000, 0, 0, PACKET_SYN); /* the answer is not there yet */
	k.syn_options = PACKET_SYN_WSCALE | PACKET_SYN_MSS;
	k.wscale = 2;
	pipeline_packet(p, &k);
	pipeline_adopt_flows(next, p);
	pipeline_stats(next, &stats);
	CHECK_EQ(stats.flows, 5);
	pipeline_tick(next, START_US + 1000000, 0, 0);
	exchange(next, 5004, START_US + 1004000, 1000);
	CHECK_EQ(last_window(&second, 0), 500u << 7);
	pipeline_free(next);
	next = start(&second, NULL);
	pipeline_adopt_flows(next, p);
	pipeline_tick(next, START_US + 1000000, 0, 0);
	exchange(next, 5000, START_US + 1004000, 1000);
	CHECK_EQ(last_window(&second, 0), 0);
	pipeline_free(next);

	test("what an earlier data path did not know stays unknown, and a smaller one takes the newest flows");
	next = start(&second, NULL);
	pipeline_adopt_flows(next, p);
	pipeline_tick(next, START_US + 1000000, 0, 0);
	exchange(next, 5003, START_US + 1004000, 11);
	CHECK_EQ(last_window(&second, 0), 0);
	pipeline_free(next);
	CHECK_EQ(pipeline_new(&next, &config), 0);
	pipeline_adopt_flows(next, p);
	pipeline_stats(next, &stats);
	CHECK_EQ(stats.flows, 2);
	CHECK(pipeline_flow_table(next)->flows[1].client_port == 5000); /* had the last packet */
	pipeline_free(next);
	pipeline_free(p);
	clear(&first);
	clear(&second);
	clear(&small);
}

static void test_limits(void)
{
	static struct sink s;
	static struct seen_row rows[100];
	struct pipeline_config config = {
		.ap_id = "ap-1", .boot_id = 1, .max_stations = 4, .max_packets_per_batch = 64, .emit = emit, .ctx = &s,
	};
	struct pipeline *p = NULL;
	struct pipeline_stats stats;
	struct oal_health_row health = {.ticks = 5};
	struct batch_view v;
	unsigned tick, i;

	test("what does not fit is counted, in the header too");
	CHECK_EQ(pipeline_new(&p, &config), 0);
	for (tick = 0; tick < 70; tick++) {
		for (i = 0; tick < 63 && i < 3; i++) {
			struct packet k = packet(START_US + tick * 4000 - 3000 + i, 1, 5000, tick, 0, 1, PACKET_ACK);

			pipeline_packet(p, &k);
		}
		pipeline_tick(p, START_US + tick * 4000, 0, 0);
		for (i = 0; i < 6; i++) {
			struct oal_station_row a = station(p, i);

			pipeline_row(p, OAL_STATION, &a);
		}
	}
	pipeline_flush(p);
	pipeline_stats(p, &stats);
	CHECK_EQ(stats.entities_refused, 2 * 70);
	v = view(&s, 0);
	CHECK_EQ(v.n_rows[OAL_STATION], 4);
	CHECK_EQ(v.rows_dropped, 2 * 63);
	v = view(&s, 1);
	CHECK_EQ(v.n_rows[OAL_PACKET], 64);
	CHECK_EQ(v.rows_dropped, 3 * 62 + 3 - 64);
	pipeline_free(p);
	clear(&s);

	test("health rows make an event batch; without any there is none");
	p = start(&s, NULL);
	health.version = pipeline_name(p, "1.0");
	for (tick = 0; tick < 63 * 3; tick++) {
		pipeline_tick(p, START_US + tick * 4000, 0, 0);
		if (tick == 100)
			pipeline_row(p, OAL_HEALTH, &health);
	}
	pipeline_flush(p);
	CHECK_EQ(s.n_batches, 7);
	CHECK_EQ(rows_of(&s, OAL_HEALTH, rows, 100), 1);
	CHECK_EQ(rows[0].t_us, START_US + 400000);
	pipeline_free(p);
	clear(&s);

	test("decisions and bundle states are events too: those of one bundle are one run");
	p = start(&s, NULL);
	for (tick = 0; tick < 63; tick++) {
		struct oal_decision_row decision = {
			.bundle = 7 + tick / 40, .source = 2, .version = 3, .instant_us = START_US + tick * 4000,
			.class = 2,
		};
		const struct oal_bundle_status_row state = {
			.bundle = 8, .source = 2, .version = 3, .state = OAL_BUNDLE_STATE_APPLIED,
		};

		pipeline_tick(p, START_US + tick * 4000, 0, 0);
		if (tick % 25 == 10)
			pipeline_row(p, OAL_DECISION, &decision);
		if (tick == 40)
			pipeline_row(p, OAL_BUNDLE_STATUS, &state);
	}
	pipeline_flush(p);
	CHECK_EQ(rows_of(&s, OAL_DECISION, rows, 100), 3);
	CHECK_EQ(rows[0].t_us, START_US + 10 * 4000);
	CHECK_EQ(rows[1].t_us, START_US + 35 * 4000);
	CHECK_EQ(rows[2].t_us, START_US + 60 * 4000);
	CHECK_EQ(((const struct oal_decision_row *)(const void *)rows[1].bytes)->bundle, 7);
	CHECK_EQ(((const struct oal_decision_row *)(const void *)rows[2].bytes)->bundle, 8);
	CHECK_EQ(rows_of(&s, OAL_BUNDLE_STATUS, rows, 100), 1);
	pipeline_free(p);
	clear(&s);

	test("settings out of bounds are refused");
	config.max_flows = 5000;
	CHECK_EQ(pipeline_new(&p, &config), -EINVAL);
	config.max_flows = 0;
	config.ap_id = "";
	CHECK_EQ(pipeline_new(&p, &config), -EINVAL);
	config.ap_id = "\xff";
	CHECK_EQ(pipeline_new(&p, &config), -EINVAL);

	test("the largest settings are good");
	config = (struct pipeline_config){
		.ap_id = "ap-1", .boot_id = 1, .max_stations = 512, .max_queues = 256, .max_channels = 64,
		.max_beacons = 512, .max_flows = 4096, .max_packets_per_batch = 32768,
		.program = &oal_feature_congestion, .emit = emit, .ctx = &s,
	};
	CHECK_EQ(pipeline_new(&p, &config), 0);
	pipeline_free(p);

	test("the data path of 64 stations takes at most 3.2 MB");
	p = start(&s, &oal_feature_congestion);
	pipeline_stats(p, &stats);
	CHECK(stats.memory_bytes <= 3200000);
	printf("# %zu bytes\n", stats.memory_bytes);
	pipeline_free(p);
}

int main(void)
{
	test_features();
	test_dedup();
	test_time();
	test_drops();
	test_flows();
	test_cut_syn();
	test_adopted_flows();
	test_limits();
	return done();
}
