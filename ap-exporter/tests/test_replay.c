/* test_replay.c: pcap and pcapng files, and captures, played as APs. */
#include "wire/batch_decode.h"
#include "wire/capture_file.h"
#include "check.h"
#include "frame.h"
#include "packet/packet.h"
#include "packet/pcap.h"
#include "pipeline/pipeline.h"
#include "replay/replay.h"

#include <errno.h>
#include <unistd.h>

static char path[] = "build/test-replay-XXXXXX";
static const uint64_t RECORDED_US = UINT64_C(1700000000123000), NOW_US = UINT64_C(1800000000000000);

/* --- what a replay gives, per AP */

enum { MAX_APS = 4, MAX_ROWS = 40000 };
struct got {
	char ap_id[64];
	unsigned batches[OAL_N_TOPICS];
	uint64_t next_seq[OAL_N_TOPICS], first_t0_us, rows[OAL_N_TABLES], boot_id;
	struct oal_station_row station[MAX_ROWS / 10];
	uint64_t station_us[MAX_ROWS / 10];
	struct oal_packet_row packet[MAX_ROWS];
	uint64_t packet_us[MAX_ROWS];
	uint64_t retrans_pkts, sent_bytes, missed;
	uint16_t client_ports[64];
	unsigned n_ports;
};
static struct got got[MAX_APS];
static unsigned n_got;

static void note_flows(struct got *g, const struct batch_view *v)
{
	struct batch_flow_cursor c;
	struct batch_flow f;
	unsigned i;

	for (batch_flows(&c, v); batch_next_flow(&c, &f);) {
		for (i = 0; i < g->n_ports && g->client_ports[i] != f.client_port; i++)
			;
		if (i == g->n_ports && i < 64)
			g->client_ports[g->n_ports++] = f.client_port;
	}
}

static void note(void *ctx, const char *ap_id, const struct batch_out *b)
{
	_Alignas(8) uint8_t row[256];
	struct batch_missed_cursor m;
	struct batch_cursor c;
	struct batch_view v;
	struct got *g;
	uint64_t from, n;
	unsigned i, t;

	for (i = 0; i < n_got && strcmp(got[i].ap_id, ap_id); i++)
		;
	if (i == n_got) {
		CHECK(n_got++ < MAX_APS);
		memset(&got[i], 0, sizeof got[i]);
		snprintf(got[i].ap_id, sizeof got[i].ap_id, "%s", ap_id);
	}
	g = &got[i];
	CHECK_EQ(batch_decode(&v, b->topic, b->bytes, b->len, ap_id, b->t0_us), BATCH_OK);
	CHECK_EQ(v.seq, g->next_seq[b->topic]++);
	CHECK(!g->boot_id || g->boot_id == v.boot_id);
	g->boot_id = v.boot_id;
	g->batches[b->topic]++;
	if (!g->first_t0_us)
		g->first_t0_us = v.t0_us;
	if (b->topic == OAL_TOPIC_SAMPLES)
		for (batch_missed(&m, &v); batch_next_missed(&m, &from, &n);)
			g->missed += n;
	note_flows(g, &v);
	for (t = 0; t < OAL_N_TABLES; t++)
		for (batch_rows(&c, &v, t); batch_next_row(&c, row); g->rows[t]++) {
			if (t == OAL_STATION && g->rows[t] < MAX_ROWS / 10) {
				g->station[g->rows[t]] = *(const struct oal_station_row *)(const void *)row;
				g->station_us[g->rows[t]] = batch_row_time_us(&v, t, row);
			}
			if (t == OAL_PACKET && g->rows[t] < MAX_ROWS) {
				g->packet[g->rows[t]] = *(const struct oal_packet_row *)(const void *)row;
				g->packet_us[g->rows[t]] = batch_row_time_us(&v, t, row);
			}
			if (t == OAL_FLOW &&
			    ((const struct oal_flow_row *)(const void *)row)->retrans_pkts > g->retrans_pkts)
				g->retrans_pkts = ((const struct oal_flow_row *)(const void *)row)->retrans_pkts;
			if (t == OAL_FLOW &&
			    ((const struct oal_flow_row *)(const void *)row)->sent_bytes > g->sent_bytes)
				g->sent_bytes = ((const struct oal_flow_row *)(const void *)row)->sent_bytes;
		}
}

