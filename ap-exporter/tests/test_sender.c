/* test_sender.c: connections of this host: what the kernel says of them, which are followed, what becomes of them. */
#include "check.h"
#include "packet/pcap.h"
#include "pipeline/pipeline.h"
#include "sender/connections.h"
#include "sender/inet_diag.h"
#include "sender/sender_filter.h"
#include "wire/batch_decode.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/tcp.h>
#include <sys/socket.h>

static const uint64_t START_US = UINT64_C(1800000000000000);

/* --- what the kernel says */

/* A message's payload as the kernel makes it. */
struct said {
	_Alignas(8) uint8_t bytes[1024];
	uint32_t len;
};

static struct said of_socket(const char *near, const char *far, uint16_t near_port, uint16_t far_port, uint64_t cookie)
{
	const int family = strchr(near, ':') ? AF_INET6 : AF_INET;
	struct inet_diag_msg m = {.idiag_family = (uint8_t)family, .idiag_state = 1};
	struct said s = {.len = sizeof m};

	inet_pton(family, near, m.id.idiag_src);
	inet_pton(family, far, m.id.idiag_dst);
	m.id.idiag_sport = htons(near_port);
	m.id.idiag_dport = htons(far_port);
	m.id.idiag_cookie[0] = (uint32_t)cookie;
	m.id.idiag_cookie[1] = (uint32_t)(cookie >> 32);
	memcpy(s.bytes, &m, sizeof m);
	return s;
}

static void put(struct said *s, uint16_t type, const void *data, uint16_t len)
{
	const uint16_t head[2] = {(uint16_t)(4 + len), type};

	memcpy(s->bytes + s->len, head, sizeof head);
	memcpy(s->bytes + s->len + 4, data, len);
	s->len += NLMSG_ALIGN(4u + len);
}

static struct tcp_info info(void)
{
	return (struct tcp_info){.tcpi_state = 1, .tcpi_snd_mss = 1448, .tcpi_snd_cwnd = 10,
		.tcpi_snd_ssthresh = 0x7fffffff, .tcpi_rtt = 20000, .tcpi_rttvar = 3000, .tcpi_min_rtt = 19000,
		.tcpi_pacing_rate = UINT64_MAX, .tcpi_delivery_rate = 1000, .tcpi_bytes_acked = 5000,
		.tcpi_segs_out = 9, .tcpi_segs_in = 8, .tcpi_total_retrans = 2, .tcpi_delivered = 7,
		.tcpi_delivered_ce = 1, .tcpi_busy_time = 70, .tcpi_reord_seen = 3, .tcpi_reordering = 4};
}

static struct sender_look look(const char *far, uint16_t port, uint64_t cookie, const struct tcp_info *i)
{
	struct said s = of_socket(strchr(far, ':') ? "2001:db8::1" : "192.0.2.1", far, 443, port, cookie);
	struct sender_look l = {0};

	put(&s, INET_DIAG_INFO, i, sizeof *i);
	put(&s, INET_DIAG_CONG, "cubic", 6);
	CHECK(inet_diag_parse(s.bytes, s.len, &l));
	return l;
}

