/* data_path.h: what rewrites windows, while no configuration owns it: opened when there were privileges, or left by one
 * that does not enforce. There is one at most. */
#ifndef OAL_DATA_PATH_H
#define OAL_DATA_PATH_H

#include "base/config.h"

#include <stdbool.h>

struct rwnd;

#ifdef HAVE_AGENT
/* Does a configuration enforce anything? */
bool data_path_wanted(const struct config *);
/* Opens it for a configuration that enforces. Telemetry does not depend on it: a failure is logged. */
void data_path_hold(const struct config *);
/* Releases all clamps and keeps it for the next caller. NULL: nothing. */
void data_path_park(struct rwnd *, const struct config_rwnd *);
/* What was parked, if it suits: the caller's from now on. NULL: there is none. */
struct rwnd *data_path_parked(const struct config_rwnd *);
#else
static inline void data_path_hold(const struct config *c) {}
#endif

#endif
