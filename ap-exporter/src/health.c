#include "health.h"

#include "version.h"

#include <fcntl.h>
#include <stdarg.h>
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
	h->cpu_us = (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000u + (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
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
	};
}

struct text {
	char *buf;
	size_t size, len;
};

static void add(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (t->len >= t->size)
		return;
	va_start(ap, fmt);
	n = vsnprintf(t->buf + t->len, t->size - t->len, fmt, ap);
	va_end(ap);
	t->len += n > 0 ? (size_t)n : 0;
}

static void add_string(struct text *t, const char *s)
{
	add(t, "\"");
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			add(t, "\\%c", *s);
		else if ((unsigned char)*s < 0x20)
			add(t, "\\u%04x", (unsigned char)*s);
		else
			add(t, "%c", *s);
	}
	add(t, "\"");
}

static void add_count(struct text *t, const char *name, uint64_t v)
{
	add(t, ", \"%s\": %llu", name, (unsigned long long)v);
}

size_t health_json(const struct health *h, char *buf, size_t size)
{
	static const char *const clock_states[] = { "unknown", "synchronised", "unsynchronised", "stepped" };
	const struct pipeline_stats *p = &h->pipeline;
	struct text t = { buf, size, 0 };

	add(&t, "{\"ap_id\": ");
	add_string(&t, h->ap_id);
	add(&t, ", \"site\": ");
	add_string(&t, h->site);
	add(&t, ", \"version\": \"%s\", \"boot_id\": \"%llu\"", OAL_VERSION, (unsigned long long)h->boot_id);
	add_count(&t, "uptime_us", h->uptime_us);
	add(&t, ", \"collectors\": %s", h->collectors);
	add_count(&t, "ticks", p->ticks);
	add_count(&t, "ticks_missed", p->ticks_missed);
	add_count(&t, "tick_late_max_us", p->tick_late_max_us);
	add_count(&t, "packets", p->packets);
	add_count(&t, "packets_skipped", p->packets_skipped);
	add_count(&t, "packets_late", p->packets_late);
	add_count(&t, "ring_drops", h->counts.ring_drops);
	add_count(&t, "rows_sampled", p->rows_sampled);
	add_count(&t, "rows_sent", p->rows_sent);
	add_count(&t, "rows_dropped", p->rows_dropped);
	add_count(&t, "entities_refused", p->entities_refused);
	add_count(&t, "flows", p->flows);
	add_count(&t, "flows_evicted", p->flows_evicted);
	add_count(&t, "dumps_interrupted", h->counts.dumps_interrupted);
	add_count(&t, "netlink_errors", h->counts.netlink_errors);
	add_count(&t, "interface_losses", h->counts.interface_losses);
	add_count(&t, "batches", p->batches);
	add_count(&t, "batch_bytes", p->batch_bytes);
	add_count(&t, "decisions", p->decisions);
	add_count(&t, "reloads", h->reloads);
	add_count(&t, "reloads_refused", h->reloads_refused);
	add_count(&t, "cpu_us", h->cpu_us);
	add_count(&t, "rss_bytes", h->rss_bytes);
	add(&t, ", \"clock\": {\"state\": \"%s\"", clock_states[h->clock.state]);
	add_count(&t, "error_us", h->clock.error_us);
	add_count(&t, "steps", h->clock.steps);
	add(&t, "}, \"table_rows\": {");
	for (int i = 0; i < OAL_N_TABLES; i++)
		add(&t, "%s\"%s\": %llu", i ? ", " : "", oal_tables[i].name, (unsigned long long)p->table_rows[i]);
	add(&t, "}, \"sinks\": {");
	for (unsigned i = 0; i < h->n_sinks; i++) {
		const struct sink_stats *s = &h->sinks[i].stats;

		add(&t, "%s\"%s\": {\"delivered\": %llu", i ? ", " : "", h->sinks[i].name, (unsigned long long)s->delivered);
		add_count(&t, "let_go", s->let_go);
		add_count(&t, "errors", s->errors);
		add_count(&t, "queued_bytes", s->queued_bytes);
		add(&t, ", \"last_error\": ");
		add_string(&t, s->last_error);
		add(&t, "}");
	}
	add(&t, "}}\n");
	return t.len < size ? t.len : size - 1;
}
