/* The exporter's view of itself, as a row of the contract and as JSON. */
#ifndef OAL_HEALTH_H
#define OAL_HEALTH_H

#include "base/clock.h"
#include "collect/collector.h"
#include "pipeline/pipeline.h"
#include "ship/sink.h"

#include <stddef.h>
#include <stdint.h>

struct health_sink {
	const char *name;
	struct sink_stats stats;
};

struct agent;
struct alarms;
struct collectors;
struct controller;
struct destinations;

struct health {
	const char *ap_id, *site;
	uint64_t boot_id, uptime_us;
	uint32_t reloads, reloads_refused;
	struct clock_quality clock;
	struct pipeline_stats pipeline; /* all 0 when nothing is collected live */
	struct collector_counts counts;
	struct health_sink sinks[4];
	unsigned n_sinks;
	uint64_t cpu_us, rss_bytes;
	const char *collector_names; /* as a JSON list */
	const struct collectors *collectors;
	struct agent *agent; /* NULL: none */
	struct controller *controller; /* likewise */
	struct destinations *destinations; /* of a host; likewise */
	const struct alarms *alarms;
};

/* Fills cpu_us and rss_bytes. Does not allocate. */
void health_measure(struct health *);
void health_row(const struct health *, uint16_t version, struct oal_health_row *);
size_t health_json(const struct health *, char *buf, size_t size);

#endif
