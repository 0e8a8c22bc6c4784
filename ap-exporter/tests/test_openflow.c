/* test_openflow.c: the messages byte by byte, as `ovs-ofctl ofp-print` reads them back, and what a switch may
 * answer. */
#include "check.h"
#include "openflow/openflow.h"

#include <errno.h>

#define COOKIE UINT64_C(0x4f414c72776e6400)

static const uint8_t client4[] = { 10, 0, 0, 2 }, server4[] = { 10, 0, 0, 1 }, client6[16] = { 0xfd, [15] = 2 },
		     server6[16] = { 0xfd, [15] = 1 }, station[] = { 2, 0, 0, 0, 0, 1 };

/* What is lowered is `raw`, in ACKs of the client or of the server. */
static struct openflow_rule clamp(bool v6, bool down, uint16_t raw)
{
	const uint8_t *const client = v6 ? client6 : client4, *const server = v6 ? server6 : server4;

	return (struct openflow_rule){
		.kind = OPENFLOW_CLAMP,
		.clamp = {
			.source = down ? server : client,
			.destination = down ? client : server,
			.addr_len = v6 ? 16 : 4,
			.source_port = down ? 443 : 40000,
			.destination_port = down ? 40000 : 443,
			.raw = raw,
		},
	};
}

static size_t from_hex(uint8_t *bytes, const char *hex)
{
	size_t n = 0;
	unsigned v;

	for (; sscanf(hex, " %2x", &v) == 1; hex += strspn(hex, " ") + 2)
		bytes[n++] = (uint8_t)v;
	return n;
}

/* Is `message` what the hex digits say, and was nothing written behind it? */
static void check_bytes(const uint8_t *message, size_t len, const char *hex)
{
	uint8_t want[OPENFLOW_MESSAGE_MAX];
	const size_t n = from_hex(want, hex);

	CHECK_EQ(len, n);
	CHECK(len == n && !memcmp(message, want, n));
	for (size_t i = len; i < OPENFLOW_MESSAGE_MAX; i++)
		CHECK(message[i] == 0xee);
}

static uint8_t m[OPENFLOW_MESSAGE_MAX];

static uint8_t *fresh(void)
{
	memset(m, 0xee, sizeof m);
	return m;
}

static size_t add(uint32_t xid, uint64_t cookie, struct openflow_rule r, uint16_t ttl_ms)
{
	return openflow_add(fresh(), xid, cookie, &r, ttl_ms);
}

