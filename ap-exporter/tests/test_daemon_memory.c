/* What is given back of memory, and what must not be: pages that were written to, though they are read-only now. */
#include "check.h"
#include "memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Resident KiB of the mapping that begins at `at`; -1: there is none. */
static long resident_kb(const void *at)
{
	char line[512], begin[32];
	bool here = false;
	long kb = -1;
	FILE *f = fopen("/proc/self/smaps", "r");

	snprintf(begin, sizeof begin, "%lx-", (unsigned long)at);
	while (f && kb < 0 && fgets(line, sizeof line, f)) {
		here |= !strncmp(line, begin, strlen(begin));
		if (here)
			sscanf(line, "Rss: %ld kB", &kb);
	}
	if (f)
		fclose(f);
	return kb;
}

static char *map(int fd, int protection, size_t size)
{
	char *p = mmap(NULL, size, protection, MAP_PRIVATE, fd, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

int main(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), size = 4 * page;
	char name[] = "/tmp/test_daemon_memory_XXXXXX";
	char *constants, *relocated, *written, *bytes = malloc(size);
	int fd = mkstemp(name);

	CHECK(fd >= 0 && bytes);
	memset(bytes, 'c', size);
	CHECK_EQ(write(fd, bytes, size), (ssize_t)size);
	constants = map(fd, PROT_READ, size);
	relocated = map(fd, PROT_READ | PROT_WRITE, size);
	written = map(fd, PROT_READ | PROT_WRITE, size);
	for (size_t i = 0; i < size; i += page)
		CHECK_EQ(constants[i] + relocated[i] + written[i], 3 * 'c');
	relocated[page] = written[page] = 'w';
	CHECK_EQ(mprotect(relocated, size, PROT_READ), 0);
	CHECK_EQ(resident_kb(constants), (long)(size / 1024));
	memory_trim();

	test("constants are given back, and are there when they are read again");
	CHECK_EQ(resident_kb(constants), 0);
	CHECK(!memcmp(constants, bytes, size));
	test("what was written to stays, read-only or not");
	CHECK_EQ(relocated[page], 'w');
	CHECK_EQ(written[page], 'w');
	unlink(name);
	close(fd);
	free(bytes);
	return done();
}
