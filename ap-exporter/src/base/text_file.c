#include "base/text_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int text_file_read(char **text, size_t *len, const char *path, size_t most)
{
	FILE *f = fopen(path, "re");
	char *all = f ? malloc(most + 1) : NULL;
	int ret = f ? 0 : -errno;

	*text = NULL;
	*len = 0;
	if (f && !all)
		ret = -ENOMEM;
	if (!ret) {
		*len = fread(all, 1, most + 1, f);
		ret = ferror(f) ? -EIO : *len > most ? -EFBIG : 0;
	}
	if (f)
		fclose(f);
	if (!ret && !(*text = malloc(*len + 1)))
		ret = -ENOMEM;
	if (!ret) {
		memcpy(*text, all, *len);
		(*text)[*len] = '\0';
	}
	if (all)
		explicit_bzero(all, *len); /* it may be a key */
	free(all);
	return ret;
}

bool text_file_may_be(const char *path)
{
	return path && path[0] && (access(path, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR));
}
