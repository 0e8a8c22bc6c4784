/* file_set.h: files that belong together, such as a key and its certificate: replaced all or none. */
#ifndef OAL_FILE_SET_H
#define OAL_FILE_SET_H

#include <stddef.h>
#include <sys/types.h>

enum { FILE_SET_MAX = 8, FILE_SET_PATH = 512 };

struct file_set {
	struct {
		char path[FILE_SET_PATH];
		const char *text; /* the caller's */
		mode_t mode;
	} file[FILE_SET_MAX];
	unsigned n;
	uid_t owner; /* (uid_t)-1: the user who writes */
	gid_t group;
};

void file_set_begin(struct file_set *);
/* An empty path is left out; a path that is there already must be for the same text. 0, or -EINVAL with what to do in
 * `err`. */
int file_set_add(struct file_set *, const char *path, const char *text, mode_t mode, char *err, size_t err_size);
/* Could they be written? Leaves nothing. 0, or negative errno with the path in `err`. */
int file_set_check(const struct file_set *, char *err, size_t err_size);
/* All are written beside and synced before the first takes its place. 0, or negative errno with the path in `err`: then
 * the old ones are there. */
int file_set_write(const struct file_set *, char *err, size_t err_size);

#endif
