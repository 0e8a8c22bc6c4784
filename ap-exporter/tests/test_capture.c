/* test_capture.c: capture files: whole, cut short, damaged, on a full disk; and what dump makes of them. */
#include "wire/batch_encode.h"
#include "wire/capture_file.h"
#include "check.h"
#include "wire/dump.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

static char path[] = "build/test-capture-XXXXXX";
static uint8_t batch[300];

static struct capture_record record(unsigned i)
{
	const struct batch_header h = {
		.ap_id = i % 2 ? "ap-1" : "ap-2", .boot_id = 9, .seq = 1 + i / 2, .t0_us = 1000000 + i, .tick_us = 4000,
		.ticks = 63, .schema_revision = 1,
	};
	struct oal_channel_row row = {.frequency_mhz = 2412, .active_ms = 1 + i};
	static const uint32_t zero, one = 1;
	const char *const names[] = {"wlan\"0"};
	struct batch_header with_names = h;
	struct batch_rows rows = {&oal_tables[OAL_CHANNEL], (const uint8_t *)&row, &zero, 1, &one, 1, NULL};
	struct batch_writer w;

	with_names.names = names;
	with_names.n_names = 1;
	batch_begin(&w, batch, sizeof batch);
	CHECK(batch_write_header(&w, &with_names) && batch_write_rows(&w, &rows));
	return (struct capture_record){OAL_TOPIC_SAMPLES, batch, batch_len(&w), h.t0_us};
}

static void write_file(unsigned n)
{
	struct capture_writer w;
	unsigned i;

	CHECK_EQ(capture_create(&w, path), 0);
	for (i = 0; i < n; i++) {
		const struct capture_record r = record(i);

		CHECK_EQ(capture_append(&w, &r), 0);
	}
	CHECK_EQ(capture_close(&w), 0);
}

static unsigned count(const uint8_t *bytes, size_t len, struct capture_reader *reader)
{
	struct capture_record r;
	unsigned n = 0;

	if (capture_open(reader, bytes, len))
		return 0;
	while (capture_next(reader, &r)) {
		CHECK(r.topic == OAL_TOPIC_SAMPLES && r.len > 30 && r.t0_us >= 1000000 && r.t0_us < 1000020);
		n++;
	}
	return n;
}

static void test_damage(void)
{
	struct capture_reader reader;
	uint8_t *bytes, *copy;
	size_t len, cut, i;
	uint64_t random = 3;

	test("what was written is what is read");
	write_file(20);
	CHECK_EQ(capture_load(path, &bytes, &len), 0);
	CHECK_EQ(count(bytes, len, &reader), 20);
	CHECK(reader.skipped_bytes == 0 && reader.breaks == 0);
	test("a file that was cut short loses its last record only");
	for (cut = 0; cut < len; cut++) {
		unsigned n;

		copy = malloc(cut ? cut : 1);
		memcpy(copy, bytes, cut);
		n = count(copy, cut, &reader);
		CHECK(cut < 8 || n == (cut - 8) * 20 / (len - 8));
		free(copy);
	}
	test("damage costs the records that it hits; the next good one is found");
	copy = malloc(len);
	for (i = 0; i < 500; i++) {
		const size_t at = 8 + check_random(&random) % (len - 8);

		memcpy(copy, bytes, len);
		copy[at] ^= (uint8_t)(1 + check_random(&random) % 255);
		CHECK_EQ(count(copy, len, &reader), 19);
		CHECK(reader.breaks == 1 && reader.skipped_bytes == (len - 8) / 20);
	}
	memcpy(copy, bytes, 8);
	for (i = 8; i < len; i++)
		copy[i] = (uint8_t)check_random(&random);
	CHECK_EQ(count(copy, len, &reader), 0);
	CHECK_EQ(reader.skipped_bytes, len - 8);
	test("another file is refused");
	copy[0] = 'X';
	CHECK_EQ(capture_open(&reader, copy, len), -EINVAL);
	free(copy);
	CHECK_EQ(capture_load("build/no/such/file", &copy, &len), -ENOENT);
	CHECK_EQ(capture_load("build", &copy, &len), -EINVAL);
	free(bytes);
}

/* The largest file that this process may write stands for a full disk. */
static void test_full(void)
{
	struct rlimit before, limit;
	struct capture_reader reader;
	struct capture_record r = record(1);
	struct capture_writer w;
	uint8_t *bytes;
	size_t len;

	test("a full disk: the error is returned, the file stays whole, and writing goes on when there is room");
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &before);
	CHECK_EQ(capture_create(&w, path), 0);
	CHECK_EQ(capture_append(&w, &r), 0);
	limit = before;
	limit.rlim_cur = w.size + 40;
	CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
	CHECK_EQ(capture_append(&w, &r), -EFBIG);
	setrlimit(RLIMIT_FSIZE, &before);
	CHECK_EQ(capture_append(&w, &r), 0);
	CHECK_EQ(capture_close(&w), 0);
	CHECK_EQ(capture_load(path, &bytes, &len), 0);
	CHECK_EQ(count(bytes, len, &reader), 2);
	CHECK_EQ(reader.skipped_bytes, 0);
	free(bytes);
}

static char *output(int (*fn)(const char *, FILE *), const char *file)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	CHECK_EQ(fn(file, f), 0);
	fclose(f);
	return text;
}

static void test_dump(void)
{
	const struct capture_record r = record(5);
	unsigned i, lines = 0;
	char *text;
	FILE *f;

	test("dump prints each row as JSON, with names spelled out");
	write_file(20);
	text = output(dump_rows, path);
	for (i = 0; text[i]; i++)
		lines += text[i] == '\n';
	CHECK_EQ(lines, 20);
	CHECK(strstr(text, "{\"table\":\"channel\",\"ap_id\":\"ap-1\",\"boot_id\":\"9\",\"seq\":3,\"ts_us\":1000005,"
	                   "\"device\":\"wlan\\u00220\",\"frequency_mhz\":2412,\"width_mhz\":0,\"active_ms\":6,"));
	free(text);
	test("count counts per AP and in all");
	text = output(dump_count, path);
	CHECK(strstr(text, "{\"batches\":{\"ap.samples.v1\":20,") == text);
	CHECK(strstr(text, "\"channel\":20,") && strstr(text, "\"ap-2\":{\"batches\":{\"ap.samples.v1\":10,") &&
	      strstr(text, "\"malformed\":0"));
	free(text);
	test("a batch alone and golden records are read too");
	f = fopen(path, "wb");
	fwrite(r.bytes, 1, r.len, f);
	fclose(f);
	text = output(dump_count, path);
	CHECK(strstr(text, "\"channel\":1,"));
	free(text);
	text = output(dump_count, "../schema/golden/features.bin");
	CHECK(strstr(text, "\"ap.packets.v1\":38,"));
	free(text);
	text = output(dump_rows, "../schema/golden/refused.bin");
	CHECK(strstr(text, "{\"refused\":\"truncated\",\"topic\":\"ap.samples.v1\",") == text);
	free(text);
}

int main(void)
{
	const int fd = mkstemp(path);

	if (fd < 0) {
		printf("# cannot make a file in build/: run from ap-exporter/\n");
		return 1;
	}
	close(fd);
	test_damage();
	test_full();
	test_dump();
	unlink(path);
	return done();
}