static struct replay *start(unsigned aps, bool loop)
{
	const struct replay_config c = {
		.path = path, .loop = loop, .aps = aps, .ap_id = "ap", .start_us = NOW_US, .boot_id = 40, .emit = note,
		.program = &oal_feature_congestion, .version = "1.2.3",
	};
	char err[200] = "";
	struct replay *r = NULL;

	n_got = 0;
	CHECK_EQ(replay_new(&r, &c, err, sizeof err), 0);
	if (err[0])
		printf("# %s\n", err);
	return r;
}

/* Plays for `us`, a tick at a time, as the daemon does; returns the time at which it ended. */
static uint64_t play(struct replay *r, uint64_t us)
{
	uint64_t now = NOW_US;

	while (now < NOW_US + us && replay_advance(r, now))
		now += 4000;
	replay_flush(r);
	return now;
}

/* --- a recording: an AP with two stations, one of which leaves, and a flow with a loss */

static struct capture_writer writer;

static void record(void *ctx, const struct batch_out *b)
{
	const struct capture_record r = {b->topic, b->bytes, b->len, b->t0_us};

	CHECK_EQ(capture_append(&writer, &r), 0);
}

enum { RECORDED_TICKS = 600, LEAVES_AT = 300 };

static struct packet recorded_packet(uint64_t t_us, unsigned direction, uint32_t seq, uint32_t ack, uint32_t len)
{
	struct packet k = {
		.t_us = t_us, .direction = (uint8_t)direction, .addr_len = 4, .flags = PACKET_ACK, .seq = seq,
		.ack = ack, .payload_bytes = len, .window_raw = 9, .src_port = direction ? 50000 : 443,
		.dst_port = direction ? 443 : 50000,
	};

	k.src[0] = direction ? 10 : 192;
	k.dst[0] = direction ? 192 : 10;
	*(direction ? &k.src_mac : &k.dst_mac) = 0x020000000001;
	return k;
}

static void make_recording(void)
{
	const struct pipeline_config c = {.ap_id = "recorded", .boot_id = 1, .emit = record};
	struct pipeline *p = NULL;
	unsigned tick;

	CHECK_EQ(capture_create(&writer, path), 0);
	CHECK_EQ(pipeline_new(&p, &c), 0);
	pipeline_name(p, "unused");
	for (tick = 0; tick < RECORDED_TICKS; tick++) {
		const uint64_t due = RECORDED_US + tick * 4000;
		struct oal_station_row a = {
			.mac = 0x020000000001, .device = pipeline_name(p, "wlan0"), .interval_ticks = 1,
			.tx_bytes = 1000 + tick * 1000, .tx_pkts = 4294967000u + tick,
		};
		struct oal_station_row b = {.mac = 0x020000000002, .device = a.device, .interval_ticks = 1};
		struct packet k;

		if (tick == 100 || tick == 101)
			continue; /* missed */
		/* One retransmission, and a hole. */
		k = recorded_packet(due - 1500, 0, 1000 + (tick == 50 ? 49 : tick) * 100, 1, 100);
		pipeline_packet(p, &k);
		k = recorded_packet(due - 500, 1, 1, 1000 + tick * 100 - 200, 0);
		pipeline_packet(p, &k);
		pipeline_tick(p, due, tick == 102 ? 2 : 0, 0);
		pipeline_row(p, OAL_STATION, &a);
		if (tick < LEAVES_AT)
			pipeline_row(p, OAL_STATION, &b);
		else if (tick == LEAVES_AT)
			pipeline_gone(p, OAL_STATION, &b);
	}
	pipeline_flush(p);
	pipeline_free(p);
	CHECK_EQ(capture_close(&writer), 0);
}

