#include "memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

void memory_trim(void)
{
	FILE *maps;
	char line[512];

#ifdef __GLIBC__
	malloc_trim(0);
#endif
	maps = fopen("/proc/self/maps", "re");
	if (!maps)
		return; /* no /proc: nothing to gain */
	while (fgets(line, sizeof line, maps)) {
		uintptr_t from, to;
		unsigned long inode;
		char flags[5];

		/* Only code of files: a private page that was written to would be lost. */
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*s %*s %lu", &from, &to, flags, &inode) == 4 && inode && !strcmp(flags, "r-xp"))
			madvise((void *)from, to - from, MADV_DONTNEED);
	}
	fclose(maps);
}
