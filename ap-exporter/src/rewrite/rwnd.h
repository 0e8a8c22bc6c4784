/* rwnd.h: lowers the receive window that one end of a TCP connection announces to the other, in its ACKs: a Wi-Fi
 * client's on their way up, which holds back what the server sends, or the server's on their way down, which holds
 * back what the client sends. Both ways of one connection may be clamped at once, each for itself.
 *
 * An action (action.h) with two backends: `ovs`, an Open vSwitch action, and `bpf`, a tc program on the access point's
 * port. Whatever the backend: a window is only ever lowered, never below RWND_FLOOR_MSS segments; SYN and RST are left
 * alone; so is a flow whose window scale is unknown; and every clamp ends by itself after its time to live, so that a
 * dead agent means plain TCP within a second.
 *
 * All functions but rwnd_check() are called by one thread. rwnd_set() and rwnd_release() do not block and allocate
 * nothing. */
#ifndef OAL_RWND_H
#define OAL_RWND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/config.h"
#include "rewrite/action.h"
#include "oal_policy.h"

enum {
	RWND_FLOOR_MSS = 4, /* segments: with fewer, a lost one is only found by a timeout */
	RWND_MAX_SCALE = 14, /* the largest that TCP allows (RFC 7323) */
	RWND_MAX_TTL_MS = 1000, /* a dead agent means plain TCP within a second */
	RWND_MIN_MSS = 88, /* bytes: Linux works with no smaller one (its TCP_MIN_MSS) */
};
/* In place of a scale: the one that the backend saw in the SYN itself; a flow whose SYN it missed is left alone. Only
 * where learns_scale. */
enum { RWND_SCALE_LEARNED = 255 };

/* Which way the ACKs go whose windows are lowered; the data goes the other. */
enum rwnd_direction { RWND_UP, RWND_DOWN, RWND_DIRECTIONS };

/* One way of a connection. Ports in host order; addresses are 4 or 16 bytes, in network order. */
struct rwnd_flow {
	uint8_t client_addr[16], server_addr[16];
	uint16_t client_port, server_port;
	uint8_t addr_len;
	/* Of the windows of whoever sends these ACKs (RWND_UP: the client), 0…14; known from its SYN or SYN-ACK; or
	 * RWND_SCALE_LEARNED. */
	uint8_t scale;
	uint8_t direction; /* enum rwnd_direction */
	uint16_t mss_bytes; /* of the data; the floor is RWND_FLOOR_MSS of these */
};

struct rwnd;
struct json;

/* The backends. They are called with a flow that rwnd_check_clamp() let pass, with a value at or above its floor, and
 * with no more flows at once than max_flows; release() comes for a clamp whose time is over too, at the next
 * rwnd_poll(). */
extern const struct action_ops rwnd_ovs, rwnd_bpf;

/* Can what the configuration asks for work here? 0, or negative errno with what to do in `err`. */
int rwnd_check(const struct config_rwnd *, char *err, size_t err_size);
/* The backend that the configuration names, also if its bridge is yet to come up (`ready` is false until then); `auto`
 * takes bpf where the kernel takes its programs, else ovs. */
int rwnd_open(struct rwnd **, const struct config_rwnd *, char *err, size_t err_size);
/* ACKs of this flow carry at most `bytes` from now on, for `ttl_ms` (at most RWND_MAX_TTL_MS) unless set again. Raised
 * to the floor if it lies below. 0, or negative errno: -EINVAL (scale > 14, no such flow can be, ttl), -ENOSPC (table
 * full), -ENOTCONN (data path away), -EOPNOTSUPP (ovs: the bridge that came back does not know the action). */
int rwnd_set(struct rwnd *, const struct rwnd_flow *, uint32_t bytes, uint32_t ttl_ms);
/* Plain TCP for this flow, now. 0 also if it was not clamped; negative errno if the backend could not: its time ends
 * the clamp then. */
int rwnd_release(struct rwnd *, const struct rwnd_flow *);
void rwnd_release_all(struct rwnd *);
/* Once a tick: ends clamps whose time is over, answers of the data path, reconnection. `now_us` is monotonic time. */
void rwnd_poll(struct rwnd *, uint64_t now_us);
void rwnd_stats(struct rwnd *, struct action_stats *);
/* The same, each way by itself too, and what the backend adds, as a JSON object. */
void rwnd_json(struct rwnd *, struct json *);
enum oal_rewrite_backend rwnd_backend(const struct rwnd *);
/* Releases everything. */
void rwnd_close(struct rwnd *);

#endif