static void test_capture(void)
{
	struct replay_stats s;
	struct replay *r;
	unsigned i, other = 0, exact = 0;
	uint64_t shift;

	test("a capture is played once: every row and packet again, at the same distance, now");
	make_recording();
	r = start(1, false);
	CHECK_EQ(replay_next_us(r), NOW_US + 23000); /* the recording began 23 ms after a multiple of 100 ms */
	play(r, 10000000);
	replay_stats(r, &s);
	CHECK_EQ(n_got, 1);
	CHECK(!strcmp(got[0].ap_id, "ap"));
	shift = NOW_US - RECORDED_US / 100000 * 100000;
	CHECK_EQ(got[0].first_t0_us, RECORDED_US + shift);
	CHECK_EQ(got[0].rows[OAL_PACKET], 2 * (RECORDED_TICKS - 2));
	CHECK_EQ(got[0].missed, 2);
	CHECK_EQ(s.pipeline.rows_dropped, 0);
	/* The recording's first packets are of before its first tick and were moved to it. */
	for (i = 0; i < got[0].rows[OAL_PACKET]; i++)
		exact += got[0].packet_us[i] % 1000 == 500 && got[0].packet_us[i] >= RECORDED_US + shift;
	CHECK_EQ(exact, got[0].rows[OAL_PACKET] - 2);
	for (i = 0; i < got[0].rows[OAL_STATION]; i++) {
		const uint64_t tick = (got[0].station_us[i] - NOW_US - 23000) / 4000;

		other += got[0].station[i].mac == 0x020000000002;
		if (got[0].station[i].mac == 0x020000000001)
			CHECK(got[0].station[i].tx_bytes == 1000 + tick * 1000 &&
			      got[0].station[i].tx_pkts == (uint32_t)(4294967000u + tick));
	}
	CHECK_EQ(other, LEAVES_AT / 63 + 1);
	CHECK_EQ(got[0].retrans_pkts, 1);
	CHECK(got[0].batches[OAL_TOPIC_EVENTS] >= 2);
	CHECK_EQ(replay_next_us(r), UINT64_MAX);
	CHECK(s.batches_refused == 0 && s.breaks == 0 && s.other_ap == 0);
	replay_free(r);

	test("in a loop counters grow on, flows begin anew, and nothing looks like a loss");
	r = start(1, true);
	play(r, 3 * 2500000 + 1000000);
	replay_stats(r, &s);
	CHECK_EQ(s.loops, 4);
	CHECK_EQ(got[0].retrans_pkts, 1);
	CHECK_EQ(got[0].n_ports, 4);
	for (i = 1; i < got[0].rows[OAL_STATION]; i++)
		if (got[0].station[i].mac == 0x020000000001 && got[0].station[i - 1].mac == 0x020000000001) {
			CHECK(got[0].station[i].tx_bytes - got[0].station[i - 1].tx_bytes <= 3000);
			CHECK(got[0].station[i].tx_pkts - got[0].station[i - 1].tx_pkts <= 3);
		}
	CHECK(got[0].sent_bytes <= RECORDED_TICKS * 100);
	CHECK_EQ(got[0].missed, 2 * 4);
	replay_free(r);

	test("several APs: names of their own, phases of their own, the same rows");
	r = start(3, false);
	play(r, 10000000);
	CHECK_EQ(n_got, 3);
	CHECK(!strcmp(got[0].ap_id, "ap-0001") && !strcmp(got[2].ap_id, "ap-0003"));
	CHECK(got[0].boot_id == 40 && got[1].boot_id == 41);
	CHECK_EQ(got[1].first_t0_us - got[0].first_t0_us, 21 * 4000);
	CHECK_EQ(got[2].first_t0_us - got[0].first_t0_us, 42 * 4000);
	for (i = 0; i < 3; i++)
		CHECK_EQ(got[i].rows[OAL_PACKET], 2 * (RECORDED_TICKS - 2));
	replay_free(r);

	test("a damaged capture plays what is whole");
	{
		FILE *f = fopen(path, "r+b");

		fseek(f, 600, SEEK_SET);
		fputs("damage", f);
		fclose(f);
	}
	r = start(1, false);
	play(r, 10000000);
	replay_stats(r, &s);
	CHECK_EQ(s.breaks, 1);
	CHECK(got[0].rows[OAL_PACKET] > 2 * (RECORDED_TICKS - 70));
	replay_free(r);
}

