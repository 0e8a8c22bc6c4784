/* How long connect() takes, in microseconds, with the process in one cgroup and then in another, again and again: what
 * a program on the first costs is the difference. Over loopback: the SYN, the answer and the end of the handshake are
 * in the call. Each connection is reset, so that none is left.
 *
 * usage: bench_connect CGROUP OTHER PAIRS CONNECTS [both]
 * Prints lines "MEDIAN_A MEDIAN_B P99_A P99_B", one a pair of blocks of CONNECTS; in which cgroup a pair begins changes
 * from one to the next. both: the listener is made in the block's cgroup too, so that connections it accepts are met by
 * the program as well. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { WARM_UP = 50 }; /* connects of a block that do not count */

static void check(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "bench_connect: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void enter(const char *cgroup)
{
	char path[512];
	int fd;

	snprintf(path, sizeof path, "%s/cgroup.procs", cgroup);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	check(fd >= 0 && write(fd, "0", 1) == 1, path);
	close(fd);
}

static int listener(struct sockaddr_in *at)
{
	socklen_t size = sizeof *at;
	const int fd = socket(AF_INET, SOCK_STREAM, 0);

	*at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	check(!bind(fd, (struct sockaddr *)at, size) && !listen(fd, 16), "listen");
	check(!getsockname(fd, (struct sockaddr *)at, &size), "getsockname");
	return fd;
}

static void end(int fd)
{
	const struct linger reset = {1, 0};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
	close(fd);
}

static int by_value(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void block(const char *cgroup, bool both, int outside, struct sockaddr_in at, unsigned n, uint64_t *took,
		  double *median_us, double *p99_us)
{
	int listens = outside;

	enter(cgroup);
	if (both)
		listens = listener(&at);
	for (unsigned i = 0; i < n + WARM_UP; i++) {
		const int near = socket(AF_INET, SOCK_STREAM, 0);
		const uint64_t began = now_ns();
		const int failed = connect(near, (struct sockaddr *)&at, sizeof at);
		const uint64_t ended = now_ns();
		int far;

		check(near >= 0 && !failed, "connect");
		far = accept(listens, NULL, NULL);
		check(far >= 0, "accept");
		end(near);
		end(far);
		if (i >= WARM_UP)
			took[i - WARM_UP] = ended - began;
	}
	if (both)
		close(listens);
	qsort(took, n, sizeof *took, by_value);
	*median_us = (double)(took[(n - 1) / 2] + took[n / 2]) / 2000;
	*p99_us = (double)took[(size_t)n * 99 / 100] / 1000;
}

int main(int argc, char **argv)
{
	const bool both = argc == 6 && !strcmp(argv[5], "both");
	const unsigned pairs = argc > 4 ? (unsigned)atoi(argv[3]) : 0, n = argc > 4 ? (unsigned)atoi(argv[4]) : 0;
	uint64_t *took = calloc(n, sizeof *took);
	double median[2], p99[2];
	struct sockaddr_in at;
	int outside;

	if (!pairs || !n || !took) {
		fprintf(stderr, "usage: bench_connect CGROUP OTHER PAIRS CONNECTS [both]\n");
		return 2;
	}
	enter(argv[2]);
	outside = listener(&at);
	for (unsigned i = 0; i < pairs; i++) {
		for (unsigned k = 0; k < 2; k++) {
			const unsigned which = (k + i) % 2;

			block(argv[1 + which], both, outside, at, n, took, &median[which], &p99[which]);
		}
		printf("%.3f %.3f %.3f %.3f\n", median[0], median[1], p99[0], p99[1]);
	}
	return 0;
}
