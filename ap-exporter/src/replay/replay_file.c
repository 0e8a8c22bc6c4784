#include "replay/replay_file.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "packet/pcap.h"
#include "wire/batch_decode.h"

int replay_fail(int code, char *err, size_t size, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(err, size, format, args);
	va_end(args);
	return code;
}

static int compare_records(const void *a, const void *b)
{
	const struct capture_record *x = a, *y = b;

	if (x->t0_us != y->t0_us)
		return x->t0_us < y->t0_us ? -1 : 1;
	return x->topic - y->topic;
}

/* Keeps the good records of the first AP, samples and packets, in order of time. */
static int read_records(struct replay_file *f, char *err, size_t size)
{
	struct capture_reader reader;
	struct capture_record record;
	struct batch_view v;
	const uint8_t *ap = NULL;
	size_t ap_len = 0;
	uint32_t room = 0;

	capture_open(&reader, f->bytes, f->len);
	while (capture_next(&reader, &record)) {
		if (record.topic == OAL_TOPIC_EVENTS)
			continue; /* health, decisions and bundles of the exporter that recorded it */
		if (batch_decode(&v, record.topic, record.bytes, record.len, NULL, 0)) {
			f->batches_refused++;
			continue;
		}
		if (ap && (v.ap_id.len != ap_len || memcmp(v.ap_id.at, ap, ap_len))) {
			f->other_ap++;
			continue;
		}
		ap = v.ap_id.at;
		ap_len = v.ap_id.len;
		record.t0_us = v.t0_us; /* the batch's word counts */
		if (!f->tick_us)
			f->tick_us = v.tick_us;
		if (v.tick_us != f->tick_us) {
			f->batches_refused++;
			continue;
		}
		if (f->n_records == room) {
			struct capture_record *more =
				realloc(f->records, (room = room ? 2 * room : 256) * sizeof *more);

			if (!more)
				return replay_fail(-ENOMEM, err, size, "no memory to read %s", f->path);
			f->records = more;
		}
		f->records[f->n_records++] = record;
	}
	f->breaks = reader.breaks;
	if (!f->n_records)
		return replay_fail(-EINVAL, err, size,
				   "%s holds no batch that can be played: record one with the file sink", f->path);
	qsort(f->records, f->n_records, sizeof *f->records, compare_records);
	return 0;
}

/* Groups records by t0, and finds out what the largest group needs. */
static int find_groups(struct replay_file *f, char *err, size_t size)
{
	uint32_t i;

	f->groups = calloc(f->n_records, sizeof *f->groups);
	if (!f->groups)
		return replay_fail(-ENOMEM, err, size, "no memory to read %s", f->path);
	for (i = 0; i < f->n_records;) {
		struct replay_group *g = &f->groups[f->n_groups++];
		uint32_t rows = 0, bytes = 0, packets = 0;
		struct batch_view v;
		unsigned t;

		for (g->first = i, g->t0_us = f->records[i].t0_us; i < f->n_records && f->records[i].t0_us == g->t0_us;
		     i++, g->n++) {
			batch_decode(&v, f->records[i].topic, f->records[i].bytes, f->records[i].len, NULL, 0);
			if (g->end_us < g->t0_us + (uint64_t)v.ticks * v.tick_us)
				g->end_us = g->t0_us + (uint64_t)v.ticks * v.tick_us;
			for (t = 0; t < OAL_N_TABLES; t++)
				if (replay_table_is_state(t)) {
					rows += v.n_rows[t];
					bytes += v.n_rows[t] * oal_tables[t].row_size;
				}
			packets += v.n_rows[OAL_PACKET];
			if (v.n_flows > f->max_flows)
				f->max_flows = v.n_flows;
		}
		f->max_rows = rows > f->max_rows ? rows : f->max_rows;
		f->max_row_bytes = bytes > f->max_row_bytes ? bytes : f->max_row_bytes;
		f->max_packets = packets > f->max_packets ? packets : f->max_packets;
	}
	f->first_us = f->groups[0].t0_us;
	f->last_us = f->groups[f->n_groups - 1].end_us;
	return 0;
}

static int scan_pcap(struct replay_file *f, char *err, size_t size)
{
	struct pcap pcap;
	struct pcap_packet k;
	uint64_t n = 0;

	if (pcap_open(&pcap, f->bytes, f->len))
		return replay_fail(-EINVAL, err, size,
				   "%s is neither a capture of the file sink nor a pcap or pcapng file", f->path);
	for (; pcap_next(&pcap, &k); n++) {
		f->first_us = !n || k.t_us < f->first_us ? k.t_us : f->first_us;
		f->last_us = k.t_us > f->last_us ? k.t_us : f->last_us;
	}
	f->breaks = pcap.broken;
	if (!n)
		return replay_fail(-EINVAL, err, size,
				   "%s holds no packet of a known link type (Ethernet, raw IP, Linux cooked)", f->path);
	if (f->last_us - f->first_us > UINT64_C(30) * 86400 * 1000000)
		return replay_fail(-EINVAL, err, size, "%s spans more than 30 days: its timestamps are damaged",
				   f->path);
	f->is_pcap = true;
	f->tick_us = OAL_SETTING_TICK_US;
	return 0;
}

int replay_file_read(struct replay_file *f, const char *path, char *err, size_t size)
{
	int code = capture_load(path, &f->bytes, &f->len);

	f->path = path;
	if (code)
		return replay_fail(code, err, size, "cannot read %s: %s", f->path, strerror(-code));
	if (!capture_is(f->bytes, f->len))
		return scan_pcap(f, err, size);
	code = read_records(f, err, size);
	return code ? code : find_groups(f, err, size);
}

void replay_file_free(struct replay_file *f)
{
	free(f->groups);
	free(f->records);
	free(f->bytes);
}