/* What the lab recorded of a congested AP: real packets, losses, stations that come and go. */
static void test_lab(void)
{
	struct replay_config c = {
		.path = "../lab/captures/congested.oalcap", .ap_id = "ap", .boot_id = 1, .start_us = NOW_US,
		.emit = note,
	};
	uint64_t want[OAL_N_TABLES] = {0};
	struct capture_reader reader;
	struct capture_record r;
	struct batch_view v;
	struct replay *replay = NULL;
	char err[200];
	uint8_t *bytes;
	size_t len;
	unsigned t;

	test("a capture of the lab comes out as it went in, flows and drops derived anew included");
	CHECK_EQ(capture_load(c.path, &bytes, &len), 0);
	CHECK_EQ(capture_open(&reader, bytes, len), 0);
	while (capture_next(&reader, &r)) {
		CHECK_EQ(batch_decode(&v, r.topic, r.bytes, r.len, NULL, 0), BATCH_OK);
		for (t = 0; t < OAL_N_TABLES; t++)
			want[t] += v.n_rows[t];
	}
	free(bytes);
	n_got = 0;
	CHECK_EQ(replay_new(&replay, &c, err, sizeof err), 0);
	while (replay_advance(replay, NOW_US + UINT64_C(1000000000)))
		;
	CHECK_EQ(n_got, 1);
	CHECK(want[OAL_PACKET] > 10000 && want[OAL_FLOW] > 1000 && want[OAL_DROP_EVENT] > 100);
	for (t = 0; t < OAL_N_TABLES; t++)
		if (oal_tables[t].topic != OAL_TOPIC_EVENTS) /* those are of the exporter that recorded it */
			CHECK_EQ(got[0].rows[t], want[t]);
	replay_free(replay);
}

/* A daemon that plays many APs on a busy machine falls behind: it answered nobody until all of that was played. */
static void test_behind(void)
{
	struct oal_station_row wanted;
	struct replay *r = start(2, true);
	unsigned steps = 1;
	uint64_t rows;

	test("a replay that fell behind is played in steps, and nothing of it is lost");
	play(r, 3000000);
	replay_free(r);
	CHECK_EQ(n_got, 2);
	rows = got[1].rows[OAL_STATION];
	wanted = got[1].station[rows - 1];
	r = start(2, true);
	replay_step(r, NOW_US + 2996000);
	CHECK(replay_next_us(r) > NOW_US && replay_next_us(r) <= NOW_US + 2 * REPLAY_STEP_US);
	for (; replay_next_us(r) <= NOW_US + 2996000; steps++)
		replay_step(r, NOW_US + 2996000);
	CHECK(steps >= 2996000 / (REPLAY_STEP_US + 4000) && steps <= 2996000 / REPLAY_STEP_US + 1);
	replay_flush(r);
	CHECK_EQ(n_got, 2);
	CHECK_EQ(got[1].rows[OAL_STATION], rows);
	CHECK(!memcmp(&got[1].station[rows - 1], &wanted, sizeof wanted));
	replay_free(r);
}

/* --- pcap */

