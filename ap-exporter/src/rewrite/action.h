/* action.h: what carries out the values that a policy's law decides. An action has a kind (so far rwnd: receive
 * windows) and a backend for each data path that can do it. Whatever the action: each effect ends by itself after its
 * time to live, so that a dead agent means an untouched network within a second; and what two policies want of one
 * subject is met.
 *
 * All functions but check() are called by one thread. set() and release() do not block and allocate nothing. */
#ifndef OAL_ACTION_H
#define OAL_ACTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "oal_policy.h"

struct json;

struct action {
	const struct action_ops *ops;
	void *self; /* the backend's own: made by its open(), which leaves nothing behind when it fails; ended by
		       close() */
};

/* Running totals since open(), except where a line says "now". */
struct action_stats {
	uint64_t sets, releases, errors; /* calls that were carried out; that failed */
	uint64_t expired; /* effects that ended by their time */
	uint32_t in_force; /* now: set, not released, not past their time */
	bool ready; /* now: the data path is there (bridge up, program attached) */
	bool knows_changes; /* the data path says which packets it changed: else those two are no zeros, but unknown */
	/* Of subjects with an effect, where the data path counts them. */
	uint64_t packets_seen, packets_changed, packets_skipped;
	/* Those of them that are of the way down; the rest is of the way up. For actions whose subject has a way. */
	struct action_way {
		uint32_t in_force;
		uint64_t packets_seen, packets_changed, packets_skipped;
	} down;
};

static inline struct action_way action_way_up(const struct action_stats *s)
{
	return (struct action_way){
		.in_force = s->in_force - s->down.in_force,
		.packets_seen = s->packets_seen - s->down.packets_seen,
		.packets_changed = s->packets_changed - s->down.packets_changed,
		.packets_skipped = s->packets_skipped - s->down.packets_skipped,
	};
}

/* `config` is the section of the action's kind (rwnd: struct config_rwnd), `key` names a subject (rwnd: struct
 * rwnd_flow), `value` is what it gets (rwnd: bytes). */
struct action_ops {
	const char *name; /* of the backend, as in the configuration */
	enum oal_action_kind kind;
	enum oal_rewrite_backend id;
	const char *subject; /* what a key names */
	bool learns_scale; /* rwnd: sees SYNs itself, so a key may leave the scale open */
	/* What holds when two policies that enforce want different values of one subject; 0: one that wants nothing. */
	uint64_t (*meet)(uint64_t a, uint64_t b);
	/* Can it work here? 0, or negative errno with what to do in `err`. Changes nothing. */
	int (*check)(const void *config, char *err, size_t err_size);
	int (*open)(struct action *, const void *config, char *err, size_t err_size);
	/* From now on, for `ttl_ms` unless set again. */
	int (*set)(struct action *, const void *key, uint64_t value, uint32_t ttl_ms);
	int (*release)(struct action *, const void *key);
	void (*release_all)(struct action *);
	void (*poll)(struct action *, uint64_t now_us); /* once a tick, monotonic time; may be NULL */
	void (*stats)(struct action *, struct action_stats *); /* adds what only the backend knows */
	void (*json)(struct action *, struct json *); /* more of that, as `, "name": value`…; may be NULL */
	void (*close)(struct action *); /* releases everything first */
};

/* Of which backends one is chosen, and for whom. */
struct action_choice {
	const struct action_ops *const *backends; /* in the order in which `auto` tries them; the last is NULL */
	const char *named; /* of the configuration: a backend's name, or auto */
	const char *of; /* for messages: "the rewrite" */
	const void *config; /* for their check() */
};

/* The backend that is meant and that can work here. NULL: `ret` (negative errno) and `err` say why. With `later`, one
 * that is named and is only not there yet will do: a bridge may come up after the exporter. */
const struct action_ops *action_choose(const struct action_choice *, bool later, int *ret, char *err, size_t err_size);

#endif
