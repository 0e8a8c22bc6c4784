#include "netlink/netlink.h"

#include "base/clock.h"
#include "netlink/nl_attr.h"

#include <errno.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
	BUFFER = 32768, /* bytes: the kernel fills dump datagrams up to what recv() offers, at most so much */
	SOCKET_BUFFER = 1 << 19, /* bytes: 16 such datagrams may wait */
	MAX_DATAGRAMS = 1024, /* of one exchange: more mean that something is wrong */
	MAX_REQUESTS = 512, /* in one message: the most stations that an AP serves */
	AT_ONCE = 2, /* datagrams a system call: an answer, and the end of a dump */
};

struct netlink {
	int fd;
	uint32_t seq;
	struct iovec iov[MAX_REQUESTS];
	uint8_t buf[AT_ONCE][BUFFER] __attribute__((aligned(8)));
};

int netlink_open(struct netlink **out, int protocol)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct netlink *nl = calloc(1, sizeof *nl);
	int size = SOCKET_BUFFER, ret;

	if (!nl)
		return -ENOMEM;
	nl->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);
	if (nl->fd < 0) {
		ret = -errno;
		goto fail;
	}
	/* Without CAP_NET_ADMIN the size is bounded by net.core.rmem_max, which is enough for dumps. */
	if (setsockopt(nl->fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size) < 0)
		setsockopt(nl->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
	if (bind(nl->fd, (struct sockaddr *)&kernel, sizeof kernel) < 0 ||
	    connect(nl->fd, (struct sockaddr *)&kernel, sizeof kernel) < 0) {
		ret = -errno;
		goto fail;
	}
	*out = nl;
	return 0;
fail:
	netlink_close(nl);
	return ret;
}

void netlink_close(struct netlink *nl)
{
	if (!nl)
		return;
	if (nl->fd >= 0)
		close(nl->fd);
	free(nl);
}

void netlink_request(struct netlink_request *r, uint16_t type, uint16_t flags, const void *header, uint32_t header_len)
{
	struct nlmsghdr h = { .nlmsg_type = type, .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags) };

	memset(r, 0, sizeof *r);
	h.nlmsg_len = NLMSG_HDRLEN + header_len;
	memcpy(r->bytes, &h, sizeof h);
	memcpy(r->bytes + NLMSG_HDRLEN, header, header_len);
	r->len = NLMSG_ALIGN(h.nlmsg_len);
}

void netlink_append(struct netlink_request *r, uint16_t type, const void *data, uint16_t len)
{
	uint16_t head[2] = { (uint16_t)(4 + len), type };
	uint32_t total = r->len + NLMSG_ALIGN(4u + len);

	if (total > NETLINK_REQUEST_MAX)
		return;
	memcpy(r->bytes + r->len, head, sizeof head);
	memcpy(r->bytes + r->len + 4, data, len);
	r->len = total;
	memcpy(r->bytes, &total, sizeof total); /* nlmsg_len */
}

static void number(struct netlink_request *r, uint32_t seq)
{
	memcpy(r->bytes + offsetof(struct nlmsghdr, nlmsg_seq), &seq, sizeof seq);
}

/* Reads datagrams until the walk is done: 1, or `most` of them: 0. The kernel answers inside send() and recv(): what is
 * not there then will not come. */