static void le16(struct frame *f, unsigned v) { frame_u8(f, v & 255); frame_u8(f, v >> 8); }
static void le32(struct frame *f, uint32_t v) { le16(f, v & 65535); le16(f, v >> 16); }
static void order32(struct frame *f, bool big, uint32_t v) { if (big) frame_u32(f, v); else le32(f, v); }
static void order16(struct frame *f, bool big, unsigned v) { if (big) frame_u16(f, v); else le16(f, v); }

static void classic(struct frame *f, bool big, bool nano, unsigned link)
{
	order32(f, big, nano ? 0xa1b23c4d : 0xa1b2c3d4);
	order16(f, big, 2); order16(f, big, 4);
	order32(f, big, 0); order32(f, big, 0); order32(f, big, 96); order32(f, big, link);
}

static void classic_packet(struct frame *f, bool big, uint32_t s, uint32_t fraction, const struct frame *k)
{
	const uint32_t caplen = k->len < 96 ? k->len : 96;

	order32(f, big, s); order32(f, big, fraction); order32(f, big, caplen); order32(f, big, k->len);
	frame_bytes(f, k->bytes, caplen);
}

/* Section, an Ethernet interface with nanoseconds, one of raw IP with 2^-20 s, and a packet of each; then a simple
 * packet. */
static void ng(struct frame *f, bool big)
{
	struct frame k = frame_simple(1, PACKET_SYN, NULL, 0, 0), ip = {.len = 0};
	const uint64_t t = UINT64_C(1700000000) * 1000000000 + 5000, t2 = (UINT64_C(1700000000) << 20) + 512 * 1024;

	frame_ipv4(&ip, 6, 20, 0);
	frame_tcp(&ip, 2, 3, PACKET_ACK, NULL, 0, 0);
	order32(f, big, 0x0a0d0d0a);
	order32(f, big, 28);
	order32(f, big, 0x1a2b3c4d);
	order16(f, big, 1);
	order16(f, big, 0);
	order32(f, big, UINT32_MAX); order32(f, big, UINT32_MAX); order32(f, big, 28);
	order32(f, big, 1); order32(f, big, 32); order16(f, big, 1); order16(f, big, 0); order32(f, big, 0);
	order16(f, big, 9);
	order16(f, big, 1);
	frame_bytes(f, "\11\0\0\0", 4);
	order16(f, big, 0);
	order16(f, big, 0);
	order32(f, big, 32);
	order32(f, big, 1); order32(f, big, 32); order16(f, big, 101); order16(f, big, 0); order32(f, big, 0);
	order16(f, big, 9);
	order16(f, big, 1);
	frame_bytes(f, "\224\0\0\0", 4);
	order16(f, big, 0);
	order16(f, big, 0);
	order32(f, big, 32);
	order32(f, big, 0x0bad); order32(f, big, 16); order32(f, big, 0); order32(f, big, 16); /* an unknown block */
	order32(f, big, 6);
	order32(f, big, 32 + 56);
	order32(f, big, 0);
	order32(f, big, (uint32_t)(t >> 32));
	order32(f, big, (uint32_t)t);
	order32(f, big, k.len);
	order32(f, big, k.len);
	frame_bytes(f, k.bytes, 54);
	frame_u16(f, 0);
	order32(f, big, 32 + 56);
	order32(f, big, 6);
	order32(f, big, 32 + 40);
	order32(f, big, 1);
	order32(f, big, (uint32_t)(t2 >> 32));
	order32(f, big, (uint32_t)t2);
	order32(f, big, ip.len); order32(f, big, ip.len); frame_bytes(f, ip.bytes, ip.len); order32(f, big, 32 + 40);
	order32(f, big, 3);
	order32(f, big, 16 + 56);
	order32(f, big, k.len);
	frame_bytes(f, k.bytes, 54);
	frame_u16(f, 0);
	order32(f, big, 16 + 56);
}

