/* check.h: the test programs' own harness. Each `test(name)` block prints one line; done() prints the sum. */
#ifndef OAL_CHECK_H
#define OAL_CHECK_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned check_passed, check_failed, check_skipped, check_errors;
static const char *check_name;

static inline void check_end(void)
{
	if (!check_name)
		return;
	printf("%s %s\n", check_errors ? "not ok" : "ok", check_name);
	*(check_errors ? &check_failed : &check_passed) += 1;
	check_name = NULL;
}

/* Begins a test; its name is a sentence about what holds. */
static inline void test(const char *name)
{
	check_end();
	check_name = name;
	check_errors = 0;
}

/* What cannot be tested here, and why. */
static inline void skip(const char *name, const char *why)
{
	check_end();
	printf("skip %s: %s\n", name, why);
	check_skipped++;
}

static inline int done(void)
{
	check_end();
	printf("# %u passed, %u failed, %u skipped\n", check_passed, check_failed, check_skipped);
	return check_failed || (!check_passed && !check_skipped);
}

#define CHECK(condition) \
	do { \
		if (!(condition)) { \
			if (check_errors++ < 10) \
				printf("# %s:%d: %s\n", __FILE__, __LINE__, #condition); \
		} \
	} while (0)
#define CHECK_EQ(got, want) \
	do { \
		const int64_t got_ = (int64_t)(got), want_ = (int64_t)(want); \
		if (got_ != want_ && check_errors++ < 10) \
			printf("# %s:%d: %s is %" PRId64 ", not %" PRId64 "\n", __FILE__, __LINE__, #got, got_, \
			       want_); \
	} while (0)

/* A whole file; exits with a message if it cannot be read, since every test on it would be empty. */
static inline uint8_t *check_file(const char *path, size_t *len)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data = NULL;
	size_t n = 0, room = 0;

	if (!f) {
		printf("# cannot open %s: run from ap-exporter/\n", path);
		exit(1);
	}
	do {
		if (n == room && !(data = realloc(data, room = room ? 2 * room : 65536)))
			exit(1);
		n += fread(data + n, 1, room - n, f);
	} while (!feof(f) && !ferror(f));
	fclose(f);
	*len = n;
	return data;
}

/* xorshift64*: the same numbers everywhere. */
static inline uint64_t check_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717);
}

#endif