static void test_writing(void)
{
	struct openflow_rule r;

	test("hello: version bitmap 0x04");
	check_bytes(m, openflow_hello(fresh(), 1), "04000010 00000001 0001 0008 00000010");
	test("set config: miss_send_len=1; set async: no packets in, no port status, flows removed by idle, hard, "
	     "delete");
	check_bytes(m, openflow_set_config(fresh(), 2), "0409000c 00000002 0000 0001");
	check_bytes(m, openflow_set_async(fresh(), 3),
	            "041c0020 00000003 0000000000000000 0000000000000000 0000000700000007");
	test("barrier, echo: a header");
	check_bytes(m, openflow_barrier(fresh(), 4), "04140008 00000004");
	check_bytes(m, openflow_echo_request(fresh(), 5), "04020008 00000005");
	check_bytes(m, openflow_echo_reply(fresh(), 5), "04030008 00000005");
	test("aggregate: all tables, by cookie");
	check_bytes(m, openflow_aggregate(fresh(), 6, COOKIE),
	            "04120038 00000006 0002 0000 00000000 ff000000 ffffffff ffffffff 00000000"
	            "4f414c72776e6400 ffffffffffffffff 0001000400000000");
	test("ADD priority=60000,tcp,reg15=0,nw_src=10.0.0.2,nw_dst=10.0.0.1,tp_src=40000,tp_dst=443 cookie hard:1 "
	     "send_flow_rem "
	     "actions=rewrite_rwnd(max=256,ttl_ms=500),load:0x4f414c->NXM_NX_REG15[],resubmit(,0)");
	check_bytes(m, add(7, COOKIE, clamp(false, false, 256), 500),
	            "040e00a8 00000007 4f414c72776e6400 0000000000000000 00 00 0000 0001 ea60"
	            "ffffffff ffffffff ffffffff 0001 0000  0001 0033 00011e04 00000000 80000a02 0800 80001401 06 "
	            "80001604 0a000002 80001804 0a000001"
	            "80001a02 9c40 80001c02 01bb 0000000000  0004 0040 00000000 ffff0010 00002320 4f41 0100 01f4 0000"
	            "ffff0018 00002320 0007 001f 00011e04 00000000004f414c ffff0010 00002320 000e fff8 00 000000");
	test("the same over IPv6 matches tcp6,ipv6_src=fd00::2,ipv6_dst=fd00::1");
	check_bytes(m, add(8, COOKIE, clamp(true, false, 65535), 1000),
	            "040e00c0 00000008 4f414c72776e6400 0000000000000000 00 00 0000 0001 ea60"
	            "ffffffff ffffffff ffffffff 0001 0000  0001 004b 00011e04 00000000 80000a02 86dd 80001401 06"
	            "80003410 fd000000000000000000000000000002 80003610 fd000000000000000000000000000001 80001a02 9c40 "
	            "80001c02 01bb 0000000000"
	            "0004 0040 00000000 ffff0010 00002320 4f41 ffff 03e8 0000"
	            "ffff0018 00002320 0007 001f 00011e04 00000000004f414c ffff0010 00002320 000e fff8 00 000000");
	test("the way down: the same flow with its ends swapped");
	{
		check_bytes(m, add(7, COOKIE + 1, clamp(false, true, 256), 500),
		            "040e00a8 00000007 4f414c72776e6401 0000000000000000 00 00 0000 0001 ea60"
		            "ffffffff ffffffff ffffffff 0001 0000  0001 0033 00011e04 00000000 80000a02 0800 "
		            "80001401 06 80001604 0a000001 80001804 0a000002 80001a02 "
		            "01bb 80001c02 9c40 0000000000"
		            "0004 0040 00000000 ffff0010 00002320 4f41 0100 01f4 0000"
		            "ffff0018 00002320 0007 001f 00011e04 00000000004f414c"
		            "ffff0010 00002320 000e fff8 00 000000");
		r = clamp(true, true, 0);
		check_bytes(m, openflow_delete(fresh(), 9, COOKIE + 1, &r),
		            "040e0080 00000009 4f414c72776e6401 ffffffffffffffff 00 04 0000 0000 ea60"
		            "ffffffff ffffffff ffffffff 0000 0000  0001 004b 00011e04 00000000 80000a02 86dd "
		            "80001401 06 80003410 fd000000000000000000000000000001"
		            "80003610 fd000000000000000000000000000002 80001a02 01bb 80001c02 9c40 0000000000");
	}
	test("DEL_STRICT of that flow, by cookie too");
	r = clamp(true, false, 0);
	check_bytes(m, openflow_delete(fresh(), 9, COOKIE, &r),
	            "040e0080 00000009 4f414c72776e6400 ffffffffffffffff 00 04 0000 0000 ea60"
	            "ffffffff ffffffff ffffffff 0000 0000  0001 004b 00011e04 00000000 80000a02 86dd 80001401 06"
	            "80003410 fd000000000000000000000000000002 80003610 fd000000000000000000000000000001 80001a02 9c40 "
	            "80001c02 01bb 0000000000");
	test("DEL table:255 tcp cookie actions=rewrite_rwnd(max=65535,ttl_ms=1)");
	check_bytes(m, openflow_delete_all(fresh(), 10, COOKIE, OPENFLOW_CLAMP, false),
	            "040e0058 0000000a 4f414c72776e6400 ffffffffffffffff ff 03 0000 0000 0000"
	            "ffffffff ffffffff ffffffff 0000 0000  0001 000f 80000a02 0800 80001401 06 00  0004 0018 00000000 "
	            "ffff0010 00002320 4f41 ffff 0001 0000");
	check_bytes(m, openflow_delete_all(fresh(), 10, COOKIE, OPENFLOW_CLAMP, true),
	            "040e0058 0000000a 4f414c72776e6400 ffffffffffffffff ff 03 0000 0000 0000"
	            "ffffffff ffffffff ffffffff 0000 0000  0001 000f 80000a02 86dd 80001401 06 00  0004 0018 00000000 "
	            "ffff0010 00002320 4f41 ffff 0001 0000");
}

