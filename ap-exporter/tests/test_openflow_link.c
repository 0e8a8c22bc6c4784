/* test_openflow_link.c: a connection to a switch that this test plays, over a real socket, with time as the test wants
 * it. */
#include "check.h"
#include "openflow/openflow_link.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static struct openflow_link l;
static struct openflow_message m;
static char folder[] = "/tmp/oal-link-XXXXXX";
static int listener = -1, peer = -1;
static uint64_t now_us = 5000000;

static const uint8_t hello[] = { 6, 0, 0, 16, 0, 0, 0, 1, 0, 1, 0, 8, 0, 0, 0, 0x7e };
static const uint8_t barrier_reply[] = { 4, 21, 0, 8, 0, 0, 0, 9 };

static void listen_there(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	snprintf(a.sun_path, sizeof a.sun_path, "%s/br-lan.mgmt", folder);
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK(!bind(listener, (struct sockaddr *)&a, sizeof a) && !listen(listener, 4));
}

static void say(const void *bytes, size_t len)
{
	CHECK_EQ(send(peer, bytes, len, MSG_NOSIGNAL), len);
}

/* Everything that came from the exporter so far. */
static size_t heard(uint8_t *bytes, size_t room)
{
	size_t len = 0;
	ssize_t n;

	while (len < room && (n = recv(peer, bytes + len, room - len, MSG_DONTWAIT)) > 0)
		len += (size_t)n;
	return len;
}

static bool poll_link(void)
{
	return openflow_link_poll(&l, now_us, &m);
}

/* Connects anew, says hello, and takes in what greets it. */
static void come_up(void)
{
	uint8_t bytes[64];

	now_us += OPENFLOW_LINK_RETRY_MAX_US;
	poll_link();
	peer = accept(listener, NULL, NULL);
	CHECK(peer >= 0);
	CHECK_EQ(heard(bytes, sizeof bytes), 16);
	CHECK(bytes[0] == 4 && bytes[1] == OPENFLOW_HELLO);
	say(hello, sizeof hello);
	CHECK(!poll_link() && l.up);
}

static void hang_up(void)
{
	close(peer);
	peer = -1;
	CHECK(!poll_link() && !l.up);
}

static void test_nobody(void)
{
	uint64_t wait_us, before_us = 0;

	test("a folder whose name does not fit a socket is refused");
	CHECK_EQ(openflow_link_init(&l,
	                            "/a/folder/whose/name/goes/on/and/on/and/on/and/on/and/on/and/on/and/on/and/on/and/"
	                            "on/and/on/and/on",
	                            "br-lan"),
	         -ENAMETOOLONG);
	test("nobody there: tried again at times further and further apart, a second at most");
	CHECK_EQ(openflow_link_init(&l, folder, "br-lan"), 0);
	for (int i = 0; i < 8; i++) {
		CHECK(!poll_link() && !l.up && l.fd < 0);
		CHECK_EQ(l.error, -ENOENT);
		wait_us = l.retry_at_us - now_us;
		CHECK(wait_us >= before_us && wait_us >= OPENFLOW_LINK_RETRY_MIN_US &&
		      wait_us <= OPENFLOW_LINK_RETRY_MAX_US);
		before_us = wait_us;
		now_us += wait_us - 1;
		l.error = 0;
		CHECK(!poll_link() && !l.error); /* not before its time */
		now_us++;
	}
	CHECK_EQ(before_us, OPENFLOW_LINK_RETRY_MAX_US);
	CHECK_EQ(openflow_link_send(&l, barrier_reply, sizeof barrier_reply), -ENOTCONN);
}

static void test_talk(void)
{
	uint8_t bytes[64];

	test("a switch that is there: hello, and it is up");
	listen_there();
	come_up();
	CHECK_EQ(l.ups, 1);
	test("a message byte by byte is one message, once it is whole");
	for (size_t i = 0; i < sizeof barrier_reply; i++) {
		CHECK(!poll_link());
		say(barrier_reply + i, 1);
	}
	CHECK(poll_link() && m.type == OPENFLOW_BARRIER_REPLY && m.xid == 9 && !poll_link());
	test("two messages at once are two");
	say(barrier_reply, sizeof barrier_reply);
	say(barrier_reply, sizeof barrier_reply);
	CHECK(poll_link() && m.xid == 9 && poll_link() && m.xid == 9 && !poll_link());
	test("an echo request is answered with its number");
	say((uint8_t[]){ 4, 2, 0, 8, 0, 0, 1, 2 }, 8);
	CHECK(!poll_link());
	CHECK_EQ(heard(bytes, sizeof bytes), 8);
	CHECK(!memcmp(bytes, (uint8_t[]){ 4, 3, 0, 8, 0, 0, 1, 2 }, 8));
}

