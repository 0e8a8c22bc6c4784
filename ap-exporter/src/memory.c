#include "memory.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

/* A mapping, as its first line in smaps says; what follows is about it. */
struct mapping {
	uintptr_t from, to;
	bool clean; /* of a file, and not to be written: what is resident can be read again */
};

static void begin(struct mapping *m, const char *line)
{
	struct mapping next;
	unsigned long inode;
	char flags[5];

	if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*s %*s %lu", &next.from, &next.to, flags, &inode) != 4)
		return;
	next.clean = inode && (!strcmp(flags, "r-xp") || !strcmp(flags, "r--p"));
	*m = next;
}

/* A page that was written to before it became read-only (relocations) is anonymous, and would be lost. */
static void give_back(struct mapping *m, const char *line)
{
	unsigned long kb;

	if (!m->clean || sscanf(line, "Anonymous: %lu kB", &kb) != 1)
		return;
	if (!kb)
		madvise((void *)m->from, m->to - m->from, MADV_DONTNEED);
	m->clean = false;
}

void memory_trim(void)
{
	char text[4096 + 256]; /* the longest path, and what stands before it */
	struct mapping mapping = { 0 };
	size_t have = 0;
	ssize_t n;
	int fd;

#ifdef __GLIBC__
	malloc_trim(0);
#endif
	fd = open("/proc/self/smaps", O_RDONLY | O_CLOEXEC); /* stdio would allocate, and this is the tick thread */
	if (fd < 0)
		return; /* no /proc, or a kernel without this: nothing to gain */
	while ((n = read(fd, text + have, sizeof text - 1 - have)) > 0) {
		char *line = text, *eol;

		have += (size_t)n;
		text[have] = '\0';
		for (; (eol = strchr(line, '\n')); line = eol + 1) {
			*eol = '\0';
			begin(&mapping, line);
			give_back(&mapping, line);
		}
		have -= (size_t)(line - text);
		memmove(text, line, have);
	}
	close(fd);
}
