#include "sender/sender_ends.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	NOTICE = 1024, /* bytes of one: some 450 */
	AT_ONCE = 16, /* of them a system call */
	SOCKET_BUFFER = 1 << 22, /* bytes: some 4,000 wait; without CAP_NET_ADMIN what net.core.rmem_max lets */
};

struct sender_ends {
	int fd;
	struct iovec iov[AT_ONCE];
	struct mmsghdr messages[AT_ONCE];
	uint8_t bytes[AT_ONCE][NOTICE] __attribute__((aligned(8)));
};

int sender_ends_open(struct sender_ends **out)
{
	const struct sockaddr_nl here = {
		.nl_family = AF_NETLINK,
		.nl_groups = 1u << (SKNLGRP_INET_TCP_DESTROY - 1) | 1u << (SKNLGRP_INET6_TCP_DESTROY - 1),
	};
	struct sender_ends *e = calloc(1, sizeof *e);
	int size = SOCKET_BUFFER, ret;

	if (!e)
		return -ENOMEM;
	e->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
	if (e->fd >= 0 && setsockopt(e->fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size) < 0)
		setsockopt(e->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
	if (e->fd < 0 || bind(e->fd, (const struct sockaddr *)&here, sizeof here) < 0) {
		ret = -errno;
		sender_ends_close(e);
		return ret;
	}
	for (unsigned i = 0; i < AT_ONCE; i++) {
		e->iov[i] = (struct iovec){ e->bytes[i], NOTICE };
		e->messages[i].msg_hdr = (struct msghdr){ .msg_iov = &e->iov[i], .msg_iovlen = 1 };
	}
	*out = e;
	return 0;
}

void sender_ends_close(struct sender_ends *e)
{
	if (!e)
		return;
	if (e->fd >= 0)
		close(e->fd);
	free(e);
}

static void read_notice(const uint8_t *bytes, size_t len, void (*cb)(void *ctx, const struct sender_look *), void *ctx)
{
	struct sender_look look;
	struct nlmsghdr h;

	if (len < sizeof h)
		return;
	memcpy(&h, bytes, sizeof h);
	if (h.nlmsg_type == SOCK_DIAG_BY_FAMILY && h.nlmsg_len >= NLMSG_HDRLEN && h.nlmsg_len <= len &&
	    inet_diag_parse(bytes + NLMSG_HDRLEN, h.nlmsg_len - NLMSG_HDRLEN, &look))
		cb(ctx, &look);
}

unsigned sender_ends_read(struct sender_ends *e, unsigned most, void (*cb)(void *ctx, const struct sender_look *),
			  void *ctx, bool *lost)
{
	unsigned read = 0;

	*lost = false;
	while (read < most) {
		const int n = recvmmsg(e->fd, e->messages, AT_ONCE, 0, NULL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == ENOBUFS) { /* said once, and the next call reads what was kept */
			*lost = true;
			continue;
		}
		if (n <= 0)
			break;
		for (int i = 0; i < n; i++)
			read_notice(e->bytes[i], e->messages[i].msg_len, cb, ctx);
		read += (unsigned)n;
		if (n < AT_ONCE)
			break;
	}
	return read;
}
