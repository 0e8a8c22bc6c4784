/* test_peers.c: what the push service says of the other APs of a site (peers), from JSON of any kind to rows of the
 * table neighbour_ap. */
#include "base/json_read.h"
#include "agent/peer_list.h"
#include "agent/peers.h"

#include "wire/batch_decode.h"
#include "check.h"
#include "pipeline/pipeline.h"

#include <pthread.h>

enum { TICK_US = 4000, MOST_ROWS = 4096 };
static const uint64_t START_US = UINT64_C(1800000000000000);

/* --- JSON */

static bool skips(const char *text)
{
	struct json_reader r;

	json_read_begin(&r, text, strlen(text));
	json_read_skip(&r);
	return json_read_end(&r);
}

static bool number(const char *text, uint64_t most, uint64_t *out)
{
	struct json_reader r;

	json_read_begin(&r, text, strlen(text));
	return json_read_number(&r, most, out) && json_read_end(&r);
}

static bool text_is(const char *json, const char *want, size_t room)
{
	struct json_reader r;
	char out[64];

	json_read_begin(&r, json, strlen(json));
	return json_read_text(&r, out, room) && json_read_end(&r) && !strcmp(out, want);
}

static void json_strict(void)
{
	static const char *const good[] = {"{}",
	                                   "[]",
	                                   " [ 1 , -2.5e+3, 0, 0.5, true,false , null, \"\" ] ",
	                                   "{\"a\":{\"b\":[{}]}}",
	                                   "\"\\u0041\\ud83d\\ude00\\n\"",
	                                   "1E9",
	                                   "[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]"};
	static const char *const bad[] = {"",
	                                  " ",
	                                  "{",
	                                  "}",
	                                  "[",
	                                  "[1,]",
	                                  "[,1]",
	                                  "[1 2]",
	                                  "{\"a\"}",
	                                  "{\"a\":}",
	                                  "{\"a\":1,}",
	                                  "{a:1}",
	                                  "{1:1}",
	                                  "01",
	                                  "-",
	                                  "1.",
	                                  ".5",
	                                  "1e",
	                                  "+1",
	                                  "tru",
	                                  "True",
	                                  "nul",
	                                  "\"",
	                                  "\"\\\"",
	                                  "\"\\x\"",
	                                  "\"\\u12\"",
	                                  "\"\\ud800\"",
	                                  "\"\\ud800\\u0041\"",
	                                  "\"\\udc00\"",
	                                  "\"\n\"",
	                                  "[]]",
	                                  "1 1",
	                                  "[}",
	                                  "{]",
	                                  "[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]"};
	unsigned i;

	test("JSON is read as the standard has it, and no deeper than it may be");
	for (i = 0; i < sizeof good / sizeof good[0]; i++)
		if (!skips(good[i]))
			printf("# refused: %s\n", good[i]), check_errors++;
	for (i = 0; i < sizeof bad / sizeof bad[0]; i++)
		if (skips(bad[i]))
			printf("# taken: %s\n", bad[i]), check_errors++;
	CHECK(!skips("\xff"));
}

static void json_values(void)
{
	uint64_t v = 9;

	test("numbers are whole, in range and plain; texts fit and hold no zero");
	CHECK(number("0", 0, &v) && v == 0);
	CHECK(number("255", 255, &v) && v == 255);
	CHECK(number("18446744073709551615", UINT64_MAX, &v) && v == UINT64_MAX);
	CHECK(!number("256", 255, &v) && !number("1000", 255, &v) && !number("18446744073709551616", UINT64_MAX, &v) &&
	      !number("99999999999999999999999", UINT64_MAX, &v));
	CHECK(!number("-1", 255, &v) && !number("1.0", 255, &v) && !number("1e1", 255, &v) && !number("00", 255, &v) &&
	      !number("07", 255, &v) && !number("\"1\"", 255, &v));
	CHECK(!number("8", 7, &v) && !number("9", 0, &v));
	CHECK(text_is("\"abc\"", "abc", 4) && !text_is("\"abc\"", "abc", 3) &&
	      text_is("\"\\u00e9\\u20ac\\/\"", "\xc3\xa9\xe2\x82\xac/", 16));
	CHECK(!text_is("\"a\\u0000b\"", "a", 16) && !text_is("1", "1", 16));
}

/* --- lists */

#define AP(id, n) \
	"{\"ap_id\":\"" id "\",\"stations\":" n ",\"tx_kbps\":2,\"tx_airtime_permille\":3,\"busy_permille\":4,\"loss_" \
	                                        "permille\":5,\"backlog_bytes\":6,\"age_ms\":7}"
#define OF(aps) "{\"site\":\"lab\",\"frequency_mhz\":5180,\"t_us\":1,\"aps\":[" aps "]}"