static void check_parse(void)
{
	struct tcp_info i = info();
	struct sender_look l;
	struct said s;
	uint32_t len;

	test("a connection's message is read: ends, congestion control, and numbers in the contract's units");
	l = look("198.51.100.7", 50000, 0x100000002, &i);
	CHECK_EQ(l.cookie, 0x100000002);
	CHECK(l.flow.addr_len == 4 && l.flow.near_port == 443 && l.flow.far_port == 50000 && l.flow.far[3] == 7);
	CHECK(!strcmp(l.control, "cubic") && !l.loopback);
	CHECK_EQ(l.row.cwnd_bytes, 14480);
	CHECK_EQ(l.row.ssthresh_bytes, UINT32_MAX);
	CHECK_EQ(l.row.delivery_rate_bps, 8000);
	CHECK_EQ(l.row.pacing_rate_bps, INT64_MAX);
	CHECK(l.row.delivered_ce_pkts == 1 && !l.row.absent && l.has_reorderings && l.reorderings == 3);

	test("what is more than a column holds is as much as it holds, and no round trip is 0");
	i.tcpi_snd_ssthresh = 0x7ffffffe;
	i.tcpi_min_rtt = UINT32_MAX;
	l = look("198.51.100.7", 50000, 1, &i);
	CHECK_EQ(l.row.ssthresh_bytes, UINT32_MAX - 1);
	CHECK_EQ(l.row.min_rtt_us, 0);

	test("a kernel that says less: what it does not say is absent, not 0");
	i = info();
	s = of_socket("192.0.2.1", "198.51.100.7", 443, 50000, 1);
	put(&s, INET_DIAG_INFO, &i, offsetof(struct tcp_info, tcpi_delivered));
	CHECK(inet_diag_parse(s.bytes, s.len, &l));
	CHECK_EQ(l.row.absent, OAL_SENDER_TCP_ABSENT_DELIVERED_PKTS | OAL_SENDER_TCP_ABSENT_DELIVERED_CE_PKTS);
	CHECK(!l.has_reorderings && l.busy_us == 70);

	test("IPv4 in a socket of IPv6 is IPv4, as an access point on the way sees it");
	s = of_socket("::ffff:192.0.2.1", "::ffff:198.51.100.7", 443, 50000, 1);
	put(&s, INET_DIAG_INFO, &i, sizeof i);
	CHECK(inet_diag_parse(s.bytes, s.len, &l));
	CHECK(l.flow.addr_len == 4 && l.flow.near[0] == 192 && l.flow.far[0] == 198);
	s = of_socket("2001:db8::1", "2001:db8::2", 443, 50000, 1);
	put(&s, INET_DIAG_INFO, &i, sizeof i);
	CHECK(inet_diag_parse(s.bytes, s.len, &l) && l.flow.addr_len == 16);

	test("a message that is cut short, or says nothing of a connection, is left out");
	for (len = 0; len < s.len; len++)
		CHECK(!inet_diag_parse(s.bytes, len, &l));
	s = of_socket("0.0.0.0", "0.0.0.0", 443, 0, 1); /* a listener */
	put(&s, INET_DIAG_INFO, &i, sizeof i);
	CHECK(!inet_diag_parse(s.bytes, s.len, &l));
}

/* --- which are followed */

static void check_filter(void)
{
	const struct tcp_info i = info();
	const struct sender_look far = look("198.51.100.7", 50000, 1, &i), six = look("2001:db8::7", 50000, 1, &i),
				 self = look("127.0.0.1", 50000, 1, &i);
	struct sender_filter f;

	test("connections are followed by this host's port and the far end's network; with itself only if it is said");
	CHECK(!sender_filter_parse(&f, "", "", false));
	CHECK(sender_filter_takes(&f, &far) && sender_filter_takes(&f, &six) && !sender_filter_takes(&f, &self));
	CHECK(!sender_filter_parse(&f, "80, 443", "", true));
	CHECK(sender_filter_takes(&f, &far) && sender_filter_takes(&f, &self));
	CHECK(!sender_filter_parse(&f, "80", "", false) && !sender_filter_takes(&f, &far));
	CHECK(!sender_filter_parse(&f, "443", "10.0.0.0/8,198.51.100.0/24", false));
	CHECK(sender_filter_takes(&f, &far) && !sender_filter_takes(&f, &six));
	CHECK(!sender_filter_parse(&f, "", "2001:db8::/32", false));
	CHECK(!sender_filter_takes(&f, &far) && sender_filter_takes(&f, &six));

	test("a list with a mistake is refused");
	CHECK(sender_filter_parse(&f, "0", "", false) && sender_filter_parse(&f, "65536", "", false) &&
	      sender_filter_parse(&f, "http", "", false) && sender_filter_parse(&f, "80x", "", false));
	CHECK(sender_filter_parse(&f, "", "10.0.0.0/33", false) && sender_filter_parse(&f, "", "here", false));
}

/* --- what becomes of them */

