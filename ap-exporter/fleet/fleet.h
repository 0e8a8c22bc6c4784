/* fleet.h: plays a capture as many APs into Kafka, in real time. One real AP (replay, pipeline, encoder) makes the
 * batches; every AP sends each of them, re-stamped. */
#ifndef OAL_FLEET_H
#define OAL_FLEET_H

#include "base/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct fleet_options {
	const char *capture, *prefix, *site;
	const char *mac_masters; /* NULL: batches are not signed */
	uint64_t start_us; /* realtime at which the capture begins */
	unsigned aps; /* in the end */
	unsigned from, step, step_s; /* begins with `from`, `step` more every step_s seconds */
	unsigned producers;
	unsigned seconds; /* 0: until it is stopped */
	bool dry; /* makes, stamps and signs, but sends nothing */
	struct config config; /* section kafka */
};

struct fleet_counts {
	uint64_t batches, rows, bytes; /* handed over */
	uint64_t delivered, let_go, errors;
	uint64_t late_max_us; /* of the last second: how long after its time a batch was handed over */
	char last_error[192];
};

struct fleet;

int fleet_new(struct fleet **, const struct fleet_options *, char *err, size_t err_size);
/* Does what is due. */
void fleet_run(struct fleet *, uint64_t realtime_us, uint64_t monotonic_us);
/* Nothing more will be delivered: `err` says why. */
bool fleet_failed(const struct fleet *, char *err, size_t err_size);
/* How many APs there are from now on; at most options.aps. */
void fleet_grow(struct fleet *, unsigned aps);
unsigned fleet_aps(const struct fleet *);
/* Since the start; late_max_us begins anew. */
void fleet_counts(struct fleet *, struct fleet_counts *);
/* Sends what is under way, for at most `flush_ms`; what is left counts as let go, in *last. */
void fleet_end(struct fleet *, struct fleet_counts *last);

#endif
