/*
 * A raw netlink socket for sampling: requests are built once and sent again and again, replies are read into one
 * buffer, nothing is allocated after netlink_open(). The kernel answers inside the calls: a driver that asks its
 * firmware, or waits for a lock, holds them up for as long. So they belong on a thread of their own (sample/sampler.h).
 */
#ifndef OAL_NETLINK_H
#define OAL_NETLINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct netlink;
struct netlink_walk;
struct nlmsghdr;

enum { NETLINK_REQUEST_MAX = 128 }; /* bytes: headers, an interface, an address */

/* One message, ready to send. */
struct netlink_request {
	uint32_t len;
	uint8_t bytes[NETLINK_REQUEST_MAX] __attribute__((aligned(4)));
};

/* What an exchange met besides replies. */
struct netlink_result {
	bool interrupted; /* NLM_F_DUMP_INTR: the dump is partial or mixed */
	unsigned replies;
	unsigned failed;  /* requests answered by an error, the first of them being… */
	int error;        /* …this one, negative */
	uint32_t took_us; /* from the request to its last answer */
};

/* A reply's payload (after nlmsghdr). */
typedef void (*netlink_cb)(void *ctx, const struct nlmsghdr *h, const uint8_t *payload, uint32_t len);

/* `protocol`: NETLINK_GENERIC, NETLINK_ROUTE or NETLINK_SOCK_DIAG. 0 or a negative errno. */
int netlink_open(struct netlink **, int protocol);
void netlink_close(struct netlink *);

/* Starts a request; `flags` besides NLM_F_REQUEST; `header` follows nlmsghdr (genlmsghdr, tcmsg, ndmsg). */
void netlink_request(struct netlink_request *, uint16_t type, uint16_t flags, const void *header, uint32_t header_len);
void netlink_append(struct netlink_request *, uint16_t type, const void *data, uint16_t len);

/* Sends one dump request and reads it to its end. 0, or a negative errno: of the socket, or the kernel's answer. */
int netlink_dump(struct netlink *, struct netlink_request *, netlink_cb, void *ctx, struct netlink_result *);
/*
 * The same in parts: the kernel waits with the rest of its answer until it is read. netlink_dump_begin() fills `*w`,
 * whose callback and result are kept until the end; netlink_dump_more() reads at most `datagrams` further ones. 1: that
 * was all; 0: there is more; negative errno, also the kernel's answer: the dump has ended. One dump at a time of a
 * socket.
 */
int netlink_dump_begin(struct netlink *, struct netlink_request *, netlink_cb, void *ctx, struct netlink_walk *w,
		       struct netlink_result *);
int netlink_dump_more(struct netlink *, struct netlink_walk *w, unsigned datagrams);
/*
 * Sends `n` requests for one object each in one message and reads the answers. A request that fails does not end it:
 * see result->failed. 0 or a negative errno of the socket.
 */
int netlink_get(struct netlink *, struct netlink_request *const *requests, unsigned n, netlink_cb, void *ctx,
		struct netlink_result *);

/* Id of a generic netlink family. Negative errno if the kernel does not have it. */
int netlink_family(struct netlink *, const char *name);

/*
 * The pure part: walks the messages of one datagram that answers `seq` of `port`. Returns true when an end (NLMSG_DONE,
 * an error, or the last single reply) was met. Shared with the tests and the fuzz target.
 */
struct netlink_walk {
	uint32_t seq_first, seq_last; /* of the requests that are still to be answered */
	unsigned pending;             /* answers that are still to come; a dump is one */
	bool dump;
	netlink_cb cb;
	void *ctx;
	struct netlink_result *result;
};
bool netlink_walk(struct netlink_walk *, const uint8_t *buf, size_t len);

#endif
