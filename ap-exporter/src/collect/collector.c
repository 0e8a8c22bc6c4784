#include "collect/collector.h"

#include "pipeline/pipeline.h"

#ifdef OAL_HOST
const struct collector_ops *const collector_all[] = { &collect_tcp, &collect_qdisc, &collect_replay, NULL };
#else
/* Packets before everything that counts them; addresses before the packets of the next tick. */
const struct collector_ops *const collector_all[] = {
	&collect_packet, &collect_tap,    &collect_nl80211, &collect_qdisc,
	&collect_beacon, &collect_neigh, &collect_replay, NULL,
};
#endif

void pipeline_stats_add(struct pipeline_stats *sum, const struct pipeline_stats *more)
{
	sum->ticks += more->ticks;
	sum->ticks_missed += more->ticks_missed;
	if (more->tick_late_max_us > sum->tick_late_max_us)
		sum->tick_late_max_us = more->tick_late_max_us;
	sum->packets += more->packets;
	sum->packets_skipped += more->packets_skipped;
	sum->packets_late += more->packets_late;
	sum->ring_drops += more->ring_drops;
	sum->rows_sampled += more->rows_sampled;
	sum->rows_sent += more->rows_sent;
	sum->rows_dropped += more->rows_dropped;
	sum->entities_refused += more->entities_refused;
	sum->flows += more->flows;
	sum->stations_bypassed += more->stations_bypassed;
	sum->flows_evicted += more->flows_evicted;
	sum->names_refused += more->names_refused;
	sum->dumps_interrupted += more->dumps_interrupted;
	sum->batches += more->batches;
	sum->batch_bytes += more->batch_bytes;
	sum->decisions += more->decisions;
	sum->memory_bytes += more->memory_bytes;
	for (int i = 0; i < OAL_N_TABLES; i++)
		sum->table_rows[i] += more->table_rows[i];
}
