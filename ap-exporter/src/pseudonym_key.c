#include "pseudonym_key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int pseudonym_key_read(const char *path, uint8_t key[PSEUDONYM_KEY_BYTES], char *err, size_t err_size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0) {
		n = -errno;
		snprintf(err, err_size, "cannot read pseudonym key %s: %s", path, strerror(errno));
		return (int)n;
	}
	n = read(fd, key, PSEUDONYM_KEY_BYTES);
	close(fd);
	if (n == PSEUDONYM_KEY_BYTES)
		return 0;
	snprintf(err, err_size, "pseudonym key %s is shorter than %d bytes; make one with: head -c %d /dev/urandom",
		 path, PSEUDONYM_KEY_BYTES, PSEUDONYM_KEY_BYTES);
	return -EINVAL;
}