/* Marks have a register and a priority of their own: a packet that a clamp and marks concern meets both. */
static void test_marks(void)
{
	struct openflow_rule r = { OPENFLOW_MARKS, .marks = { station, 50000, 7, 3 } };

	test("ADD priority=60001,reg14=0,dl_dst=02:00:00:00:00:01 cookie hard:1 send_flow_rem "
	     "actions=mark_ce(marks=3,interval_us=50000,since=7,ttl_ms=500),load:0x4f414c->NXM_NX_REG14[],"
	     "resubmit(,0)");
	check_bytes(m, add(7, COOKIE, r, 500),
	            "040e0090 00000007 4f414c72776e6400 0000000000000000 00 00 0000 0001 ea61"
	            "ffffffff ffffffff ffffffff 0001 0000  0001 0016 00011c04 00000000 80000606 020000000001 0000"
	            "0004 0048 00000000 ffff0018 00002320 4f42 01f4 0000c350 00000007 03 000000"
	            "ffff0018 00002320 0007 001f 00011c04 00000000004f414c ffff0010 00002320 000e fff8 00 000000");
	test("DEL_STRICT of it, by cookie too");
	check_bytes(m, openflow_delete(fresh(), 9, COOKIE, &r),
	            "040e0048 00000009 4f414c72776e6400 ffffffffffffffff 00 04 0000 0000 ea61"
	            "ffffffff ffffffff ffffffff 0000 0000  0001 0016 00011c04 00000000 80000606 020000000001 0000");
	test("DEL table:255 cookie actions=mark_ce(marks=1,ttl_ms=1)");
	check_bytes(m, openflow_delete_all(fresh(), 10, COOKIE, OPENFLOW_MARKS, false),
	            "040e0058 0000000a 4f414c72776e6400 ffffffffffffffff ff 03 0000 0000 0000"
	            "ffffffff ffffffff ffffffff 0000 0000  0001 0004 00000000  0004 0020 00000000 "
	            "ffff0018 00002320 4f42 0001 00000000 00000000 01 000000");
}

static struct openflow_message got;

/* From an exact copy on the heap, so that reading past it is seen by AddressSanitizer. */
static int parse(const char *hex, size_t cut)
{
	uint8_t bytes[OPENFLOW_MESSAGE_MAX], *copy;
	const size_t n = from_hex(bytes, hex) - cut;
	int ret;

	copy = malloc(n ? n : 1);
	memcpy(copy, bytes, n);
	ret = openflow_parse(&got, copy, n);
	free(copy);
	return ret;
}

static void test_hello(void)
{
	test("hello of a switch that speaks 1.0 to 1.5, of one that speaks 1.0 alone, of one that lists nothing");
	CHECK(parse("06000010 00000001 0001 0008 0000007e", 0) == 1 && got.type == OPENFLOW_HELLO && got.speaks_13);
	CHECK(parse("06000010 00000001 0001 0008 00000002", 0) == 1 && !got.speaks_13);
	CHECK(parse("05000008 00000001", 0) == 1 && got.speaks_13);
	CHECK(parse("01000008 00000001", 0) == 1 && !got.speaks_13);
	test("hello: unknown elements are passed over, wrong lengths are no agreement");
	CHECK(parse("06000018 00000001 0007 0006 beef 0000 0001 0008 00000010", 0) == 1 && got.speaks_13);
	CHECK(parse("06000010 00000001 0001 0004 00000010", 0) == 1 && !got.speaks_13);
	CHECK(parse("06000010 00000001 0001 0003 00000010", 0) == 1 && !got.speaks_13);
	CHECK(parse("06000010 00000001 0001 ffff 00000010", 0) == 1 && !got.speaks_13);
	CHECK(parse("0600000c 00000001 0007 0004", 0) == 1 && got.speaks_13);
}

