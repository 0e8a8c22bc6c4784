/* known.h: what a data path knows now: for control, for the collectors' rates, and for questions about the site. */
#ifndef OAL_KNOWN_H
#define OAL_KNOWN_H

#include <stdbool.h>
#include <stdint.h>

#include "oal_schema.h"

struct flow_table;
struct pipeline;

/* Valid until the next call that changes the pipeline. */
const struct flow_table *pipeline_flow_table(const struct pipeline *);
uint64_t pipeline_flow_id(const struct pipeline *, uint16_t flow); /* as in FlowDictionary */
/* Of data going down, at the last decision instant at which there was any. */
const struct oal_flow_row *pipeline_flow_row(const struct pipeline *, uint16_t flow);
/* Entities of a state table: places, and the latest row at a place; NULL where nobody is. */
unsigned pipeline_places(const struct pipeline *, enum oal_table_id);
const void *pipeline_known(const struct pipeline *, enum oal_table_id, unsigned place);

/* True when a flow of this station had a packet since `since_us`: then it is worth 250 Hz. */
bool pipeline_station_active(const struct pipeline *, uint64_t mac, uint64_t since_us);
/* Do this station's packets pass by the port where headers are read? Then what is known of its flows is not all, and
 * what is done at that port does not reach them. Forgotten when it leaves. */
void pipeline_station_set_bypassed(struct pipeline *, uint64_t mac, bool bypassed);
bool pipeline_station_bypassed(const struct pipeline *, uint64_t mac);
/* Channels of the AP's radios now, MHz, each once, in the order in which they came; returns how many, at most `most`.
 */
unsigned pipeline_frequencies(const struct pipeline *, uint16_t *mhz, unsigned most);

#endif