static void check_connections(void)
{
	struct connections *c = NULL;
	struct tcp_info i = info();
	struct sender_look l = look("198.51.100.7", 50000, 5, &i), other = look("198.51.100.8", 50000, 6, &i);
	struct sender_end end;
	unsigned at = 0, n;

	test("a look is news when it is the first, or differs in more than what ACKs count");
	CHECK_EQ(connections_new(&c, 2), 0);
	CHECK_EQ(connections_look(c, &l, 1000000, 1), CONNECTIONS_CHANGED);
	CHECK_EQ(connections_look(c, &l, 1100000, 2), CONNECTIONS_SAME);
	i.tcpi_segs_out++;
	l = look("198.51.100.7", 50000, 5, &i);
	CHECK_EQ(connections_look(c, &l, 1200000, 3), CONNECTIONS_SAME);
	i.tcpi_lost = 1;
	l = look("198.51.100.7", 50000, 5, &i);
	CHECK_EQ(connections_look(c, &l, 1300000, 4), CONNECTIONS_CHANGED);
	memcpy(l.control, "reno", 5);
	CHECK_EQ(connections_look(c, &l, 1400000, 5), CONNECTIONS_CHANGED);

	test("beyond the most that are followed a connection is not, and the others go on");
	CHECK_EQ(connections_look(c, &other, 1400000, 5), CONNECTIONS_CHANGED);
	other = look("198.51.100.9", 50000, 7, &i);
	CHECK_EQ(connections_look(c, &other, 1400000, 5), CONNECTIONS_FULL);
	CHECK_EQ(connections_count(c), 2);

	test("a round that misses a connection proves nothing, two rounds do: its sums are of the last look");
	CHECK_EQ(connections_look(c, &l, 1500000, 6), CONNECTIONS_SAME);
	CHECK(!connections_missed(c, &at, 6, &end));
	CHECK_EQ(connections_look(c, &l, 1600000, 7), CONNECTIONS_SAME);
	at = 0;
	CHECK(connections_missed(c, &at, 7, &end));
	CHECK(end.flow.far[3] == 8 && end.row.end_known == SENDER_END_MISSED && end.row.seen_us == 0);
	CHECK(!connections_missed(c, &at, 7, &end));
	CHECK_EQ(connections_count(c), 1);

	test("an end that the kernel tells has its last numbers, and what the looks amount to");
	i.tcpi_bytes_acked = 9000;
	i.tcpi_rtt = 30000;
	l = look("198.51.100.7", 50000, 5, &i);
	l.control[0] = '\0'; /* it says none at the end */
	CHECK(connections_end(c, &l, 1700000, &end));
	CHECK(!strcmp(end.control, "reno") && end.row.end_known == SENDER_END_TOLD && !end.row.absent);
	CHECK_EQ(end.row.bytes_acked, 9000);
	CHECK_EQ(end.row.seen_us, 700000);
	CHECK_EQ(end.row.rtt_looks, 7);
	CHECK(end.row.rtt_min_us == 20000 && end.row.rtt_mean_us == 20000 && end.row.rtt_p95_us == 20000);
	CHECK(end.row.rtt_us == 30000 && end.row.reorderings == 3 && end.row.reordering_pkts == 4);

	test("a look that was under way at the end does not bring the connection back");
	CHECK_EQ(connections_look(c, &l, 1800000, 8), CONNECTIONS_SAME);
	CHECK_EQ(connections_count(c), 0);

	test("a connection that was over before the first look has an end, without what only looks say");
	l = look("198.51.100.7", 50001, 8, &i);
	l.control[0] = '\0';
	CHECK(connections_end(c, &l, 1800000, &end));
	CHECK(!end.control[0] && end.row.absent & OAL_SENDER_SESSION_ABSENT_SEEN_US &&
	      end.row.absent & OAL_SENDER_SESSION_ABSENT_RTT_P95_US && end.row.bytes_acked == 9000);

	test("one that nobody ever answered was none");
	i.tcpi_segs_in = 0;
	l = look("198.51.100.7", 50002, 9, &i);
	CHECK(!connections_end(c, &l, 1800000, &end));

	test("the 95th percentile of round trips is within 11 percent, from 64 us to 8 s, over any number of looks");
	i = info();
	for (unsigned scale = 0; scale < 4; scale++) {
		const uint64_t cookie = 100 + scale;
		const unsigned looks = scale == 3 ? 200000 : 1000;

		for (n = 0; n < looks; n++) {
			i.tcpi_rtt = (uint32_t[]){70, 2000, 50000, 900000}[scale] * (1 + n % 100) / 20;
			l = look("198.51.100.7", 50003, cookie, &i);
			connections_look(c, &l, n, 10);
		}
		CHECK(connections_end(c, &l, n, &end));
		i.tcpi_rtt = (uint32_t[]){70, 2000, 50000, 900000}[scale] * 95 / 20;
		CHECK(end.row.rtt_p95_us > i.tcpi_rtt * .87 && end.row.rtt_p95_us < i.tcpi_rtt * 1.13);
		CHECK_EQ(end.row.rtt_looks, looks);
	}
	connections_free(c);
}