static int read_list(struct peer_list *l, const char *json)
{
	char err[160] = "";
	const int r = peer_list_read(l, json, strlen(json), "me", "lab", 5180, err, sizeof err);

	CHECK(r == 0 || (err[0] && !l->n));
	return r;
}

static void lists(void)
{
	struct peer_list l;

	test("a list of peers is read: order and figures as told, this AP left out, what is not known passed over");
	CHECK_EQ(read_list(&l, OF(AP("b", "1") "," AP("me", "8") "," AP("a-2._X", "65535"))), 0);
	CHECK_EQ(l.n, 2);
	CHECK_EQ(l.rows[0].neighbour, peer_id("b"));
	CHECK_EQ(l.rows[1].neighbour, peer_id("a-2._X"));
	CHECK(l.rows[0].frequency_mhz == 5180 && l.rows[0].stations == 1 && l.rows[0].tx_kbps == 2 &&
	      l.rows[0].tx_airtime_permille == 3 && l.rows[0].busy_permille == 4 && l.rows[0].loss_permille == 5 &&
	      l.rows[0].backlog_bytes == 6 && l.rows[0].age_ms == 7 && l.rows[1].stations == 65535);
	CHECK_EQ(read_list(&l, OF("")), 0);
	CHECK_EQ(l.n, 0);
	CHECK_EQ(read_list(&l, "{\"x\":[{\"aps\":1}],\"aps\":[{\"new\":{\"y\":[null]},\"ap_id\":\"b\",\"age_ms\":"
	                       "4294967295,\"backlog_bytes\":4294967295,\"loss_permille\":0,"
	                       "\"busy_permille\":0,\"tx_airtime_permille\":0,\"tx_kbps\":0,\"stations\":0}],"
	                       "\"frequency_mhz\":5180,\"site\":\"lab\"}"),
	         0);
	CHECK(l.n == 1 && l.rows[0].age_ms == UINT32_MAX && l.rows[0].backlog_bytes == UINT32_MAX);
	/* FNV-1a of "a" is af63dc4c8601ec8c; the highest bit is left out. */
	CHECK_EQ(peer_id("a"), UINT64_C(0x2f63dc4c8601ec8c));
	CHECK_EQ(peer_id(""), UINT64_C(0x4bf29ce484222325));
}

