/* kmod_table.h: the stations that the kernel module reports, between its records and the pipeline's rows. */
#ifndef OAL_KMOD_TABLE_H
#define OAL_KMOD_TABLE_H

#include "kmod/oal_sampler.h"

#include <stdint.h>

struct kmod_table;
struct pipeline;

/* Of at most `max`; `device` is the interface's name in rows. NULL: no memory. */
struct kmod_table *kmod_table_new(struct pipeline *, uint16_t device, uint32_t max, uint32_t active_hold_ticks);
void kmod_table_free(struct kmod_table *);
/* A record becomes rows. Of a station without traffic whose flows have had packets before `now_us` (realtime, of this
 * tick) the module is asked to read more. */
void kmod_table_record(struct kmod_table *, const struct oal_sampler_record *, struct oal_sampler_reader *,
		       uint64_t now_us);
/* All have left. */
void kmod_table_forget(struct kmod_table *);

#endif
