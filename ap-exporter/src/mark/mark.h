/* mark.h: sets CE in packets on their way to a Wi-Fi client, where they say that they understand ECN: what reaches
 * QUIC, UDP and TCP alike.
 *
 * An action (rewrite/action.h) on stations with two backends: `bpf`, a tc program at the egress of the Wi-Fi port, also
 * where that is a port of an Open vSwitch bridge; and `ovs`, an action of that bridge's own.
 * A packet that is Not-ECT is never touched, nor is one to a group; one that has CE already is left as it is; and each
 * station's marks end by themselves after their time to live, so that a dead agent means an untouched network within a
 * second.
 *
 * All functions but mark_check() are called by one thread. mark_set() and mark_release() do not block and allocate
 * nothing. */
#ifndef OAL_MARK_H
#define OAL_MARK_H

#include <stddef.h>
#include <stdint.h>

#include "base/config.h"
#include "oal_policy.h"
#include "rewrite/action.h"

/* What of a station's packets gets CE. */
enum {
	MARK_ECT1 = 1, /* each packet with ECT(1), as L4S senders send */
	MARK_ECT0 = 2, /* packets with ECT(0), spaced as CoDel would, since classic senders halve for each */
	MARK_ALL = MARK_ECT1 | MARK_ECT0,
};

enum {
	MARK_MAX_TTL_MS = 1000, /* a dead agent means no marks within a second */
	MARK_MIN_INTERVAL_US = 5000, /* more often would starve a classic sender */
	MARK_USUAL_INTERVAL_US = 100000, /* CoDel's (RFC 8289): a round trip that few paths exceed */
	MARK_MAX_INTERVAL_US = 1000000,
	MARK_MAC_BYTES = 6,
};

struct mark_station {
	uint8_t mac[MARK_MAC_BYTES]; /* as it lies in a frame */
	uint32_t interval_us; /* of ECT(0); 0 where that is not marked */
};

struct mark;
struct json;

/* The backends. They are called with stations and values that mark_allowed() let pass, with no more stations at once
 * than max_stations; release() comes for one whose time is over too, at the next mark_poll(). */
extern const struct action_ops mark_bpf, mark_ovs;

/* Can what the configuration asks for work here? 0, or negative errno with what to do in `err`. */
int mark_check(const struct config_mark *, char *err, size_t err_size);
/* The backend that the configuration names, also if its bridge is yet to come up (`ready` is false until then); `auto`
 * takes bpf. */
int mark_open(struct mark **, const struct config_mark *, char *err, size_t err_size);
/* Packets to this station are marked so from now on, for `ttl_ms` (at most MARK_MAX_TTL_MS) unless set again. 0, or
 * negative errno: -EINVAL (no such station, marks, interval or ttl can be), -ENOSPC (table full), -ENOTCONN (data path
 * away), -EOPNOTSUPP (ovs: the bridge that came back does not know the action). */
int mark_set(struct mark *, const struct mark_station *, uint8_t marks, uint32_t ttl_ms);
/* No marks for this station, now. 0 also if there were none; negative errno if the backend could not: their time ends
 * them then. */
int mark_release(struct mark *, const struct mark_station *);
void mark_release_all(struct mark *);
/* Once a tick: ends marks whose time is over, answers of the data path. `now_us` is monotonic time. */
void mark_poll(struct mark *, uint64_t now_us);
void mark_stats(struct mark *, struct action_stats *);
/* The same and what the backend adds, as a JSON object. */
void mark_json(struct mark *, struct json *);
enum oal_rewrite_backend mark_backend(const struct mark *);
/* Releases everything. */
void mark_close(struct mark *);

#endif
