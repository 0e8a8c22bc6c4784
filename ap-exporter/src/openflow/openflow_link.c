#include "openflow/openflow_link.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int openflow_link_init(struct openflow_link *l, const char *rundir, const char *bridge)
{
	int n;

	memset(l, 0, sizeof *l);
	l->fd = -1;
	l->error = -ENOTCONN;
	l->address.sun_family = AF_UNIX;
	n = snprintf(l->address.sun_path, sizeof l->address.sun_path, "%s/%s.mgmt", rundir, bridge);
	return n < 0 || (size_t)n >= sizeof l->address.sun_path ? -ENAMETOOLONG : 0;
}

void openflow_link_close(struct openflow_link *l)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
	l->up = false;
	l->out_len = l->in_len = l->skip = 0;
}

static void drop(struct openflow_link *l, uint64_t now_us, int error)
{
	openflow_link_close(l);
	l->error = error;
	l->retry_us = l->retry_us ? 2 * l->retry_us : OPENFLOW_LINK_RETRY_MIN_US;
	if (l->retry_us > OPENFLOW_LINK_RETRY_MAX_US)
		l->retry_us = OPENFLOW_LINK_RETRY_MAX_US;
	l->retry_at_us = now_us + l->retry_us;
}

/* Of a local socket, connect() succeeds or fails at once. */
static void reconnect(struct openflow_link *l, uint64_t now_us)
{
	l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (l->fd < 0 || connect(l->fd, (struct sockaddr *)&l->address, sizeof l->address) < 0) {
		drop(l, now_us, -errno);
		return;
	}
	l->received_us = l->echo_sent_us = now_us;
	l->out_len = openflow_hello(l->out, openflow_link_xid(l));
}

/* False: the connection is broken. */
static bool flush(struct openflow_link *l)
{
	ssize_t n;

	if (!l->out_len)
		return true;
	n = send(l->fd, l->out, l->out_len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	l->out_len -= (size_t)n;
	memmove(l->out, l->out + n, l->out_len);
	return true;
}

int openflow_link_send(struct openflow_link *l, const uint8_t *message, size_t len)
{
	if (!l->up || len > sizeof l->out - l->out_len)
		return -ENOTCONN;
	memcpy(l->out + l->out_len, message, len);
	l->out_len += len;
	flush(l); /* a broken connection is found, and dropped, by the next poll */
	return 0;
}

static void answer_echo(struct openflow_link *l, uint32_t xid)
{
	uint8_t message[OPENFLOW_MESSAGE_MAX];

	openflow_link_send(l, message, openflow_echo_reply(message, xid));
}

/* What this connection itself lives on. True: the message is the caller's. */
static bool handle(struct openflow_link *l, uint64_t now_us, const struct openflow_message *m)
{
	switch (m->type) {
	case OPENFLOW_HELLO:
		if (!m->speaks_13) {
			drop(l, now_us, -EPROTONOSUPPORT);
		} else if (!l->up) {
			l->up = true;
			l->ups++;
			l->retry_us = 0;
			l->error = 0;
		}
		return false;
	case OPENFLOW_ERROR:
		if (m->error != OPENFLOW_ERROR_VERSION)
			return true;
		drop(l, now_us, -EPROTONOSUPPORT);
		return false;
	case OPENFLOW_ECHO_REQUEST:
		answer_echo(l, m->xid);
		return false;
	case OPENFLOW_ECHO_REPLY:
		return false;
	default:
		return true;
	}
}

/* What is to be skipped leaves the buffer. */
static void skip(struct openflow_link *l)
{
	const size_t n = l->skip < l->in_len ? l->skip : l->in_len;

	l->skip -= n;
	l->in_len -= n;
	memmove(l->in, l->in + n, l->in_len);
}

/* One message from what was read, which the next call then skips. 1: it is in `m`; 0: more must be read; -EPROTO. */
static int next_message(struct openflow_link *l, struct openflow_message *m)
{
	int ret;

	skip(l);
	if (l->skip)
		return 0;
	ret = openflow_parse(m, l->in, l->in_len);
	if (ret > 0 || (!ret && m->length > sizeof l->in))
		l->skip = m->length;
	if (!ret)
		skip(l); /* so that there is room to read into */
	return ret;
}

static void keep_alive(struct openflow_link *l, uint64_t now_us)
{
	uint8_t message[OPENFLOW_MESSAGE_MAX];

	if (now_us - l->received_us > OPENFLOW_LINK_SILENCE_US) {
		drop(l, now_us, -ETIMEDOUT);
		return;
	}
	if (l->up && now_us - l->echo_sent_us > OPENFLOW_LINK_ECHO_US) {
		l->echo_sent_us = now_us;
		openflow_link_send(l, message, openflow_echo_request(message, openflow_link_xid(l)));
	}
	if (!flush(l))
		drop(l, now_us, -errno);
}

bool openflow_link_poll(struct openflow_link *l, uint64_t now_us, struct openflow_message *m)
{
	if (l->fd < 0 && now_us >= l->retry_at_us)
		reconnect(l, now_us);
	if (l->fd >= 0)
		keep_alive(l, now_us);
	while (l->fd >= 0) {
		const int ret = next_message(l, m);
		ssize_t n;

		if (ret < 0) {
			drop(l, now_us, ret);
		} else if (ret) {
			if (handle(l, now_us, m))
				return true;
		} else {
			n = recv(l->fd, l->in + l->in_len, sizeof l->in - l->in_len, MSG_DONTWAIT);
			if (n > 0) {
				l->in_len += (size_t)n;
				l->received_us = now_us;
			} else if (!n) {
				drop(l, now_us, -ECONNRESET);
			} else if (errno == EAGAIN || errno == EINTR) {
				return false;
			} else {
				drop(l, now_us, -errno);
			}
		}
	}
	return false;
}

void openflow_link_wait(const struct openflow_link *l, int timeout_ms)
{
	struct pollfd p = { .fd = l->fd, .events = POLLIN };

	poll(&p, 1, timeout_ms); /* without a connection: sleeps that long */
}
