/* congestion.h: congestion controls of this host's connections, by where they go to; of a host alone.
 *
 * Two effects. A *choice* gives connections that begin, to a prefix, a congestion control by name (bpf/cc.bpf.c). A
 * *model* lets those with oal_lc keep their window after a loss of the air (policies/loss-cause). Both end by
 * themselves after their time to live, and with this process: the kernel then takes off what attaches choices and
 * unregisters oal_lc. Connections that run are never broken: they keep the congestion control that they have, and
 * oal_lc without a model is CUBIC.
 *
 * All functions are called by one thread; none blocks. */
#ifndef OAL_CONGESTION_H
#define OAL_CONGESTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	CONGESTION_MAX_TTL_MS = 60000, /* a dead agent means the system's congestion control within a minute */
	CONGESTION_NAME_BYTES = 16,
	CONGESTION_MODEL_BYTES = 152, /* struct oal_lc_model of policies/loss-cause/ca.h */
};

/* Addresses with these leading bits; IPv4 as ::ffff:a.b.c.d, so that its bits count from 96 on. */
struct congestion_prefix {
	uint32_t bits;
	uint8_t address[16];
};

struct congestion;
struct json;

/* Attaches the program to a cgroup (a folder of cgroup2; "": that of all processes); with `models`, registers oal_lc
 * too, which takes a newer kernel. 0, or negative errno with what to do in `err`. */
int congestion_open(struct congestion **, const char *cgroup, bool models, char *err, size_t err_size);
/* Can choices be made here, by this process? As congestion_open(), and leaves nothing behind. */
int congestion_check(const char *cgroup, char *err, size_t err_size);
/* ADDRESS/BITS or ADDRESS. 0 or -EINVAL: no such prefix, or it has bits beyond its length. */
int congestion_prefix_parse(struct congestion_prefix *, const char *text);
/* Connections to the prefix that begin within `ttl_ms` get the congestion control `name`. 0, or negative errno: -EINVAL
 * (a ttl or name that cannot be), -ENOENT (the kernel has none of that name), -ENOSPC. */
int congestion_choose(struct congestion *, const struct congestion_prefix *, const char *name, uint32_t ttl_ms);
/* Connections with oal_lc to the prefix have this model for `ttl_ms`; its own deadline is replaced. 0, or negative
 * errno: -EINVAL (a ttl that cannot be, or a model that is none), -ENOSPC, -ENOTSUP (it was opened without). */
int congestion_model(struct congestion *, const struct congestion_prefix *,
		     const uint8_t model[CONGESTION_MODEL_BYTES], uint32_t ttl_ms);
/* Neither choice nor model for exactly this prefix, from now on. 0 also if there was none. */
int congestion_release(struct congestion *, const struct congestion_prefix *);
void congestion_release_all(struct congestion *);
/* What was counted, as an object. */
void congestion_json(const struct congestion *, struct json *);
/* Ends everything. */
void congestion_close(struct congestion *);

#endif