static int receive_some(struct netlink *nl, struct netlink_walk *w, unsigned most)
{
	struct iovec into[AT_ONCE] = { { nl->buf[0], BUFFER }, { nl->buf[1], BUFFER } };
	struct mmsghdr messages[AT_ONCE] = { { .msg_hdr = { .msg_iov = &into[0], .msg_iovlen = 1 } },
					     { .msg_hdr = { .msg_iov = &into[1], .msg_iovlen = 1 } } };

	for (unsigned i = 0; i < most;) {
		const int n = recvmmsg(nl->fd, messages, AT_ONCE, MSG_TRUNC, NULL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno; /* EAGAIN: the answer was lost; ENOBUFS: it did not fit the socket */
		for (int k = 0; k < n; k++, i++) {
			size_t len = messages[k].msg_len;

			if (len > BUFFER) {
				w->result->interrupted = true;
				len = BUFFER;
			}
			if (netlink_walk(w, nl->buf[k], len))
				return 1;
		}
	}
	return 0;
}

/* All of it. */
static int receive(struct netlink *nl, struct netlink_walk *w)
{
	const int ret = receive_some(nl, w, MAX_DATAGRAMS);

	return ret < 0 ? ret : ret ? 0 : -EOVERFLOW;
}

static uint32_t since(uint64_t began_us)
{
	const uint64_t took_us = clock_monotonic_us() - began_us;

	return took_us > UINT32_MAX ? UINT32_MAX : (uint32_t)took_us;
}

int netlink_dump(struct netlink *nl, struct netlink_request *r, netlink_cb cb, void *ctx, struct netlink_result *result)
{
	struct netlink_walk w = { .pending = 1, .dump = true, .cb = cb, .ctx = ctx, .result = result };
	int ret;

	const uint64_t began_us = clock_monotonic_us();

	*result = (struct netlink_result){ 0 };
	w.seq_first = w.seq_last = ++nl->seq;
	number(r, nl->seq);
	ret = send(nl->fd, r->bytes, r->len, 0) < 0 ? -errno : receive(nl, &w);
	result->took_us = since(began_us);
	return ret ? ret : result->error;
}

int netlink_dump_begin(struct netlink *nl, struct netlink_request *r, netlink_cb cb, void *ctx, struct netlink_walk *w,
		       struct netlink_result *result)
{
	*result = (struct netlink_result){ 0 };
	*w = (struct netlink_walk){ .pending = 1, .dump = true, .cb = cb, .ctx = ctx, .result = result };
	w->seq_first = w->seq_last = ++nl->seq;
	number(r, nl->seq);
	return send(nl->fd, r->bytes, r->len, 0) < 0 ? -errno : 0;
}

int netlink_dump_more(struct netlink *nl, struct netlink_walk *w, unsigned datagrams)
{
	const int ret = receive_some(nl, w, datagrams);

	return ret > 0 && w->result->error ? w->result->error : ret;
}

int netlink_get(struct netlink *nl, struct netlink_request *const *requests, unsigned n, netlink_cb cb, void *ctx,
		struct netlink_result *result)
{
	struct netlink_walk w = { .cb = cb, .ctx = ctx, .result = result };
	const uint64_t began_us = clock_monotonic_us();
	struct msghdr msg = { .msg_iov = nl->iov };
	int ret;

	*result = (struct netlink_result){ 0 };
	if (!n)
		return 0;
	if (n > MAX_REQUESTS)
		return -E2BIG;
	w.pending = n;
	w.seq_first = nl->seq + 1;
	for (unsigned i = 0; i < n; i++) {
		number(requests[i], ++nl->seq);
		nl->iov[i].iov_base = requests[i]->bytes;
		nl->iov[i].iov_len = requests[i]->len;
	}
	w.seq_last = nl->seq;
	msg.msg_iovlen = n;
	ret = sendmsg(nl->fd, &msg, 0) < 0 ? -errno : receive(nl, &w);
	result->took_us = since(began_us);
	return ret;
}

static void on_family(void *ctx, const struct nlmsghdr *h, const uint8_t *payload, uint32_t len)
{
	struct nl_iter it;
	struct nl_attr a;

	(void)h;
	if (len < GENL_HDRLEN)
		return;
	it = nl_iter(payload + GENL_HDRLEN, len - GENL_HDRLEN);
	while (nl_next(&it, &a))
		if (a.type == CTRL_ATTR_FAMILY_ID)
			*(int *)ctx = nl_u16(&a);
}

int netlink_family(struct netlink *nl, const char *name)
{
	struct genlmsghdr g = { .cmd = CTRL_CMD_GETFAMILY, .version = 1 };
	struct netlink_request r, *one = &r;
	struct netlink_result result;
	int id = -ENOENT, ret;

	netlink_request(&r, GENL_ID_CTRL, 0, &g, sizeof g);
	netlink_append(&r, CTRL_ATTR_FAMILY_NAME, name, (uint16_t)(strlen(name) + 1));
	ret = netlink_get(nl, &one, 1, on_family, &id, &result);
	return ret ? ret : result.error ? result.error : id;
}
