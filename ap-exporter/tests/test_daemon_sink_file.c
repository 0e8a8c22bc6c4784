/*
 * The file sink on a disk that stands still. A disk of our own takes what is written, when it is let; it stands in for
 * the daemon's (the linker takes the first definition).
 */
#include "check.h"
#include "ship/sink.h"
#include "wire/capture_file.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { BATCH = 4000, MB = 1 << 20 }; /* bytes */

/* --- the disk */
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER; /* held: the disk stands still */
static atomic_uint closed, written;
static atomic_bool waiting, in_order;
static atomic_ullong newest; /* t0_us of the last batch that was written */

int capture_create(struct capture_writer *w, const char *path)
{
	*w = (struct capture_writer){ .size = 8 };
	newest = 0;
	written = 0;
	return 0;
}

int capture_append(struct capture_writer *w, const struct capture_record *r)
{
	waiting = true;
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
	waiting = false;
	if (r->t0_us <= newest || r->len != BATCH || r->bytes[0] != (uint8_t)r->t0_us)
		in_order = false;
	newest = r->t0_us;
	w->size += r->len + CAPTURE_HEADER_BYTES;
	written++;
	return 0;
}

int capture_close(struct capture_writer *w)
{
	closed++;
	return 0;
}

/* --- */
static void *sink;
static uint64_t sent;

static void open_sink(uint32_t max_mb, unsigned replays)
{
	static struct config c;
	char err[256];

	c.file.max_mb = max_mb;
	c.n_replay = replays;
	in_order = true;
	sent = 0;
	CHECK_EQ(sink_file.open(&sink, &c, err, sizeof err), 0);
}

static void send_some(unsigned n)
{
	static uint8_t bytes[BATCH];

	while (n--) {
		bytes[0] = (uint8_t)++sent;
		sink_file.send(sink, &(struct sink_batch){ "ap", 1, bytes, sizeof bytes, sent });
	}
}

static struct sink_stats stats(void)
{
	struct sink_stats s;

	sink_file.stats(sink, &s);
	return s;
}

static bool until(bool (*condition)(void))
{
	for (int i = 0; i < 60000; i++) {
		if (condition())
			return true;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	return false;
}

static bool is_waiting(void)
{
	return waiting;
}

static bool all_there(void)
{
	return stats().delivered + stats().let_go == sent;
}

static unsigned closed_before;

static bool is_closed(void)
{
	return closed > closed_before;
}

static void *send_from_a_replay(void *unused)
{
	send_some(2000);
	return NULL;
}

int main(void)
{
	struct sink_stats last;
	pthread_t replay;
	bool early;

	test("what is sent is written, in its order");
	open_sink(0, 0);
	send_some(100);
	CHECK(until(all_there));
	CHECK_EQ(written, 100);
	CHECK(in_order);

	test("a disk that stands still holds up nobody: the newest wait, what they push out is counted");
	pthread_mutex_lock(&gate);
	send_some(1);
	CHECK(until(is_waiting));
	send_some(2000);
	CHECK(stats().let_go > 1500);
	CHECK(strstr(stats().last_error, "too slow") != NULL);
	CHECK(stats().queued_bytes > MB / 2);
	pthread_mutex_unlock(&gate);
	CHECK(until(all_there));
	CHECK(in_order);
	CHECK_EQ(newest, sent);
	CHECK_EQ(stats().queued_bytes, 0);
	closed_before = closed;
	sink_file.close(sink, &last);
	CHECK_EQ(last.delivered + last.let_go, sent);
	CHECK_EQ(closed, closed_before + 1);

	test("what waits counts towards the size that the file may have");
	open_sink(1, 0);
	pthread_mutex_lock(&gate);
	send_some(1);
	CHECK(until(is_waiting));
	send_some(300);
	CHECK_EQ(stats().errors, 0);
	CHECK_EQ(stats().let_go, 301 - (MB - 8) / (BATCH + CAPTURE_HEADER_BYTES));
	pthread_mutex_unlock(&gate);
	CHECK(until(all_there));
	sink_file.close(sink, NULL);

	test("a replay waits for the disk, and loses nothing");
	open_sink(0, 1);
	pthread_mutex_lock(&gate);
	pthread_create(&replay, NULL, send_from_a_replay, NULL);
	CHECK(until(is_waiting));
	pthread_mutex_unlock(&gate);
	pthread_join(replay, NULL);
	sink_file.close(sink, &last);
	CHECK_EQ(last.delivered, 2000);
	CHECK_EQ(last.let_go, 0);
	CHECK(in_order);

	test("the end does not wait for a disk that never answers, and what is left is freed when it does");
	open_sink(0, 0);
	pthread_mutex_lock(&gate);
	send_some(10);
	CHECK(until(is_waiting));
	closed_before = closed;
	sink_file.close(sink, &last);
	early = is_closed();
	CHECK(!early);
	CHECK_EQ(last.let_go, 9);
	pthread_mutex_unlock(&gate);
	CHECK(until(is_closed));
	return done();
}
