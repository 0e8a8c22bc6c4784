#include "status.h"

#include "base/version.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define DOCUMENT_MAX                                                                                                   \
	262144 /* with an agent a line for each of up to 512 virtual APs; only what is written is resident */

struct status {
	int fd;
	status_fill fill;
	void *ctx;
	char path[sizeof ((struct sockaddr_un *)0)->sun_path];
	char document[DOCUMENT_MAX];
};

static int address(struct sockaddr_un *a, const char *path)
{
	*a = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (strlen(path) >= sizeof a->sun_path)
		return -ENAMETOOLONG;
	memcpy(a->sun_path, path, strlen(path) + 1);
	return 0;
}

static int connect_to(const char *path)
{
	struct sockaddr_un a;
	int ret = address(&a, path), fd;

	if (ret)
		return ret;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&a, sizeof a) < 0) {
		ret = -errno;
		close(fd);
		return ret;
	}
	return fd;
}

int status_open(struct status **out, const char *path, status_fill fill, void *ctx, char *err, size_t err_size)
{
	struct status *s = calloc(1, sizeof *s);
	struct sockaddr_un a;
	int ret = s ? address(&a, path) : -ENOMEM, other;

	if (ret)
		goto fail;
	other = connect_to(path);
	if (other >= 0) {
		close(other);
		free(s);
		snprintf(err, err_size,
			 "another " OAL_PROGRAM " answers at %s: stop it, or set another 'option status_socket'", path);
		return -EADDRINUSE;
	}
	if (other == -ECONNREFUSED)
		unlink(path);
	memcpy(s->path, path, strlen(path) + 1);
	s->fill = fill;
	s->ctx = ctx;
	s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->fd < 0) {
		ret = -errno;
		goto fail;
	}
	if (bind(s->fd, (struct sockaddr *)&a, sizeof a) < 0 || listen(s->fd, 4) < 0) {
		ret = -errno;
		close(s->fd);
		goto fail;
	}
	if (chmod(path, 0666) < 0) /* counters, nothing secret; connecting needs write permission */
		ret = -errno;
	if (!ret) {
		*out = s;
		return 0;
	}
	close(s->fd);
	unlink(path);
fail:
	free(s);
	snprintf(err, err_size, "cannot open status socket %s: %s", path, strerror(-ret));
	return ret;
}

int status_fd(const struct status *s)
{
	return s->fd;
}

void status_serve(void *status, int fd)
{
	struct status *s = status;
	int c = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	int size = 4 * DOCUMENT_MAX;
	size_t len;

	if (c < 0)
		return; /* it left again */
	setsockopt(c, SOL_SOCKET, SO_SNDBUF, &size, sizeof size); /* so that one send takes it whole */
	len = s->fill(s->ctx, s->document, sizeof s->document);
	if (send(c, s->document, len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		len = 0; /* it left again */
	close(c);
}

void status_close(struct status *s)
{
	if (!s)
		return;
	close(s->fd);
	unlink(s->path); /* may be forbidden after the change of user; the next start replaces it */
	free(s);
}

int status_read(const char *path, FILE *out)
{
	int fd = connect_to(path), ret = 0;
	char buf[1024];
	ssize_t n;

	if (fd < 0)
		return fd;
	while ((n = read(fd, buf, sizeof buf)) > 0)
		fwrite(buf, 1, (size_t)n, out);
	if (n < 0)
		ret = -errno;
	close(fd);
	return ret;
}
