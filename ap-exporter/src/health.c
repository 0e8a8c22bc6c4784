#include "health.h"

#include "agent/agent.h"
#include "alarms.h"
#include "collectors.h"
#ifdef HAVE_CONGESTION
#include "destination/destinations.h"
#endif
#include "control/controller.h"
#include "base/json.h"
#include "base/version.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

void health_measure(struct health *h)
{
	struct rusage u;
	char text[128];
	ssize_t n;
	int fd;

	getrusage(RUSAGE_SELF, &u);
	h->cpu_us = (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000u +
		    (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
	h->rss_bytes = 0;
	fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = read(fd, text, sizeof text - 1);
	close(fd);
	if (n > 0) {
		char *resident;

		text[n] = '\0';
		resident = strchr(text, ' '); /* "size resident …", in pages */
		if (resident)
			h->rss_bytes = strtoull(resident, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
	}
}

/* What the sinks together did: a batch counts once per sink. */
static struct sink_stats total(const struct health *h)
{
	struct sink_stats t = { 0 };

	for (unsigned i = 0; i < h->n_sinks; i++) {
		t.delivered += h->sinks[i].stats.delivered;
		t.let_go += h->sinks[i].stats.let_go;
		t.errors += h->sinks[i].stats.errors;
		t.queued_bytes += h->sinks[i].stats.queued_bytes;
	}
	return t;
}

void health_row(const struct health *h, uint16_t version, struct oal_health_row *r)
{
	const struct pipeline_stats *p = &h->pipeline;
	const struct sampling sampling = collectors_sampling(h->collectors);
	struct sink_stats t = total(h);

	*r = (struct oal_health_row){
		.version = version,
		.ticks = p->ticks,
		.ticks_missed = p->ticks_missed,
		.tick_late_max_us = p->tick_late_max_us,
		.packets = p->packets,
		.ring_drops = h->counts.ring_drops,
		.packets_skipped = p->packets_skipped,
		.rows_sampled = p->rows_sampled,
		.rows_sent = p->rows_sent,
		.rows_dropped = p->rows_dropped,
		.flows = p->flows,
		.flows_evicted = p->flows_evicted,
		.dumps_interrupted = h->counts.dumps_interrupted,
		.netlink_errors = h->counts.netlink_errors,
		.batches = p->batches,
		.batch_bytes = p->batch_bytes,
		.delivered = t.delivered,
		.let_go = t.let_go,
		.sink_errors = t.errors,
		.queued_bytes = t.queued_bytes,
		.cpu_us = h->cpu_us,
		.rss_bytes = h->rss_bytes,
		.clock_error_us = h->clock.error_us,
		.clock_state = (uint8_t)h->clock.state,
		.sampling_permille =
			(uint16_t)(sampling.cpu_permille < UINT16_MAX ? sampling.cpu_permille : UINT16_MAX),
		.samples_late = sampling.late_ticks,
		.sample_max_us = sampling.longest_us,
		.sampling_pace = (uint16_t)sampling.pace,
		.counters_mended = h->counts.counters_mended,
		.stations_bypassed = (uint16_t)p->stations_bypassed, /* 512 at the most of each radio */
	};
}

size_t health_json(const struct health *h, char *buf, size_t size)
{
	static const char *const clock_states[] = { "unknown", "synchronised", "unsynchronised", "stepped" };
	const struct pipeline_stats *p = &h->pipeline;
	struct json t = { buf, size, 0 };

	json_add(&t, "{\"ap_id\": ");
	json_string(&t, h->ap_id);
	json_add(&t, ", \"site\": ");
	json_string(&t, h->site);
	json_add(&t, ", \"version\": \"%s\", \"boot_id\": \"%llu\"", OAL_VERSION, (unsigned long long)h->boot_id);
	json_count(&t, "uptime_us", h->uptime_us);
	alarms_json(h->alarms, &t);
	json_add(&t, ", \"collectors\": %s", h->collector_names);
	collectors_json(h->collectors, &t);
	json_count(&t, "ticks", p->ticks);
	json_count(&t, "ticks_missed", p->ticks_missed);
	json_count(&t, "tick_late_max_us", p->tick_late_max_us);
	json_count(&t, "packets", p->packets);
	json_count(&t, "packets_skipped", p->packets_skipped);
	json_count(&t, "packets_late", p->packets_late);
	json_count(&t, "ring_drops", h->counts.ring_drops);
	json_count(&t, "rows_sampled", p->rows_sampled);
	json_count(&t, "rows_sent", p->rows_sent);
	json_count(&t, "rows_dropped", p->rows_dropped);
	json_count(&t, "entities_refused", p->entities_refused);
	json_count(&t, "flows", p->flows);
	json_count(&t, "flows_evicted", p->flows_evicted);
	json_count(&t, "dumps_interrupted", h->counts.dumps_interrupted);
	json_count(&t, "netlink_errors", h->counts.netlink_errors);
	json_count(&t, "interface_losses", h->counts.interface_losses);
	json_count(&t, "counters_mended", h->counts.counters_mended);
	json_count(&t, "senders_refused", h->counts.senders_refused);
	json_count(&t, "sender_ends_lost", h->counts.sender_ends_lost);
	json_count(&t, "batches", p->batches);
	json_count(&t, "batch_bytes", p->batch_bytes);
	json_count(&t, "decisions", p->decisions);
	json_count(&t, "reloads", h->reloads);
	json_count(&t, "reloads_refused", h->reloads_refused);
	json_count(&t, "cpu_us", h->cpu_us);
	json_count(&t, "rss_bytes", h->rss_bytes);
	json_add(&t, ", \"clock\": {\"state\": \"%s\"", clock_states[h->clock.state]);
	json_count(&t, "error_us", h->clock.error_us);
	json_count(&t, "steps", h->clock.steps);
	json_add(&t, "}, \"table_rows\": {");
	for (int i = 0; i < OAL_N_TABLES; i++)
		json_add(&t, "%s\"%s\": %llu", i ? ", " : "", oal_tables[i].name, (unsigned long long)p->table_rows[i]);
	json_add(&t, "}, \"sinks\": {");
	for (unsigned i = 0; i < h->n_sinks; i++) {
		const struct sink_stats *s = &h->sinks[i].stats;

		json_add(&t, "%s\"%s\": {\"delivered\": %llu", i ? ", " : "", h->sinks[i].name,
			 (unsigned long long)s->delivered);
		json_count(&t, "let_go", s->let_go);
		json_count(&t, "errors", s->errors);
		json_count(&t, "queued_bytes", s->queued_bytes);
		json_count(&t, "throttled_ms", s->throttled_ms);
		json_add(&t, ", \"last_error\": ");
		json_string(&t, s->last_error);
		json_add(&t, "}");
	}
	json_add(&t, "}");
	if (h->agent && t.len < t.size) {
		json_add(&t, ", \"agent\": ");
		if (t.len < t.size)
			t.len += agent_json(h->agent, t.buf + t.len, t.size - t.len);
	}
	if (h->controller) {
		json_add(&t, ", \"control\": ");
		controller_json(h->controller, &t);
	}
#if defined HAVE_AGENT && defined HAVE_CONGESTION
	if (h->destinations) {
		json_add(&t, ", \"congestion\": ");
		destinations_json(h->destinations, &t);
	}
#endif
	json_add(&t, "}\n");
	return json_len(&t);
}
