/* data_path.h: what lowers windows, what marks, and on a host what chooses congestion controls: opened when there were
 * privileges, kept over reloads. What no configuration owns is parked, one of each at most. */
#ifndef OAL_DATA_PATH_H
#define OAL_DATA_PATH_H

#include "base/config.h"

#include <stdbool.h>
#include <stddef.h>

struct ap;
struct congestion;
struct mark;
struct rwnd;

struct data_path {
	struct rwnd *rwnd; /* NULL: nothing is enforced with windows */
	struct mark *mark; /* NULL: nothing is enforced with marks */
	struct congestion *congestion; /* of a host; NULL: no choice is set */
};

#ifdef HAVE_AGENT
/* Can what a configuration enforces be carried out here? 0, or negative errno with what to do in `err`. */
int data_path_check(const struct config *, char *err, size_t err_size);
/* Opens what a configuration enforces with, and parks it. Telemetry does not depend on it: a failure is logged. */
void data_path_hold(const struct config *);
/* Takes what `ap` held back, releases all that it does, and parks it. */
void data_path_park(struct data_path *, const struct config *, struct ap *);
/* Gives `ap` what was parked and suits; with `reload`, else opens it. An AP whose data path cannot be had goes on in
 * shadow, and says so. */
void data_path_open(struct data_path *, const struct config *, struct ap *, bool reload);
void data_path_close(struct data_path *);
#else /* no controller */
static inline int data_path_check(const struct config *c, char *err, size_t err_size) { return 0; }
static inline void data_path_hold(const struct config *c) {}
static inline void data_path_park(struct data_path *d, const struct config *c, struct ap *ap) {}
static inline void data_path_open(struct data_path *d, const struct config *c, struct ap *ap, bool reload) {}
static inline void data_path_close(struct data_path *d) {}
#endif

#endif
