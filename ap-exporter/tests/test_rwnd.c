/* The pure parts of the rewrite: which clamps may be, the field that comes out, the table of clamps, and lines of the
 * command. */
#include "check.h"
#include "rewrite/rwnd_clamps.h"
#include "rewrite/rwnd_command.h"

#include <errno.h>

static struct rwnd_flow flow(uint32_t number)
{
	return (struct rwnd_flow){
		.client_addr = { 10, 0, (uint8_t)(number >> 8), (uint8_t)number },
		.server_addr = { 192, 0, 2, 7 },
		.client_port = 5000,
		.server_port = 443,
		.addr_len = 4,
		.scale = 7,
		.mss_bytes = 1448,
	};
}

static int judge(struct rwnd_flow f, uint32_t ttl_ms)
{
	uint32_t bytes = 65536;

	return rwnd_check_clamp(&f, &bytes, ttl_ms);
}

static void judging(void)
{
	struct rwnd_flow f = flow(1);
	uint32_t bytes;

	test("a clamp below four segments is raised to them, one above stays");
	bytes = 0;
	CHECK_EQ(rwnd_check_clamp(&f, &bytes, 500), 0);
	CHECK_EQ(bytes, 4 * 1448);
	bytes = 4 * 1448 + 1;
	CHECK_EQ(rwnd_check_clamp(&f, &bytes, 500), 0);
	CHECK_EQ(bytes, 4 * 1448 + 1);

	test("scales 0 and 14 are good, 15 to 254 are refused");
	for (unsigned scale = 0; scale < 256; scale++) {
		f = flow(1);
		f.scale = (uint8_t)scale;
		CHECK_EQ(judge(f, 500), scale <= 14 || scale == RWND_SCALE_LEARNED ? 0 : -EINVAL);
	}

	test("a time to live is from 1 to 1000 ms");
	CHECK_EQ(judge(flow(1), 0), -EINVAL);
	CHECK_EQ(judge(flow(1), 1), 0);
	CHECK_EQ(judge(flow(1), 1000), 0);
	CHECK_EQ(judge(flow(1), 1001), -EINVAL);

	test("a flow that cannot be is refused: ports 0, no address, another length, a segment of 87 bytes");
	f = flow(1); f.client_port = 0; CHECK_EQ(judge(f, 500), -EINVAL);
	f = flow(1); f.server_port = 0; CHECK_EQ(judge(f, 500), -EINVAL);
	f = flow(1); memset(f.client_addr, 0, 16); CHECK_EQ(judge(f, 500), -EINVAL);
	f = flow(1); memset(f.server_addr, 0, 16); CHECK_EQ(judge(f, 500), -EINVAL);
	f = flow(1); f.addr_len = 6; CHECK_EQ(judge(f, 500), -EINVAL);
	f = flow(1); f.mss_bytes = 87; CHECK_EQ(judge(f, 500), -EINVAL);
	f = flow(1); f.mss_bytes = 88; CHECK_EQ(judge(f, 500), 0);

	test("there are two directions");
	f = flow(1); f.direction = RWND_DOWN; CHECK_EQ(judge(f, 500), 0);
	f = flow(1); f.direction = RWND_DIRECTIONS; CHECK_EQ(judge(f, 500), -EINVAL);
	f = flow(1); f.direction = 255; CHECK_EQ(judge(f, 500), -EINVAL);
}