static void test_long_message(void)
{
	static uint8_t lengthy[60000] = { 4, 10, 60000 >> 8, 60000 & 255 };

	test("a message longer than the buffer is passed over, what follows is read");
	for (size_t at = 0; at < sizeof lengthy; at += 6000) {
		say(lengthy + at, 6000);
		CHECK(!poll_link());
	}
	say(barrier_reply, sizeof barrier_reply);
	CHECK(poll_link() && m.type == OPENFLOW_BARRIER_REPLY && !poll_link());
}

static void test_slow_reader(void)
{
	uint8_t message[OPENFLOW_MESSAGE_MAX], *all = malloc(1 << 20);
	uint32_t sent = 0;
	size_t len, got = 0, expected = 0;

	test("a switch that does not read: what fits is kept, more is refused, and nothing is lost or twice");
	memset(message, 0, sizeof message);
	while (openflow_link_send(&l, message, openflow_barrier(message, ++sent)) == 0)
		CHECK(sent < 100000);
	sent--;
	CHECK(sent > OPENFLOW_LINK_OUT / OPENFLOW_HEADER && l.up);
	do {
		poll_link();
		len = heard(all + got, (1 << 20) - got);
		got += len;
	} while (len);
	CHECK_EQ(got, (size_t)sent * OPENFLOW_HEADER);
	for (size_t at = 0; at < got; at += OPENFLOW_HEADER)
		expected += openflow_parse(&m, all + at, OPENFLOW_HEADER) == 1 && m.xid == at / OPENFLOW_HEADER + 1;
	CHECK_EQ(expected, sent);
	free(all);
}

static void test_loss(void)
{
	uint8_t bytes[64];

	test("the switch ends the connection: down, and up again later");
	hang_up();
	CHECK_EQ(l.error, -ECONNRESET);
	come_up();
	CHECK_EQ(l.ups, 2);
	test("a silent switch is asked after a second, and given up after three");
	now_us += OPENFLOW_LINK_ECHO_US + 1;
	CHECK(!poll_link());
	CHECK(heard(bytes, sizeof bytes) == 8 && bytes[1] == OPENFLOW_ECHO_REQUEST);
	say((uint8_t[]){ 4, 3, 0, 8, 0, 0, 0, 0 }, 8);
	CHECK(!poll_link() && l.up);
	now_us += OPENFLOW_LINK_SILENCE_US;
	CHECK(!poll_link() && l.up);
	now_us++;
	CHECK(!poll_link() && !l.up);
	CHECK_EQ(l.error, -ETIMEDOUT);
	close(peer);
	test("what is no OpenFlow ends it");
	come_up();
	say("HTTP/1.1 400 Bad Request\r\n\r\n", 28);
	CHECK(!poll_link() && l.up); /* its length, 20527, is waited for… */
	now_us += OPENFLOW_LINK_SILENCE_US + 1;
	CHECK(!poll_link() && !l.up); /* …but not long */
	close(peer);
	come_up();
	say((uint8_t[]){ 4, 21, 0, 3, 0, 0, 0, 0 }, 8);
	CHECK(!poll_link() && !l.up);
	CHECK_EQ(l.error, -EPROTO);
	close(peer);
}

static void test_versions(void)
{
	test("a switch that does not speak OpenFlow 1.3, and one that says so: that is the reason");
	now_us += OPENFLOW_LINK_RETRY_MAX_US;
	poll_link();
	peer = accept(listener, NULL, NULL);
	say((uint8_t[]){ 1, 0, 0, 8, 0, 0, 0, 1 }, 8);
	CHECK(!poll_link() && !l.up);
	CHECK_EQ(l.error, -EPROTONOSUPPORT);
	close(peer);
	now_us += OPENFLOW_LINK_RETRY_MAX_US;
	poll_link();
	peer = accept(listener, NULL, NULL);
	say((uint8_t[]){ 1, 1, 0, 12, 0, 0, 0, 1, 0, 0, 0, 0 }, 12);
	CHECK(!poll_link() && !l.up);
	CHECK_EQ(l.error, -EPROTONOSUPPORT);
	close(peer);
}

int main(void)
{
	char path[64];

	if (!mkdtemp(folder))
		return 1;
	test_nobody();
	test_talk();
	test_long_message();
	test_slow_reader();
	test_loss();
	test_versions();
	openflow_link_close(&l);
	close(listener);
	snprintf(path, sizeof path, "%s/br-lan.mgmt", folder);
	unlink(path);
	rmdir(folder);
	return done();
}
