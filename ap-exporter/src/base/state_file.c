#include "base/state_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH = 512 };

static int path_of(char *out, const char *folder, const char *ap_id, const char *kind, const char *suffix)
{
	const int n = snprintf(out, PATH, "%s/%s.%s%s", folder, ap_id, kind, suffix);

	return n < 0 || n >= PATH ? -ENAMETOOLONG : 0;
}

int state_file_check(const char *folder, char *err, size_t err_size)
{
	struct stat s;
	int ret = 0;

	if (stat(folder, &s) < 0)
		ret = -errno;
	else if (!S_ISDIR(s.st_mode))
		ret = -ENOTDIR;
	else if (access(folder, W_OK | X_OK) < 0)
		ret = -errno;
	if (ret)
		snprintf(err, err_size,
		         "agent: nothing can be kept in 'state_dir' %s: %s; make the folder, owned by the exporter's "
		         "user",
		         folder, strerror(-ret));
	return ret;
}

int state_file_read(const char *folder, const char *ap_id, const char *kind, size_t most, uint8_t **bytes, size_t *len)
{
	char path[PATH];
	struct stat s;
	ssize_t n = 0;
	int ret = path_of(path, folder, ap_id, kind, ""), fd;

	if (ret)
		return ret;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	*bytes = NULL;
	if (fstat(fd, &s) < 0)
		ret = -errno;
	else if (!S_ISREG(s.st_mode))
		ret = -EINVAL;
	else if ((uintmax_t)s.st_size > most)
		ret = -EFBIG;
	else if (!(*bytes = malloc((size_t)s.st_size + 1)))
		ret = -ENOMEM;
	for (*len = 0; !ret && *len < (size_t)s.st_size; *len += (size_t)n) {
		n = read(fd, *bytes + *len, (size_t)s.st_size - *len);
		if (n < 0)
			ret = -errno;
		if (n <= 0)
			break;
	}
	close(fd);
	if (ret) {
		free(*bytes);
		*bytes = NULL;
	}
	return ret;
}

static int write_all(int fd, const uint8_t *bytes, size_t len)
{
	while (len) {
		const ssize_t n = write(fd, bytes, len);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			bytes += n;
			len -= (size_t)n;
		}
	}
	return fsync(fd) < 0 ? -errno : 0;
}

static int sync_folder(const char *folder)
{
	const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int ret = 0;

	if (fd < 0)
		return -errno;
	if (fsync(fd) < 0 && errno != EINVAL && errno != EROFS) /* not every file system knows it of a folder */
		ret = -errno;
	close(fd);
	return ret;
}

int state_file_write(const char *folder, const char *ap_id, const char *kind, const void *bytes, size_t len)
{
	char path[PATH], beside[PATH];
	int ret = path_of(path, folder, ap_id, kind, ""), fd;

	ret = ret ? ret : path_of(beside, folder, ap_id, kind, ".new");
	if (ret)
		return ret;
	fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	ret = write_all(fd, bytes, len);
	if (close(fd) < 0 && !ret)
		ret = -errno;
	if (!ret && rename(beside, path) < 0)
		ret = -errno;
	if (ret)
		unlink(beside);
	return ret ? ret : sync_folder(folder);
}

int state_file_remove(const char *folder, const char *ap_id, const char *kind)
{
	char path[PATH];
	int ret = path_of(path, folder, ap_id, kind, "");

	if (ret)
		return ret;
	if (unlink(path) < 0)
		return errno == ENOENT ? 0 : -errno;
	return sync_folder(folder);
}

unsigned state_file_list(const char *folder, const char *first, const char *kind, char *names, size_t size,
                         unsigned most)
{
	const size_t before = strlen(first), after = strlen(kind) + 1;
	const struct dirent *entry;
	DIR *d = opendir(folder);
	unsigned n = 0;

	while (d && n < most && (entry = readdir(d))) {
		const size_t len = strlen(entry->d_name);
		const char *end = entry->d_name + len - after;

		if (len <= before + after || len - before - after >= size || strncmp(entry->d_name, first, before) ||
		    *end != '.' || strcmp(end + 1, kind))
			continue;
		memcpy(names + n * size, entry->d_name + before, len - before - after);
		names[n++ * size + len - before - after] = '\0';
	}
	if (d)
		closedir(d);
	return n;
}