static void fields(void)
{
	test("the field is rounded down to the scale, but not below the floor, and never 0");
	CHECK_EQ(rwnd_raw(20000, 5792, 7), 156); /* 19968 */
	CHECK_EQ(rwnd_raw(5792, 5792, 7), 46); /* 45 would be 5760 */
	CHECK_EQ(rwnd_raw(65536, 5792, 0), 65535);
	CHECK_EQ(rwnd_raw(UINT32_MAX, 5792, 14), 65535);
	CHECK_EQ(rwnd_raw(352, 352, 14), 1);
	CHECK_EQ(rwnd_raw(0, 0, 14), 1);

	test("whatever scale, bytes and segment: the window is at most bytes rounded up to the scale, at least the "
	     "floor if the field can say it");
	{
		uint64_t seed = 4;

		for (int i = 0; i < 100000; i++) {
			const uint8_t scale = (uint8_t)(check_random(&seed) % 15);
			const uint32_t floor = 4 * (88 + (uint32_t)(check_random(&seed) % 9000)),
				       bytes = floor + (uint32_t)(check_random(&seed) >> 34);
			const uint64_t window = (uint64_t)rwnd_raw(bytes, floor, scale) << scale;

			CHECK(window >= floor || window == (uint64_t)65535 << scale);
			CHECK(window <= bytes || window - floor < 1u << scale);
		}
	}
}

static void table(void)
{
	enum { MOST = 100 };
	struct rwnd_clamps *t = rwnd_clamps_new(MOST);
	struct rwnd_flow f;
	bool there[300] = { false };
	uint64_t seed = 7;
	uint32_t count = 0;

	test("the table takes what it was made for, and says when it is full");
	for (uint32_t i = 0; i < MOST; i++) {
		f = flow(i);
		CHECK_EQ(rwnd_clamps_set(t, &f, 1000), 1);
	}
	f = flow(MOST);
	CHECK_EQ(rwnd_clamps_set(t, &f, 1000), -ENOSPC);
	f = flow(3);
	CHECK_EQ(rwnd_clamps_set(t, &f, 2000), 0);
	CHECK_EQ(rwnd_clamps_count(t), MOST);

	test("a clamp is over at its time, not before; one that was set again is not");
	CHECK(!rwnd_clamps_expire(t, 999, &f));
	for (uint32_t i = 0; i < MOST - 1; i++)
		CHECK(rwnd_clamps_expire(t, 1000, &f) && memcmp(f.client_addr, flow(3).client_addr, 4));
	CHECK(!rwnd_clamps_expire(t, 1999, &f));
	CHECK_EQ(rwnd_clamps_count(t), 1);
	CHECK(rwnd_clamps_expire(t, 2000, &f));
	CHECK(!memcmp(f.client_addr, flow(3).client_addr, 4));
	CHECK_EQ(rwnd_clamps_count(t), 0);

	test("flows that differ in one bit of address, port or length are two");
	f = flow(1);
	CHECK_EQ(rwnd_clamps_set(t, &f, 1000), 1);
	f.client_port++;
	CHECK_EQ(rwnd_clamps_set(t, &f, 1000), 1);
	f.server_addr[3]++;
	CHECK_EQ(rwnd_clamps_set(t, &f, 1000), 1);
	f.addr_len = 16;
	CHECK_EQ(rwnd_clamps_set(t, &f, 1000), 1);
	f.client_addr[15] = 1;
	CHECK_EQ(rwnd_clamps_set(t, &f, 1000), 1);
	CHECK_EQ(rwnd_clamps_count(t), 5);
	test("both ways of a connection are two clamps, counted by themselves, and end each by itself");
	f.direction = RWND_DOWN;
	CHECK_EQ(rwnd_clamps_set(t, &f, 900), 1);
	CHECK_EQ(rwnd_clamps_count(t), 6);
	CHECK_EQ(rwnd_clamps_count_of(t, RWND_UP), 5);
	CHECK_EQ(rwnd_clamps_count_of(t, RWND_DOWN), 1);
	CHECK(rwnd_clamps_expire(t, 900, &f) && f.direction == RWND_DOWN);
	CHECK(!rwnd_clamps_remove(t, &f));
	CHECK_EQ(rwnd_clamps_count_of(t, RWND_DOWN), 0);
	CHECK_EQ(rwnd_clamps_count_of(t, RWND_UP), 5);
	f.direction = RWND_DOWN;
	CHECK_EQ(rwnd_clamps_set(t, &f, 900), 1);
	rwnd_clamps_clear(t);
	CHECK_EQ(rwnd_clamps_count_of(t, RWND_DOWN), 0);
	f.direction = RWND_UP;
	CHECK_EQ(rwnd_clamps_count(t), 0);
	CHECK(!rwnd_clamps_remove(t, &f));

	test("100,000 random puts and takes leave what a list of flags says");
	for (int i = 0; i < 100000; i++) {
		const uint32_t which = (uint32_t)(check_random(&seed) % 300);

		f = flow(which);
		if (check_random(&seed) % 2) {
			CHECK_EQ(rwnd_clamps_set(t, &f, 1), there[which] ? 0 : count < MOST ? 1 : -ENOSPC);
			if (!there[which] && count < MOST)
				there[which] = ++count;
		} else {
			CHECK_EQ(rwnd_clamps_remove(t, &f), there[which]);
			count -= there[which];
			there[which] = false;
		}
		CHECK_EQ(rwnd_clamps_count(t), count);
	}
	rwnd_clamps_free(t);
}

