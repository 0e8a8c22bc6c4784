/* What runs under one configuration: a pipeline, its collectors, the sinks. A reload makes a new one and ends the old.
 */
#ifndef OAL_DAEMON_H
#define OAL_DAEMON_H

#include "base/clock.h"
#include "base/config.h"
#include "base/loop.h"

#include <stdbool.h>
#include <stddef.h>

struct daemon;

/* Asks every collector and sink whether it can work here. 0, or the first negative errno with the reason. */
int daemon_check(const struct config *, char *err, size_t err_size);

/*
 * Opens everything that start_with_rights() (start.h) has not. Sinks that `previous` (may be NULL) has open and that
 * are configured alike are shared with it, and are the new one's own from then on. On failure `previous` is as it was.
 */
int daemon_new(struct daemon **, const struct config *, struct daemon *previous, char *err, size_t err_size);
void daemon_tick(struct daemon *, const struct tick *, const struct clock_quality *);
/* After a tick: so many ticks may go by until the next that is served; see loop_rest(). */
uint32_t daemon_rest(struct daemon *);
/* Once a second: health, logs, interfaces. */
void daemon_second(struct daemon *, const struct clock_quality *);
/* True when every collector has come to its end. */
bool daemon_done(const struct daemon *);
void daemon_reloaded(struct daemon *, uint32_t reloads, uint32_t refused);
size_t daemon_health(void *daemon, char *buf, size_t size);
/* Ends collectors, emits what is open, closes the sinks that are its own. */
void daemon_free(struct daemon *);

#endif