static void bad_lists(void)
{
	static const char *const bad[] = {
		"",
		"null",
		"[]",
		"{}",
		"{\"aps\":[]}",
		"{\"site\":\"lab\",\"frequency_mhz\":5180}",
		"{\"site\":\"lab\",\"aps\":[]}",
		"{\"frequency_mhz\":5180,\"aps\":[]}",
		"{\"site\":\"hall\",\"frequency_mhz\":5180,\"aps\":[]}",
		"{\"site\":\"lab\",\"frequency_mhz\":2412,\"aps\":[]}",
		"{\"site\":7,\"frequency_mhz\":5180,\"aps\":[]}",
		"{\"site\":\"lab\",\"frequency_mhz\":5180,\"aps\":{}}",
		OF("1"),
		OF("{}"),
		OF("[]"),
		OF("null"),
		OF(AP("", "1")),
		OF(AP("a b", "1")),
		OF(AP("a\\u0000", "1")),
		OF(AP("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "1")),
		OF(AP("b", "-1")),
		OF(AP("b", "65536")),
		OF(AP("b", "1.5")),
		OF(AP("b", "\"1\"")),
		OF(AP("b", "null")),
		OF(AP("b", "1") "," AP("b", "2")),
		OF(AP("b", "1")) "x",
		OF(AP("b", "1") ","),
		"{\"site\":\"lab\",\"frequency_mhz\":5180,\"aps\":[],\"aps\":[]}",
		OF("{\"ap_id\":\"b\",\"stations\":1}")};
	static const char whole[] = OF(AP("b", "1") "," AP("c", "2"));
	static char many[PEER_LIST_BYTES + 2], end[PEER_LIST_BYTES + 16];
	struct peer_list l;
	char one[256];
	unsigned i;

	test("a list that is damaged, of another channel, too long or out of range is refused whole, with a reason");
	for (i = 0; i < sizeof bad / sizeof bad[0]; i++)
		if (!read_list(&l, bad[i]))
			printf("# taken: %s\n", bad[i]), check_errors++;
	for (i = 0; i < sizeof whole - 1; i++) {
		memcpy(many, whole, i);
		many[i] = '\0';
		CHECK(read_list(&l, many) != 0); /* cut anywhere */
	}
	strcpy(many, "{\"site\":\"lab\",\"frequency_mhz\":5180,\"aps\":[");
	for (i = 0; i <= PEER_LIST_MAX; i++) {
		snprintf(one, sizeof one,
		         "%s{\"ap_id\":\"n%u\",\"stations\":1,\"tx_kbps\":2,\"tx_airtime_permille\":3,\"busy_"
		         "permille\":4,\"loss_permille\":5,\"backlog_bytes\":6,\"age_ms\":7}",
		         i ? "," : "", i);
		strcat(many, one);
		snprintf(end, sizeof end, "%s]}", many);
		CHECK_EQ(read_list(&l, end) != 0, i == PEER_LIST_MAX);
		CHECK_EQ(l.n, i == PEER_LIST_MAX ? 0 : i + 1);
	}
	memset(many, ' ', sizeof many - 1);
	many[sizeof many - 1] = '\0';
	memcpy(many, OF(""), sizeof OF("") - 1);
	CHECK(read_list(&l, many) != 0);
	many[PEER_LIST_BYTES] = '\0';
	CHECK_EQ(read_list(&l, many), 0);
}

/* --- to rows */

static struct world {
	struct pipeline *pipeline;
	struct peers peers;
	uint64_t due_us, now_us;
	unsigned changes, n_rows;
	struct oal_neighbour_ap_row rows[MOST_ROWS];
	uint64_t row_us[MOST_ROWS];
} w;

static uint64_t now_ns(void)
{
	return w.now_us * 1000;
}

static void on_batch(void *ctx, const struct batch_out *b)
{
	struct batch_cursor c;
	struct batch_view v;

	if (b->topic != OAL_TOPIC_SAMPLES)
		return;
	CHECK_EQ(batch_decode(&v, b->topic, b->bytes, b->len, "ap-1", b->t0_us), BATCH_OK);
	for (batch_rows(&c, &v, OAL_NEIGHBOUR_AP); w.n_rows < MOST_ROWS && batch_next_row(&c, &w.rows[w.n_rows]);
	     w.n_rows++)
		w.row_us[w.n_rows] = b->t0_us + (uint64_t)w.rows[w.n_rows].tick * TICK_US;
}

static void on_tick(void *ctx)
{
	w.changes += peers_tick(&w.peers, w.pipeline, now_ns);
}

static void begin(void)
{
	const struct pipeline_config c = {
		.ap_id = "ap-1", .site = "lab", .boot_id = 1, .emit = on_batch, .consumer = {.begin_tick = on_tick},
	};

	memset(&w, 0, sizeof w);
	w.due_us = START_US;
	w.now_us = 1000000;
	peers_init(&w.peers);
	CHECK_EQ(pipeline_new(&w.pipeline, &c), 0);
}

static void ticks(unsigned n)
{
	for (; n; n--, w.due_us += TICK_US, w.now_us += TICK_US)
		pipeline_tick(w.pipeline, w.due_us, 0, 0);
}

static void end(void)
{
	pipeline_flush(w.pipeline);
	pipeline_free(w.pipeline);
}

static struct oal_neighbour_ap_row row_of(uint64_t neighbour, uint16_t mhz, uint32_t kbps)
{
	return (struct oal_neighbour_ap_row){
		.neighbour = neighbour, .frequency_mhz = mhz, .stations = 1, .tx_kbps = kbps, .backlog_bytes = kbps,
		.age_ms = 500,
	};
}

static void tell(unsigned n, const struct oal_neighbour_ap_row rows[])
{
	struct peers_snapshot *t = peers_draft(&w.peers);
	unsigned i;

	t->list.n = n;
	for (i = 0; i < n; i++) {
		t->list.rows[i] = rows[i];
		t->at_us[i] = w.now_us;
	}
	peers_publish(&w.peers);
}

/* Rows of a peer from `from_us` on. */
static unsigned rows_of(uint64_t neighbour, uint64_t from_us)
{
	unsigned i, n = 0;

	for (i = 0; i < w.n_rows; i++)
		n += w.rows[i].neighbour == neighbour && w.row_us[i] >= from_us;
	return n;
}

static void radios(void)
{
	struct oal_channel_row c = {.frequency_mhz = 5180};
	uint16_t mhz[PEER_RADIOS] = {0};
	unsigned i;

	test("the radios' channels are told within a second: each once, four at most, gone when they leave");
	begin();
	ticks(300);
	CHECK_EQ(peers_frequencies(&w.peers, mhz), 0);
	CHECK_EQ(w.changes, 0);
	for (i = 0; i < 6; i++) {
		c.device = pipeline_name(w.pipeline,
		                         (const char *[]){"wlan0", "wlan0-1", "wlan1", "wlan2", "wlan3", "wlan4"}[i]);
		c.frequency_mhz = (uint16_t[]){5180, 5180, 2412, 5955, 5500, 5745}[i];
		pipeline_row(w.pipeline, OAL_CHANNEL, &c);
	}
	ticks(251);
	CHECK_EQ(peers_frequencies(&w.peers, mhz), 4);
	CHECK(mhz[0] == 5180 && mhz[1] == 2412 && mhz[2] == 5955 && mhz[3] == 5500);
	CHECK_EQ(w.changes, 1);
	ticks(1000);
	CHECK_EQ(w.changes, 1);
	c.device = pipeline_name(w.pipeline, "wlan1");
	c.frequency_mhz = 2412;
	pipeline_gone(w.pipeline, OAL_CHANNEL, &c);
	ticks(251);
	CHECK_EQ(peers_frequencies(&w.peers, mhz), 4);
	CHECK(mhz[1] == 5955 && mhz[3] == 5745);
	CHECK_EQ(w.changes, 2);
	end();
}

static void rows(void)
{
	const struct oal_neighbour_ap_row both[2] = {row_of(11, 5180, 100), row_of(12, 5180, 200)},
					  later = row_of(12, 5180, 300);
	uint64_t left_us, ended_us;

	test("peers become rows at the next tick, with ages that go on; who is not told of any more is gone with the "
	     "next batch");
	begin();
	ticks(10);
	tell(2, both);
	ticks(500);
	left_us = w.due_us;
	tell(1, &later);
	ticks(500);
	ended_us = w.due_us;
	tell(0, NULL);
	ticks(200);
	end();
	CHECK_EQ(w.rows[0].neighbour, 11);
	CHECK_EQ(w.row_us[0], START_US + 10 * TICK_US);
	CHECK(w.rows[0].tx_kbps == 100 && w.rows[0].stations == 1 && w.rows[0].age_ms == 500);
	CHECK(rows_of(11, START_US) >= 7); /* a keyframe in each batch */
	CHECK_EQ(rows_of(11, left_us + 250000), 0);
	CHECK(rows_of(12, left_us + 250000) >= 6);
	CHECK_EQ(rows_of(12, ended_us + 250000), 0);
	{
		uint32_t oldest_ms = 0;
		unsigned i;

		for (i = 0; i < w.n_rows; i++)
			if (w.row_us[i] < left_us && w.rows[i].age_ms > oldest_ms)
				oldest_ms = w.rows[i].age_ms;
		CHECK(oldest_ms >= 1500 && oldest_ms <= 2500); /* 500 when told, and two seconds */
	}
}

static void table_full(void)
{
	struct oal_neighbour_ap_row list[PEER_LIST_MAX];
	uint64_t told_us;
	unsigned i;

	test("a whole list of others takes the place of a whole list: none is left out for good");
	begin();
	for (i = 0; i < PEER_LIST_MAX; i++)
		list[i] = row_of(100 + i, 5180, i);
	tell(PEER_LIST_MAX, list);
	ticks(100);
	for (i = 0; i < PEER_LIST_MAX; i++)
		list[i] = row_of(200 + i, 5180, i);
	told_us = w.due_us;
	tell(PEER_LIST_MAX, list);
	ticks(600);
	end();
	for (i = 0; i < PEER_LIST_MAX; i++) {
		CHECK(rows_of(100 + i, START_US) > 0);
		CHECK(rows_of(200 + i, told_us) > 0);
		CHECK_EQ(rows_of(100 + i, told_us + 600000), 0);
	}
}

static atomic_bool stop;

static void *agent(void *ctx)
{
	uint32_t k;

	for (k = 1; !atomic_load(&stop); k++) {
		struct peers_snapshot *t = peers_draft(&w.peers);
		unsigned i;

		t->list.n = 1 + k % PEER_LIST_MAX;
		for (i = 0; i < t->list.n; i++) {
			t->list.rows[i] = row_of(1 + i, 5180, k);
			t->at_us[i] = 0;
		}
		peers_publish(&w.peers);
	}
	return NULL;
}

static void threads(void)
{
	uint32_t latest = 0;
	pthread_t thread;
	unsigned i;

	test("lists that come while rows are written are whole, and never older than those before");
	begin();
	atomic_store(&stop, false);
	CHECK_EQ(pthread_create(&thread, NULL, agent, NULL), 0);
	while (w.n_rows < MOST_ROWS / 2)
		ticks(1);
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	end();
	for (i = 0; i < w.n_rows; i++) {
		CHECK_EQ(w.rows[i].tx_kbps, w.rows[i].backlog_bytes);
		if (w.rows[i].neighbour == 1) {
			CHECK(w.rows[i].tx_kbps >= latest);
			latest = w.rows[i].tx_kbps;
		}
	}
	CHECK(latest > 1);
}

int main(void)
{
	json_strict();
	json_values();
	lists();
	bad_lists();
	radios();
	rows();
	table_full();
	threads();
	return done();
}
