#include "memory.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

/* Only code of files: a private page that was written to would be lost. */
static void give_back(const char *line)
{
	uintptr_t from, to;
	unsigned long inode;
	char flags[5];

	if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*s %*s %lu", &from, &to, flags, &inode) == 4 && inode &&
	    !strcmp(flags, "r-xp"))
		madvise((void *)from, to - from, MADV_DONTNEED);
}

void memory_trim(void)
{
	char text[4096 + 256]; /* the longest path, and what stands before it */
	size_t have = 0;
	ssize_t n;
	int fd;

#ifdef __GLIBC__
	malloc_trim(0);
#endif
	fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC); /* stdio would allocate, and this is the tick thread */
	if (fd < 0)
		return; /* no /proc: nothing to gain */
	while ((n = read(fd, text + have, sizeof text - 1 - have)) > 0) {
		char *line = text, *eol;

		have += (size_t)n;
		text[have] = '\0';
		for (; (eol = strchr(line, '\n')); line = eol + 1) {
			*eol = '\0';
			give_back(line);
		}
		have -= (size_t)(line - text);
		memmove(text, line, have);
	}
	close(fd);
}
