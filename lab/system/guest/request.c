#include "request.h"

#include <errno.h>
#include <linux/genetlink.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void die(int error, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	fprintf(stderr, "air: ");
	vfprintf(stderr, format, list);
	va_end(list);
	fprintf(stderr, error ? ": %s\n" : "\n", strerror(error));
	exit(1);
}

static void append(struct request *r, const void *bytes, size_t size)
{
	const size_t at = NLMSG_ALIGN(r->head.nlmsg_len);

	if (at + size > sizeof *r)
		die(0, "a request is too long");
	if (size)
		memcpy((uint8_t *)r + at, bytes, size);
	r->head.nlmsg_len = (uint32_t)(at + size);
}

void request_begin(struct request *r, uint16_t type, uint16_t flags, const void *fixed, size_t size)
{
	memset(r, 0, sizeof *r);
	r->head.nlmsg_len = NLMSG_HDRLEN;
	r->head.nlmsg_type = type;
	r->head.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags;
	append(r, fixed, size);
}

void request_put(struct request *r, uint16_t attribute, const void *value, size_t size)
{
	struct nlattr a = { .nla_len = (uint16_t)(sizeof a + size), .nla_type = attribute };

	append(r, &a, sizeof a);
	append(r, value, size);
}

void request_raw(struct request *r, const void *bytes, size_t size)
{
	append(r, bytes, size);
}

void request_u8(struct request *r, uint16_t attribute, uint8_t value)
{
	request_put(r, attribute, &value, sizeof value);
}

void request_u16(struct request *r, uint16_t attribute, uint16_t value)
{
	request_put(r, attribute, &value, sizeof value);
}

void request_u32(struct request *r, uint16_t attribute, uint32_t value)
{
	request_put(r, attribute, &value, sizeof value);
}

void request_text(struct request *r, uint16_t attribute, const char *text)
{
	request_put(r, attribute, text, strlen(text) + 1);
}

size_t request_open(struct request *r, uint16_t attribute)
{
	const size_t at = NLMSG_ALIGN(r->head.nlmsg_len);

	request_put(r, attribute | NLA_F_NESTED, NULL, 0);
	return at;
}

void request_close(struct request *r, size_t opened)
{
	((struct nlattr *)((uint8_t *)r + opened))->nla_len = (uint16_t)(r->head.nlmsg_len - opened);
}

int request_socket(int protocol)
{
	const struct sockaddr_nl here = { .nl_family = AF_NETLINK };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);

	if (fd < 0 || bind(fd, (const struct sockaddr *)&here, sizeof here) < 0)
		die(errno, "cannot open a netlink socket");
	return fd;
}

/* Reads until the acknowledgement; an attribute of a generic answer that is looked for goes to `found`. */
static int answer(int fd, uint16_t wanted, uint16_t *found)
{
	static uint8_t buffer[32768] __attribute__((aligned(4)));

	for (;;) {
		ssize_t n = recv(fd, buffer, sizeof buffer, 0);

		if (n < 0)
			return -errno;
		for (struct nlmsghdr *h = (struct nlmsghdr *)buffer; NLMSG_OK(h, (size_t)n);
		     h = NLMSG_NEXT(h, n)) {
			const uint8_t *p = (uint8_t *)NLMSG_DATA(h) + GENL_HDRLEN, *end = (uint8_t *)h + h->nlmsg_len;

			if (h->nlmsg_type == NLMSG_ERROR)
				return ((struct nlmsgerr *)NLMSG_DATA(h))->error;
			for (const struct nlattr *a; found && p + sizeof *a <= end; p += NLA_ALIGN(a->nla_len)) {
				a = (const struct nlattr *)p;
				if (a->nla_len < sizeof *a)
					break;
				if (a->nla_type == wanted)
					memcpy(found, a + 1, sizeof *found);
			}
		}
	}
}

static int transact(int fd, struct request *r, uint16_t wanted, uint16_t *found)
{
	static uint32_t sequence;

	r->head.nlmsg_seq = ++sequence;
	if (send(fd, r, r->head.nlmsg_len, 0) < 0)
		return -errno;
	return answer(fd, wanted, found);
}

int request_send(int fd, struct request *r)
{
	return transact(fd, r, 0, NULL);
}

int request_answer(int fd)
{
	return answer(fd, 0, NULL);
}

void request_generic(struct request *r, uint16_t family, uint8_t command)
{
	const struct genlmsghdr g = { .cmd = command, .version = 1 };

	request_begin(r, family, 0, &g, sizeof g);
}

uint16_t request_family(int fd, const char *name)
{
	struct request r;
	uint16_t id = 0;
	int ret;

	request_generic(&r, GENL_ID_CTRL, CTRL_CMD_GETFAMILY);
	request_text(&r, CTRL_ATTR_FAMILY_NAME, name);
	ret = transact(fd, &r, CTRL_ATTR_FAMILY_ID, &id);
	if (ret || !id)
		die(-ret, "this kernel has no %s", name);
	return id;
}

uint32_t interface_index(const char *name)
{
	const unsigned index = if_nametoindex(name);

	if (!index)
		die(errno, "interface %s", name);
	return index;
}
