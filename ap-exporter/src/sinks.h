/* sinks.h: every sink of a configuration, open. A reload goes on with those of the earlier daemon that are configured
 * alike. */
#ifndef OAL_SINKS_H
#define OAL_SINKS_H

#include "base/config.h"
#include "ship/sink.h"

#include <stdbool.h>
#include <stddef.h>

enum { SINKS_MAX = 4 };

struct sinks {
	struct {
		const struct sink_ops *ops;
		void *self;
		bool shared; /* somebody else's to close: the earlier daemon's until sinks_own(), then the later one's
			      */
	} open[SINKS_MAX];
	unsigned n;
};

/* Can every sink work here? 0, or negative errno with the reason in `err`. */
int sinks_check(const struct config *, char *err, size_t err_size);
/* `s` is all zero. Opens what `c` wants and shares what `earlier`, with its configuration, has open and `c` wants
 * alike; both may be NULL. What was opened before a failure is sinks_close()'s. */
int sinks_open(struct sinks *s, const struct config *c, struct sinks *earlier, const struct config *earlier_config,
               char *err, size_t err_size);
/* The new daemon stands: what it shares is its own from now on. */
void sinks_own(struct sinks *, struct sinks *earlier);
/* Files that a configuration names may be new: reads them again, with `all` for every sink, else for shared ones. */
int sinks_reread(struct sinks *, const struct config *, bool all, char *err, size_t err_size);
/* Hands every sink the batch. Called in a tick. */
void sinks_send(struct sinks *, const struct sink_batch *);
/* Once a second. */
void sinks_second(struct sinks *);
/* Closes those that are its own, and says what each delivered. */
void sinks_close(struct sinks *);

#endif
