/* effects.h: what several policies want of one data path, composed: what they want of a subject is met (of windows the
 * smallest, of marks all), and ends when the policies that want it said. One policy alone passes through unchanged. */
#ifndef OAL_EFFECTS_H
#define OAL_EFFECTS_H

#include <stddef.h>
#include <stdint.h>

#include "rewrite/action.h"

enum { EFFECTS_POLICIES = 4 };

/* A kind of action. `self` is what carries it out: a struct rwnd, a struct mark. As in action.h. */
struct effects_ops {
	enum oal_action_kind kind;
	/* What holds when two policies want different values; 0: nothing. */
	uint64_t (*meet)(uint64_t a, uint64_t b);
	int (*set)(void *self, const void *key, uint64_t value, uint32_t ttl_ms);
	int (*release)(void *self, const void *key);
	void (*release_all)(void *self);
	void (*poll)(void *self, uint64_t now_us);
	void (*json)(void *self, struct json *);
	enum oal_rewrite_backend (*backend)(const void *self);
};

extern const struct effects_ops effects_rwnd, effects_mark;

struct effects {
	const struct effects_ops *ops;
	void *self; /* NULL: nothing can be set. Not owned */
	/* Of each subject's place, what each policy wants; touched only where one wants something. */
	struct effects_wish {
		uint64_t id, until_us; /* of the subject; monotonic */
		uint64_t value; /* 0: nothing */
	} (*wishes)[EFFECTS_POLICIES];
	unsigned max_subjects;
};

/* A subject as the policies name it: its place; its id, by which another one at that place is told apart; and the key
 * by which the data path knows it (struct rwnd_flow, struct mark_station). */
struct effects_subject {
	uint16_t place;
	uint64_t id;
	const void *key;
};

/* -ENOMEM */
int effects_new(struct effects *, const struct effects_ops *, unsigned max_subjects);
void effects_free(struct effects *);
/* The policy wants this value, or none (0), from now on, for `ttl_us` unless it says so again. As the kind's set() and
 * release(). */
int effects_want(struct effects *, unsigned policy, const struct effects_subject *, uint64_t value, uint32_t ttl_us,
                 uint64_t now_us);
/* The policy wants nothing any more, also of subjects that are gone. `alone`: no other policy acts in this way. */
void effects_give_up(struct effects *, unsigned policy, bool alone);

#endif