static void test_pcap_files(void)
{
	struct frame k = frame_simple(1, PACKET_SYN, NULL, 0, 700);
	struct pcap_network n;
	struct pcap_packet out;
	struct packet p;
	struct pcap pcap;
	unsigned i, cut;

	test("pcap files of both byte orders, with micro- and nanoseconds");
	for (i = 0; i < 4; i++) {
		struct frame f = {.len = 0};

		classic(&f, i & 1, i & 2, 1);
		classic_packet(&f, i & 1, 1700000000, i & 2 ? 123456789 : 123456, &k);
		classic_packet(&f, i & 1, 1700000001, 0, &k);
		CHECK_EQ(pcap_open(&pcap, f.bytes, f.len), 0);
		CHECK(pcap_next(&pcap, &out) && out.t_us == UINT64_C(1700000000123456) && out.caplen == 96 &&
		      out.wirelen == k.len && out.link == PACKET_LINK_ETHERNET);
		CHECK(pcap_next(&pcap, &out) && out.t_us == UINT64_C(1700000001000000));
		CHECK(!pcap_next(&pcap, &out) && !pcap.broken);
		/* Cut anywhere, it ends there. */
		for (cut = 0; cut < f.len; cut++) {
			uint8_t *copy = malloc(cut + 1);
			unsigned packets = 0;

			memcpy(copy, f.bytes, cut);
			CHECK_EQ(pcap_open(&pcap, copy, cut), cut < 24 ? -EINVAL : 0);
			while (cut >= 24 && pcap_next(&pcap, &out))
				packets++;
			CHECK_EQ(packets, cut < 24 + 112 ? 0 : 1);
			free(copy);
		}
	}
	test("pcapng files of both byte orders, each interface with its link type and resolution");
	for (i = 0; i < 2; i++) {
		struct frame f = {.len = 0};

		ng(&f, i);
		CHECK_EQ(pcap_open(&pcap, f.bytes, f.len), 0);
		CHECK(pcap_next(&pcap, &out) && out.t_us == UINT64_C(1700000000000005) &&
		      out.link == PACKET_LINK_ETHERNET && out.caplen == 54);
		CHECK(pcap_next(&pcap, &out) && out.t_us == UINT64_C(1700000000500000) &&
		      out.link == PACKET_LINK_RAW_IP && out.caplen == 40);
		CHECK(pcap_next(&pcap, &out) && out.t_us == UINT64_C(1700000000500000) &&
		      out.link == PACKET_LINK_ETHERNET);
		CHECK(!pcap_next(&pcap, &out) && !pcap.broken);
		for (cut = 24; cut < f.len; cut++) {
			uint8_t *copy = malloc(cut);

			memcpy(copy, f.bytes, cut);
			CHECK_EQ(pcap_open(&pcap, copy, cut), 0);
			while (pcap_next(&pcap, &out))
				;
			free(copy);
		}
	}
	test("an unknown link type is counted");
	{
		struct frame f = {.len = 0};

		classic(&f, false, false, 147);
		classic_packet(&f, false, 1, 2, &k);
		CHECK_EQ(pcap_open(&pcap, f.bytes, f.len), 0);
		CHECK(!pcap_next(&pcap, &out) && pcap.unknown_link == 1 && !pcap.broken);
	}
	test("networks of clients");
	CHECK_EQ(pcap_network_parse(&n, "10.0.0.0/15"), 0);
	memset(&p, 0, sizeof p);
	p.addr_len = 4;
	memcpy(p.src, "\12\1\2\3", 4);
	memcpy(p.dst, "\12\2\2\3", 4);
	CHECK_EQ(pcap_direction(&n, &p), 1);
	p.src[1] = 2;
	CHECK_EQ(pcap_direction(&n, &p), 2);
	p.dst[1] = 0;
	CHECK_EQ(pcap_direction(&n, &p), 0);
	CHECK_EQ(pcap_network_parse(&n, "2001:db8::/33"), 0);
	CHECK_EQ(pcap_direction(&n, &p), 2);
	CHECK(n.addr_len == 16 && n.bits == 33);
	CHECK(pcap_network_parse(&n, "10.0.0.1") == 0 && n.bits == 32);
	CHECK(pcap_network_parse(&n, "10.0.0.0/33") && pcap_network_parse(&n, "10.0.0/8") &&
	      pcap_network_parse(&n, "x") && pcap_network_parse(&n, "") && pcap_network_parse(&n, "10.0.0.0/") &&
	      pcap_network_parse(&n, "10.0.0.0/-1") && pcap_network_parse(&n, "10.0.0.0/8x"));
}

