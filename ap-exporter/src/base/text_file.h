/* text_file.h: a small file, whole. */
#ifndef OAL_TEXT_FILE_H
#define OAL_TEXT_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* 0 with the file's bytes and a NUL after them, which the caller frees; or negative errno and NULL: -EFBIG for a file
 * of more than `most` bytes. */
int text_file_read(char **text, size_t *len, const char *path, size_t most);
/* Is there a file of this name, or might there be? Only one that is certainly absent is not: a folder that may not be
 * looked into can hold a kill file. NULL or empty: no name. */
bool text_file_may_be(const char *path);

#endif