/* --- their rows */

static struct {
	uint8_t bytes[8][65536];
	size_t len[8];
	unsigned n;
} sink;

static void emit(void *ctx, const struct batch_out *b)
{
	(void)ctx;
	if (b->topic != OAL_TOPIC_PACKETS || sink.n == 8)
		return;
	memcpy(sink.bytes[sink.n], b->bytes, b->len);
	sink.len[sink.n++] = b->len;
}

static int64_t last_prefix; /* of a session, as a policy about destinations sees it */

static void on_session(void *ctx, const struct sender_flow *f, const struct oal_sender_session_row *row, uint64_t t_us)
{
	last_prefix = row->client_prefix;
}

static struct pipeline *start(unsigned max, const uint8_t *key)
{
	const struct pipeline_config c = {.ap_id = "host-1", .boot_id = 7, .max_senders = max, .pseudonym_key = key,
		.pseudonym_key_len = key ? 16 : 0, .emit = emit, .consumer = {.session = on_session}};
	struct pipeline *p = NULL;

	sink.n = 0;
	CHECK_EQ(pipeline_new(&p, &c), 0);
	return p;
}

/* The first batch's dictionary and rows. */
static unsigned first_batch(struct batch_flow *flows, struct oal_sender_tcp_row *tcp, unsigned *n_tcp,
			    struct oal_sender_session_row *session, unsigned *n_session)
{
	struct batch_view v;
	struct batch_flow_cursor fc;
	struct batch_cursor c;
	unsigned n = 0;

	CHECK(sink.n >= 1);
	CHECK_EQ(batch_decode(&v, OAL_TOPIC_PACKETS, sink.bytes[0], sink.len[0], "host-1", START_US), BATCH_OK);
	for (batch_flows(&fc, &v); batch_next_flow(&fc, &flows[n]);)
		n++;
	*n_tcp = *n_session = 0;
	for (batch_rows(&c, &v, OAL_SENDER_TCP); batch_next_row(&c, &tcp[*n_tcp]);)
		++*n_tcp;
	for (batch_rows(&c, &v, OAL_SENDER_SESSION); batch_next_row(&c, &session[*n_session]);)
		++*n_session;
	return n;
}

