/* collect_source.h: what the collectors that ask the kernel by netlink share: one interface, one socket, what goes
 * wrong. A collector's own state begins with a struct collect_source. */
#ifndef OAL_COLLECT_SOURCE_H
#define OAL_COLLECT_SOURCE_H

#include "collect/collector.h"
#include "netlink/netlink.h"
#include "packet/interface.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct collect_source {
	const struct collect_kind *kind;
	struct samples *samples;
	struct netlink *nl;
	struct interface interface;
};

/* What differs between these collectors. */
struct collect_kind {
	const char *name; /* as in the configuration */
	int protocol; /* NETLINK_ROUTE or NETLINK_GENERIC */
	const char *family; /* of generic netlink; NULL with NETLINK_ROUTE */
	/* Builds the requests for the interface's present index. 0 or a negative errno. */
	int (*prepare)(struct collect_source *);
	/* The interface went away, or has another index: what was known of it is gone. May be NULL. */
	void (*forget)(struct collect_source *);
};

/* Can it work here? 0, or a negative errno with the reason and what to do in `err`. Leaves nothing open. */
int collect_source_check(const struct collect_kind *, const char *interface, char *err, size_t err_size);
/* Makes a collector of `size` bytes, zeroed but for its source, opens the socket and prepares. 0, or a negative errno
 * with the reason in `err`. */
int collect_source_start(void **self, size_t size, const struct collect_kind *, const char *interface,
			 const struct collector_env *, char *err, size_t err_size);
/* Once a second: is the interface there, and is it the same? */
void collect_source_second(struct collect_source *);
/* Counts what an exchange met, and forgets an interface that is gone. True: nothing went wrong. */
bool collect_source_settle(struct collect_source *, int ret, const struct netlink_result *);
/* Frees it all. */
void collect_source_stop(struct collect_source *);

#endif
