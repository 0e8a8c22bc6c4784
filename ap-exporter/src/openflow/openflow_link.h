/* openflow_link.h: a connection to the management socket of an Open vSwitch bridge, ovs_rundir/BRIDGE.mgmt. Nothing
 * blocks and nothing is allocated; it comes back by itself when the switch was restarted or the bridge made anew. */
#ifndef OAL_OPENFLOW_LINK_H
#define OAL_OPENFLOW_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/un.h>

#include "openflow/openflow.h"

enum {
	OPENFLOW_LINK_OUT = 65536, /* bytes for a switch that is slow to read: 300 clamps */
	OPENFLOW_LINK_IN = 2048, /* bytes: longer messages do not concern us and are skipped */
	OPENFLOW_LINK_RETRY_MIN_US = 50000, /* a switch that restarts is back within a second … */
	OPENFLOW_LINK_RETRY_MAX_US = 1000000, /* … one that is off is tried once a second */
	OPENFLOW_LINK_ECHO_US = 1000000, /* how often an idle switch gets an echo request */
	OPENFLOW_LINK_SILENCE_US = 3000000, /* a switch that sends nothing for so long is gone */
};

struct openflow_link {
	struct sockaddr_un address;
	int fd;      /* -1: not connected */
	bool up;     /* both sides have sent their hello */
	int error;   /* why it is down, negative errno; -EPROTONOSUPPORT: OpenFlow 1.3 is off at this bridge */
	uint64_t ups; /* how often it came up: its user sets the switch up anew when this changes */
	uint32_t xid;
	uint64_t retry_at_us, retry_us, received_us, echo_sent_us;
	size_t out_len, in_len, skip;
	uint8_t out[OPENFLOW_LINK_OUT], in[OPENFLOW_LINK_IN];
};

/* Notes where the switch is; connects with the first poll. -ENAMETOOLONG: that is no name for a socket. */
int openflow_link_init(struct openflow_link *, const char *rundir, const char *bridge);
/* Connects, reads, writes, as far as that goes now. True: a message came that the caller may want, so ask again. */
bool openflow_link_poll(struct openflow_link *, uint64_t now_us, struct openflow_message *);
/* -ENOTCONN: it is down, or so much waits already that this is as good as down. */
int openflow_link_send(struct openflow_link *, const uint8_t *message, size_t len);
static inline uint32_t openflow_link_xid(struct openflow_link *l)
{
	return ++l->xid;
}
/* Waits until something can be read, at most so long. For set-up and end only: this one blocks. */
void openflow_link_wait(const struct openflow_link *, int timeout_ms);
void openflow_link_close(struct openflow_link *);

#endif
