/* rows.h: rows on their way into a data path: what was sampled of entities that have a state, and events. */
#ifndef OAL_ROWS_H
#define OAL_ROWS_H

#include <stdint.h>

#include "oal_schema.h"

struct pipeline;

/* A row (`struct oal_<table>_row`) sampled at this tick, its `tick` column filled in here. For state tables and the
 * tables of the events topic. Growth of loss counters becomes drop_event rows. */
void pipeline_row(struct pipeline *, enum oal_table_id, const void *row);
/* The entity with this row's keys has left. Unknown entities are ignored. */
void pipeline_gone(struct pipeline *, enum oal_table_id, const void *row);
/* Called once in a sampling round of a table that was complete: entities of `table` on `device` without a row since
 * `since_us` have left. Spares the caller a list of its own. */
void pipeline_gone_before(struct pipeline *, enum oal_table_id, uint16_t device, uint64_t since_us);

/* --- for this room */
/* Where each table's rows have their tick and device; before any row. */
void rows_find_columns(struct pipeline *);
/* A batch begins: the first row of each live entity, as it was last known. */
void rows_keyframes(struct pipeline *);

#endif