static void test_pcap_replay(void)
{
	static struct frame f;
	struct replay_config c = {.path = path, .ap_id = "ap", .boot_id = 1, .emit = note, .client_net = "10.0.0.0/40"};
	struct replay_stats s;
	struct replay *r;
	struct frame k;
	char err[200] = "";
	unsigned i;
	FILE *out;

	test("a pcap file is played through the packet path, also in a loop");
	f.len = 0;
	classic(&f, true, false, 1);
	k = frame_simple(1, PACKET_SYN, NULL, 0, 0);
	classic_packet(&f, true, 1700000000, 0, &k);
	for (i = 0; i < 20; i++) {
		k = frame_simple(2 + (i == 10 ? 9 : i) * 50, PACKET_ACK, NULL, 0, 50);
		classic_packet(&f, true, 1700000000, 10000 + i * 15000, &k);
	}
	k = frame_simple(1, PACKET_ACK, NULL, 0, 0);
	k.bytes[23] = 17;
	classic_packet(&f, true, 1700000000, 400000, &k);
	out = fopen(path, "wb");
	fwrite(f.bytes, 1, f.len, out);
	fclose(out);
	r = start(1, false);
	play(r, 1000000);
	replay_stats(r, &s);
	CHECK_EQ(got[0].rows[OAL_PACKET], 21);
	CHECK_EQ(got[0].packet_us[20] - got[0].packet_us[1], 19 * 15000);
	CHECK_EQ(got[0].packet[0].direction, 1);
	CHECK_EQ(got[0].retrans_pkts, 1);
	CHECK_EQ(got[0].sent_bytes, 1000);
	CHECK_EQ(s.pipeline.packets_skipped, 1);
	replay_free(r);
	r = start(2, true);
	play(r, 2000000);
	CHECK(got[0].rows[OAL_PACKET] >= 21 * 3 && got[0].retrans_pkts == 1 && got[0].n_ports >= 3);
	replay_free(r);

	test("what cannot be played is refused with the reason");
	CHECK_EQ(replay_new(&r, &c, err, sizeof err), -EINVAL);
	CHECK(strstr(err, "10.0.0.0/40"));
	c.client_net = NULL;
	c.path = "build/no-such-file";
	CHECK_EQ(replay_new(&r, &c, err, sizeof err), -ENOENT);
	CHECK(strstr(err, "no-such-file"));
	c.path = "tests/test_replay.c";
	CHECK_EQ(replay_new(&r, &c, err, sizeof err), -EINVAL);
	CHECK(strstr(err, "neither a capture"));
	c.path = path;
	out = fopen(path, "wb");
	fwrite(capture_magic, 1, sizeof capture_magic, out);
	fclose(out);
	CHECK_EQ(replay_new(&r, &c, err, sizeof err), -EINVAL);
	c.aps = 100000;
	CHECK_EQ(replay_new(&r, &c, err, sizeof err), -EINVAL);
}

int main(void)
{
	const int fd = mkstemp(path);

	if (fd < 0) {
		printf("# cannot make a file in build/: run from ap-exporter/\n");
		return 1;
	}
	close(fd);
	test_capture();
	test_behind();
	test_lab();
	test_pcap_files();
	test_pcap_replay();
	unlink(path);
	return done();
}
