/* tc_maps.h: what is done alike with the maps of all tc programs that act. Part of what keeps privileges
 * (helper/serve.h). */
#ifndef OAL_TC_MAPS_H
#define OAL_TC_MAPS_H

#include "helper/tc_action.h"

/* Removes every subject. 0 or negative errno. */
int tc_maps_clear(const struct tc_action_programs *);
/* Adds the counters, all processors together: `n` of each of the map's first `keys` keys, one key after the other. 0 or
 * negative errno. */
int tc_maps_count(const struct tc_action_programs *, uint32_t keys, uint32_t n, struct helper_answer *);

#endif
