/* controller.h: control of one AP in the tick thread. Its policies run side by side (place.h): each law is given what
 * the data path knows, its windows or marks are composed and set (effect/effects.h), and reported (tables action and
 * control).
 *
 * What is in force of a policy is the least of its bundle, the AP's own ceiling, and off while a kill switch is on: the
 * push service's or the kill file. In shadow everything happens but the setting. Neither blocks nor allocates nor logs
 * after controller_new(). */
#ifndef OAL_CONTROLLER_H
#define OAL_CONTROLLER_H

#include <stddef.h>
#include <stdint.h>

#include "oal_policy.h"

struct controller;
struct inference;
struct json;
struct pipeline;
struct mark;
struct rwnd;

enum { CONTROLLER_POLICIES = 4 };

struct controller_config {
	struct pipeline *pipeline;
	/* One a policy: whose bundles and verdicts are followed, and of the first one the kill switch. The first that
	 * is NULL ends them. */
	struct inference *inferences[CONTROLLER_POLICIES];
	/* What carries out windows and marks. NULL: at most shadow. Not owned */
	struct rwnd *rwnd;
	struct mark *mark;
	enum oal_policy_mode ceiling, mark_ceiling; /* of windows; of marks */
	/* While one of them is there nothing is done. NULL or empty: none. They must outlive the controller */
	const char *kill_file, *mark_kill_file;
	uint64_t (*monotonic_ns)(void);
};

#ifdef HAVE_AGENT
/* Sized by the pipeline. Negative errno: -ENOMEM, -EINVAL for a pipeline beyond what control takes. */
int controller_new(struct controller **, const struct controller_config *);
/* Gives every clamp up. */
void controller_free(struct controller *);
/* A tick ends: its packets and predictions are in, up to `t_us` realtime. */
void controller_tick(struct controller *, uint64_t t_us);
/* Another data path, or none, from now on; what the old one did was given up with it. */
void controller_rwnd(struct controller *, struct rwnd *);
void controller_mark(struct controller *, struct mark *);
/* Control that acts on nothing says so in words; empty: it does not. Returns the length. */
size_t controller_alarm(const struct controller *, char *buf, size_t size);
/* Its state as an object. */
void controller_json(const struct controller *, struct json *);
#else /* nothing predicts, so there is nothing to act on */
static inline int controller_new(struct controller **out, const struct controller_config *c) { return 0; }
static inline void controller_free(struct controller *c) {}
static inline void controller_tick(struct controller *c, uint64_t t_us) {}
static inline void controller_rwnd(struct controller *c, struct rwnd *r) {}
static inline void controller_mark(struct controller *c, struct mark *m) {}
static inline size_t controller_alarm(const struct controller *c, char *buf, size_t size)
{
	buf[0] = '\0';
	return 0;
}
static inline void controller_json(const struct controller *c, struct json *t) {}
#endif

#endif