static void check_rows(void)
{
	static const uint8_t key[16] = {1, 2, 3};
	struct tcp_info i = info();
	struct sender_look l = look("198.51.100.7", 50000, 5, &i), six = look("fd00:1::7", 50001, 6, &i);
	struct oal_sender_session_row session[8], ended = {.end_known = 1};
	struct oal_sender_tcp_row tcp[64];
	struct batch_flow flows[64], ap = {.addr_len = 4, .protocol = 6, .client_port = 50000, .server_port = 443};
	struct pipeline *p = start(4, NULL);
	struct pipeline_stats stats;
	unsigned n, n_tcp, n_session;

	test("a connection's rows name it as an access point on the way does: the far end is the client");
	memcpy(ap.client_addr, l.flow.far, 4);
	memcpy(ap.server_addr, l.flow.near, 4);
	pipeline_tick(p, START_US, 0, 0);
	pipeline_sender_row(p, OAL_SENDER_TCP, &l.flow, "cubic", &l.row);
	pipeline_sender_row(p, OAL_SENDER_TCP, &six.flow, "bbr", &six.row);
	pipeline_sender_row(p, OAL_SENDER_SESSION, &six.flow, "bbr", &ended);
	pipeline_tick(p, START_US + 4000, 0, 0);
	pipeline_sender_row(p, OAL_SENDER_TCP, &l.flow, "cubic", &l.row);
	pipeline_sender_row(p, OAL_SENDER_SESSION, &l.flow, "cubic", &ended);
	pipeline_flush(p);
	n = first_batch(flows, tcp, &n_tcp, session, &n_session);
	CHECK_EQ(n, 2);
	CHECK(n_tcp == 3 && n_session == 2);
	CHECK(flows[tcp[0].flow].flow_id == batch_flow_id(&ap) && tcp[0].tick == 0 && tcp[1].tick == 1);
	CHECK(flows[tcp[0].flow].client_port == 50000 && flows[tcp[2].flow].addr_len == 16);
	CHECK(flows[session[1].flow].flow_id == batch_flow_id(&ap));
	CHECK_EQ(session[1].client_prefix, 198 << 16 | 51 << 8 | 100);
	CHECK_EQ(session[0].client_prefix, (int64_t)UINT64_C(0xfd00000100000000));

	test("places are used anew when a batch without their connection has ended; without one a row is counted");
	for (n = 0; n < 200; n++) {
		pipeline_tick(p, START_US + 8000 + 4000 * n, 0, 0);
		l.flow.far_port = (uint16_t)(60000 + n / 50);
		pipeline_sender_row(p, OAL_SENDER_TCP, &l.flow, "cubic", &l.row);
	}
	pipeline_stats(p, &stats);
	CHECK_EQ(stats.entities_refused, 0);
	for (n = 0; n < 5; n++) {
		l.flow.far_port = (uint16_t)(61000 + n);
		pipeline_sender_row(p, OAL_SENDER_TCP, &l.flow, "cubic", &l.row);
	}
	pipeline_stats(p, &stats);
	CHECK(stats.entities_refused >= 1 && stats.entities_refused == stats.rows_dropped);
	pipeline_free(p);

	test("a data path that is told of no such connections takes none");
	p = start(0, NULL);
	pipeline_tick(p, START_US, 0, 0);
	pipeline_sender_row(p, OAL_SENDER_TCP, &l.flow, "cubic", &l.row);
	pipeline_stats(p, &stats);
	CHECK_EQ(stats.rows_dropped, 1);

	test("a policy sees the network of a connection whose row has no room, too");
	ended.client_prefix = last_prefix = 0;
	pipeline_sender_row(p, OAL_SENDER_SESSION, &l.flow, "cubic", &ended);
	CHECK_EQ(last_prefix, 198 << 16 | 51 << 8 | 100);
	pipeline_free(p);

	test("with a key, addresses and networks are pseudonyms, and those of one network are alike");
	p = start(8, key);
	pipeline_tick(p, START_US, 0, 0);
	l = look("198.51.100.7", 50000, 5, &i);
	pipeline_sender_row(p, OAL_SENDER_SESSION, &l.flow, "cubic", &ended);
	l = look("198.51.100.8", 50000, 5, &i);
	pipeline_sender_row(p, OAL_SENDER_SESSION, &l.flow, "cubic", &ended);
	l = look("198.51.101.8", 50000, 5, &i);
	pipeline_sender_row(p, OAL_SENDER_SESSION, &l.flow, "cubic", &ended);
	pipeline_flush(p);
	CHECK_EQ(first_batch(flows, tcp, &n_tcp, session, &n_session), 3);
	CHECK_EQ(session[0].client_prefix, session[1].client_prefix);
	CHECK(session[0].client_prefix != session[2].client_prefix);
	CHECK(session[0].client_prefix != (198 << 16 | 51 << 8 | 100));
	for (n = 0; n < 256; n++) { /* rows of `action` have no highest bit: both name a network alike */
		l.flow.far[0] = (uint8_t)n;
		pipeline_sender_row(p, OAL_SENDER_SESSION, &l.flow, "cubic", &ended);
		CHECK(last_prefix >= 1 << 24 && !((uint64_t)last_prefix >> 62));
	}
	CHECK(memcmp(flows[session[0].flow].client_addr, (uint8_t[]){198, 51, 100, 7}, 4) != 0);
	pipeline_free(p);
}

int main(void)
{
	check_parse();
	check_filter();
	check_connections();
	check_rows();
	return done();
}
