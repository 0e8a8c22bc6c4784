#include "enrol/file_set.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BESIDE = FILE_SET_PATH + 8 };

void file_set_begin(struct file_set *s)
{
	memset(s, 0, sizeof *s);
	s->owner = (uid_t)-1;
	s->group = (gid_t)-1;
}

int file_set_add(struct file_set *s, const char *path, const char *text, mode_t mode, char *err, size_t err_size)
{
	unsigned i;

	if (!path[0])
		return 0;
	for (i = 0; i < s->n; i++)
		if (!strcmp(s->file[i].path, path)) {
			if (s->file[i].text == text)
				return 0;
			snprintf(err, err_size,
			         "the configuration names %s for two things: give each a file of its own", path);
			return -EINVAL;
		}
	if (s->n == FILE_SET_MAX || strlen(path) >= FILE_SET_PATH) {
		snprintf(err, err_size, "%s: too long, or one file too many", path);
		return -EINVAL;
	}
	memcpy(s->file[s->n].path, path, strlen(path) + 1);
	s->file[s->n].text = text;
	s->file[s->n++].mode = mode;
	return 0;
}

static void beside(char out[BESIDE], const char *path, const char *suffix)
{
	snprintf(out, BESIDE, "%s%s", path, suffix);
}

static int open_new(const char *path, mode_t mode)
{
	unlink(path); /* of an attempt that a power cut ended, or somebody else's: never written through */
	return open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
}

static int failed_at(const char *path, int ret, char *err, size_t err_size)
{
	snprintf(err, err_size, "cannot write %s: %s; its folder must be there and writable, with room", path,
	         strerror(-ret));
	return ret;
}

int file_set_check(const struct file_set *s, char *err, size_t err_size)
{
	char path[BESIDE];
	unsigned i;

	for (i = 0; i < s->n; i++) {
		int fd;

		beside(path, s->file[i].path, ".new");
		fd = open_new(path, 0600);
		if (fd < 0)
			return failed_at(s->file[i].path, -errno, err, err_size);
		close(fd);
		unlink(path);
	}
	return 0;
}

static int write_new(const struct file_set *s, unsigned i)
{
	const char *text = s->file[i].text;
	size_t len = strlen(text);
	char path[BESIDE];
	int fd, ret = 0;

	beside(path, s->file[i].path, ".new");
	fd = open_new(path, s->file[i].mode);
	if (fd < 0)
		return -errno;
	while (len && !ret) {
		const ssize_t n = write(fd, text, len);

		if (n < 0 && errno != EINTR)
			ret = -errno;
		if (n > 0) {
			text += n;
			len -= (size_t)n;
		}
	}
	if (!ret && fchmod(fd, s->file[i].mode) < 0) /* whatever the umask is */
		ret = -errno;
	if (!ret && s->owner != (uid_t)-1 && fchown(fd, s->owner, s->group) < 0)
		ret = -errno;
	if (!ret && fsync(fd) < 0)
		ret = -errno;
	if (close(fd) < 0 && !ret)
		ret = -errno;
	return ret;
}

/* The old file gets a second name, so that it can come back. */
static int save_old(const char *path)
{
	char old[BESIDE];

	beside(old, path, ".old");
	unlink(old);
	return link(path, old) < 0 && errno != ENOENT ? -errno : 0;
}

static int move_in_place(const char *path)
{
	char new[BESIDE];

	beside(new, path, ".new");
	return rename(new, path) < 0 ? -errno : 0;
}

static void restore_old(const char *path)
{
	char old[BESIDE];

	beside(old, path, ".old");
	if (rename(old, path) < 0 && errno == ENOENT)
		unlink(path); /* there was none */
}

static void sync_folder(const char *path)
{
	char folder[FILE_SET_PATH];
	char *slash;
	int fd;

	snprintf(folder, sizeof folder, "%s", path);
	slash = strrchr(folder, '/');
	if (slash)
		slash[slash == folder] = '\0';
	fd = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return; /* the files are in place; whether a power cut now keeps them is the file system's */
	fsync(fd);
	close(fd);
}

int file_set_write(const struct file_set *s, char *err, size_t err_size)
{
	unsigned written, kept = 0, placed = 0, i;
	char path[BESIDE];
	int ret = 0;

	for (written = 0; written < s->n && !ret; written++)
		if ((ret = write_new(s, written)))
			failed_at(s->file[written].path, ret, err, err_size);
	for (; kept < s->n && !ret; kept++)
		if ((ret = save_old(s->file[kept].path)))
			failed_at(s->file[kept].path, ret, err, err_size);
	for (; placed < s->n && !ret; placed++)
		if ((ret = move_in_place(s->file[placed].path))) {
			failed_at(s->file[placed].path, ret, err, err_size);
			break;
		}
	for (i = 0; ret && i < placed; i++)
		restore_old(s->file[i].path);
	for (i = 0; ret && i < written; i++) {
		beside(path, s->file[i].path, ".new");
		unlink(path);
	}
	for (i = 0; i < kept; i++) {
		beside(path, s->file[i].path, ".old");
		unlink(path);
	}
	for (i = 0; i < s->n && !ret; i++)
		sync_folder(s->file[i].path);
	return ret;
}