static void test_errors(void)
{
	static const struct {
		const char *hex;
		enum openflow_error error;
	} of[] = {
		{ "0401000c 00000007 0000 0000", OPENFLOW_ERROR_VERSION }, /* hello failed, incompatible */
		{ "0101000c 00000007 0001 0000", OPENFLOW_ERROR_VERSION }, /* bad request, bad version */
		/* Bad action, bad experimenter type: what Open vSwitch says. */
		{ "0401000c 00000007 0002 0004", OPENFLOW_ERROR_ACTION },
		{ "0401000c 00000007 0002 0003", OPENFLOW_ERROR_ACTION },
		{ "0401000c 00000007 0002 0000", OPENFLOW_ERROR_ACTION },
		{ "0401000c 00000007 0002 0005", OPENFLOW_ERROR_OTHER },   /* bad argument */
		{ "0401000c 00000007 0005 0001", OPENFLOW_ERROR_FULL },
		{ "0401000c 00000007 0005 0000", OPENFLOW_ERROR_OTHER },
		/* With the message that it is about. */
		{ "04010014 00000007 0005 0001 040e00a800000007", OPENFLOW_ERROR_FULL },
	};

	test("errors are what they mean to us");
	for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
		CHECK_EQ(parse(of[i].hex, 0), 1);
		CHECK(got.type == OPENFLOW_ERROR && got.xid == 7);
		CHECK_EQ(got.error, of[i].error);
	}
	CHECK(got.error_type == 5 && got.error_code == 1);
	test("an error that is cut short is no OpenFlow");
	CHECK_EQ(parse("0401000a 00000007 0002", 0), -EPROTO);
}

static void test_counts(void)
{
	static const char *removed = "040b0038 00000000 4f414c72776e6400 ea60 %s 00 00000001 00000000 0000 0001 "
	                             "0000000000000102 0000000000009999 0001000400000000";
	char hex[256];

	test("flow removed: whose, how many packets, whether by its own time");
	snprintf(hex, sizeof hex, removed, "01");
	CHECK(parse(hex, 0) == 1 && got.type == OPENFLOW_FLOW_REMOVED && got.cookie == COOKIE && got.packets == 0x102 &&
	      got.expired);
	snprintf(hex, sizeof hex, removed, "02");
	CHECK(parse(hex, 0) == 1 && got.packets == 0x102 && !got.expired);
	CHECK_EQ(parse("040b0020 00000000 4f414c72776e6400 ea60 01 00 00000001 00000000 0000 0001", 0), -EPROTO);
	test("aggregate: packets; another multipart reply does not concern us");
	CHECK(parse("04130028 00000006 0002 0000 00000000 0000000000000304 0000000000009999 00000002 00000000", 0) ==
	      1);
	CHECK(got.type == OPENFLOW_MULTIPART_REPLY && got.xid == 6 && got.packets == 0x304);
	CHECK(parse("04130010 00000006 0000 0000 00000000", 0) == 1 && got.type == UINT8_MAX);
	CHECK_EQ(parse("04130018 00000006 0002 0000 00000000 0000000000000304", 0), -EPROTO);
	CHECK_EQ(parse("0413000c 00000006 0002 0000", 0), -EPROTO);
}

static void test_framing(void)
{
	unsigned cut;

	test("a message that is not all there is waited for, from its header on with its length");
	for (cut = 1; cut <= 16; cut++) {
		CHECK_EQ(parse("0401000c 00000007 0005 0001", cut < 12 ? cut : 12), 0);
		CHECK_EQ(got.length, cut <= 4 ? 12 : 0);
	}
	test("a length below the header's is no OpenFlow");
	CHECK_EQ(parse("04140007 00000004", 0), -EPROTO);
	CHECK_EQ(parse("04140000 00000004", 0), -EPROTO);
	test("types that do not concern us are passed on as they are");
	CHECK(parse("040c0010 00000000 0000000000000000", 0) == 1 && got.type == 12 && got.length == 16);
	CHECK(parse("04150008 00000009", 0) == 1 && got.type == OPENFLOW_BARRIER_REPLY && got.xid == 9);
}

int main(void)
{
	test_writing();
	test_marks();
	test_hello();
	test_errors();
	test_counts();
	test_framing();
	return done();
}
