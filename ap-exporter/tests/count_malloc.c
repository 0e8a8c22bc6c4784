/*
 * Preloaded into the daemon by tests/outside.py: counts the main thread's allocations in a file that the test maps.
 * glibc's own entry points are called directly, so that nothing has to be looked up.
 */
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);

static volatile uint64_t *counter;

__attribute__((constructor)) static void map_counter(void)
{
	const char *path = getenv("COUNT_MALLOC_FILE");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *p = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *counter, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p != MAP_FAILED)
		counter = p;
}

static void count(void)
{
	if (counter && syscall(SYS_gettid) == getpid())
		++*counter;
}

void *malloc(size_t n)
{
	count();
	return __libc_malloc(n);
}

void *calloc(size_t n, size_t m)
{
	count();
	return __libc_calloc(n, m);
}

void *realloc(void *p, size_t n)
{
	count();
	return __libc_realloc(p, n);
}