static bool parses(struct rwnd_command *c, const char *line)
{
	char err[512] = "";
	const int ret = rwnd_command_parse(c, line, err, sizeof err);

	CHECK(ret == 0 || (ret == -EINVAL && err[0]));
	return ret == 0;
}

static void commands(void)
{
	static const char *const bad[] = {
		"foo",
		"set",
		"set 10.0.0.1:1 10.0.0.2:2",
		"set 10.0.0.1:1 10.0.0.2:2 65536",
		"set 10.0.0.1 10.0.0.2:2 65536 500",
		"set 10.0.0.1:0 10.0.0.2:2 65536 500",
		"set 10.0.0.1:65536 10.0.0.2:2 65536 500",
		"set 10.0.0.1:1 [::1]:2 65536 500",
		"set ::1:1 ::2:2 65536 500",
		"set [10.0.0.1]:1 [10.0.0.2]:2 65536 500",
		"set 10.0.0.1:1 10.0.0.2:2 -1 500",
		"set 10.0.0.1:1 10.0.0.2:2 99999999999 500",
		"set 10.0.0.1:1 10.0.0.2:2 65536 0",
		"set 10.0.0.1:1 10.0.0.2:2 65536 1001",
		"set 10.0.0.1:1 10.0.0.2:2 65536 500 15",
		"set 10.0.0.1:1 10.0.0.2:2 65536 500 255",
		"set 10.0.0.1:1 10.0.0.2:2 65536 500 7 87",
		"set 10.0.0.1:1 10.0.0.2:2 65536 500 7 1448 9",
		"set 10.0.0.1:1 10.0.0.2:2 65536 500 7 1448 9 down",
		"set 10.0.0.1:1 10.0.0.2:2 65536 500 down 7",
		"set 10.0.0.1:1 10.0.0.2:2 65536 500 7 1448 down down",
		"set 10.0.0.1:1 10.0.0.2:2 65536 500 sideways",
		"set 10.0.0.1:1 10.0.0.2:2 65536 down",
		"set down",
		"release 10.0.0.1:1 down",
		"release 10.0.0.1:1 10.0.0.2:2 7",
		"release 10.0.0.1:1 10.0.0.2:2 down up",
		"release all down",
		"release",
		"release 10.0.0.1:1",
		"sleep",
		"sleep x",
		"stats now",
		"quit 1",
	};
	struct rwnd_command c;
	char line[700];

	test("set: addresses, ports, bytes, time; scale and segment if given, else what the backend learned and "
	     "Ethernet's");
	CHECK(parses(&c, "set 10.1.2.3:5000 192.0.2.7:443 65536 500\n"));
	CHECK_EQ(c.verb, RWND_SET);
	CHECK(c.flow.addr_len == 4 && !memcmp(c.flow.client_addr, "\x0a\x01\x02\x03", 4) &&
	      !memcmp(c.flow.server_addr, "\xc0\x00\x02\x07", 4));
	CHECK(c.flow.client_port == 5000 && c.flow.server_port == 443 && c.bytes == 65536 && c.ttl_ms == 500);
	CHECK(c.flow.scale == RWND_SCALE_LEARNED && c.flow.mss_bytes == 1448);
	CHECK(parses(&c, "set [2001:db8::1]:5000 [2001:db8::2]:443 65536 500 14 536"));
	CHECK(c.flow.addr_len == 16 && c.flow.client_addr[0] == 0x20 && c.flow.client_addr[15] == 1 &&
	      c.flow.server_addr[15] == 2);
	CHECK(c.flow.scale == 14 && c.flow.mss_bytes == 536);
	CHECK(parses(&c, "set 10.0.0.1:1 10.0.0.2:2 1 1 0"));
	CHECK_EQ(c.flow.scale, 0);

	test("a direction, if given, is the last word; without one the way up is meant");
	CHECK_EQ(c.flow.direction, RWND_UP);
	CHECK(parses(&c, "set 10.0.0.1:1 10.0.0.2:2 65536 500 down"));
	CHECK(c.flow.direction == RWND_DOWN && c.flow.scale == RWND_SCALE_LEARNED);
	CHECK(parses(&c, "set 10.0.0.1:1 10.0.0.2:2 65536 500 7 down"));
	CHECK(c.flow.direction == RWND_DOWN && c.flow.scale == 7);
	CHECK(parses(&c, "set 10.0.0.1:1 10.0.0.2:2 65536 500 7 536 down"));
	CHECK(c.flow.direction == RWND_DOWN && c.flow.mss_bytes == 536);
	CHECK(parses(&c, "set 10.0.0.1:1 10.0.0.2:2 65536 500 7 536 up") && c.flow.direction == RWND_UP);
	CHECK(parses(&c, "release 10.0.0.1:1 10.0.0.2:2 down"));
	CHECK(c.verb == RWND_RELEASE && c.flow.direction == RWND_DOWN);
	CHECK(parses(&c, "release 10.0.0.1:1 10.0.0.2:2 up") && c.flow.direction == RWND_UP);

	test("release, release all, stats, sleep, quit, and lines that say nothing");
	CHECK(parses(&c, "release 10.0.0.1:1 10.0.0.2:2") && c.verb == RWND_RELEASE && c.flow.server_port == 2);
	CHECK(parses(&c, "release all") && c.verb == RWND_RELEASE_ALL);
	CHECK(parses(&c, "stats") && c.verb == RWND_STATS);
	CHECK(parses(&c, "  sleep\t20 ") && c.verb == RWND_SLEEP && c.sleep_ms == 20);
	CHECK(parses(&c, "quit") && c.verb == RWND_QUIT);
	CHECK(parses(&c, "") && c.verb == RWND_NOTHING);
	CHECK(parses(&c, "# set") && c.verb == RWND_NOTHING);

	test("what makes no sense is refused with a reason");
	for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		if (parses(&c, bad[i]))
			printf("# taken: %s\n", bad[i]);
		CHECK(!parses(&c, bad[i]));
	}
	memset(line, ' ', sizeof line);
	line[sizeof line - 1] = '\0';
	CHECK(!parses(&c, line));
}

static void met(void)
{
	test("two policies that enforce: the smaller window holds, and none is no window");
	CHECK_EQ(rwnd_meet(20000, 30000), 20000);
	CHECK_EQ(rwnd_meet(30000, 20000), 20000);
	CHECK_EQ(rwnd_meet(0, 30000), 30000);
	CHECK_EQ(rwnd_meet(30000, 0), 30000);
	CHECK_EQ(rwnd_meet(0, 0), 0);
}

int main(void)
{
	judging();
	fields();
	table();
	commands();
	met();
	return done();
}
