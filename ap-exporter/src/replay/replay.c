#include "replay/replay.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "wire/batch_decode.h"
#include "wire/capture_file.h"
#include "pipeline/dedup.h"
#include "packet/packet.h"
#include "packet/pcap.h"

enum { MAX_APS = 1000, HEALTH_TICKS = 250, LOOP_PORT_STEP = 7919, MAX_COLUMNS = 32 };
_Static_assert((int)OAL_STATION_N_COLUMNS <= (int)MAX_COLUMNS, "the widest state table fits struct entity");
static const uint64_t INTERVAL_US = OAL_SETTING_DECISION_INTERVAL_US;

/* Batches of one t0 in the file: they are decoded and played together. */
struct group {
	uint64_t t0_us, end_us;
	uint32_t first, n; /* records */
};

/* A state row of the group that is being played. */
struct played_row {
	uint64_t t_us;
	uint32_t table, at; /* at: in the player's bytes */
};

/* What is remembered of an entity: to tell that it left, and to let its counters go on after the file's end. */
struct entity {
	bool present, rebase;
	uint32_t group; /* of its last row, counted over loops */
	uint64_t offset[MAX_COLUMNS]; /* added to a counter, per column */
	uint64_t last[MAX_COLUMNS]; /* last value given out */
};

struct player {
	char ap_id[160];
	struct replay *replay;
	struct pipeline *pipeline;
	uint64_t shift_us; /* file's time + this = realtime of the row (wraps) */
	uint64_t due_us; /* realtime of the next tick */
	uint64_t end_us; /* of the file, in realtime */
	uint32_t missed;
	uint32_t loop, groups_played;
	uint32_t ticks; /* since the start */
	bool done;
	/* Capture. */
	uint32_t group; /* next one to decode */
	uint64_t group_end_us; /* of the decoded one, realtime */
	struct played_row *rows;
	uint32_t n_rows, row;
	uint8_t *bytes;
	struct packet *packets;
	uint32_t n_packets, packet;
	uint64_t missed_from[128], missed_to[128]; /* realtime */
	unsigned n_missed;
	struct dedup keys[OAL_N_TABLES];
	struct entity *entities[OAL_N_TABLES];
	/* pcap. */
	struct pcap pcap;
	struct packet ahead;
	bool has_ahead;
};

struct replay {
	struct replay_config c;
	uint8_t *file;
	size_t file_len;
	bool is_pcap;
	struct pcap_network net;
	struct capture_record *records;
	uint32_t n_records;
	struct group *groups;
	uint32_t n_groups;
	uint32_t max_rows, max_row_bytes, max_packets, max_flows; /* of a group */
	uint64_t first_us, last_us; /* of the file */
	uint32_t tick_us;
	struct player *players;
	struct batch_flow *flows; /* scratch: dictionary of the batch being decoded */
	struct replay_stats stats;
};

static bool is_state(unsigned t)
{
	return oal_tables[t].topic == OAL_TOPIC_SAMPLES;
}

/* --- reading the file */

__attribute__((format(printf, 4, 5))) static int fail(int code, char *err, size_t size, const char *format, ...)
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
static int read_records(struct replay *r, char *err, size_t size)
{
	struct capture_reader reader;
	struct capture_record record;
	struct batch_view v;
	const uint8_t *ap = NULL;
	size_t ap_len = 0;
	uint32_t room = 0;

	capture_open(&reader, r->file, r->file_len);
	while (capture_next(&reader, &record)) {
		if (record.topic == OAL_TOPIC_EVENTS)
			continue; /* health, decisions and bundles of the exporter that recorded it */
		if (batch_decode(&v, record.topic, record.bytes, record.len, NULL, 0)) {
			r->stats.batches_refused++;
			continue;
		}
		if (ap && (v.ap_id.len != ap_len || memcmp(v.ap_id.at, ap, ap_len))) {
			r->stats.other_ap++;
			continue;
		}
		ap = v.ap_id.at;
		ap_len = v.ap_id.len;
		record.t0_us = v.t0_us; /* the batch's word counts */
		if (!r->tick_us)
			r->tick_us = v.tick_us;
		if (v.tick_us != r->tick_us) {
			r->stats.batches_refused++;
			continue;
		}
		if (r->n_records == room) {
			struct capture_record *more = realloc(r->records, (room = room ? 2 * room : 256) * sizeof *more);

			if (!more)
				return fail(-ENOMEM, err, size, "no memory to read %s", r->c.path);
			r->records = more;
		}
		r->records[r->n_records++] = record;
	}
	r->stats.breaks = reader.breaks;
	if (!r->n_records)
		return fail(-EINVAL, err, size, "%s holds no batch that can be played: record one with the file sink", r->c.path);
	qsort(r->records, r->n_records, sizeof *r->records, compare_records);
	return 0;
}

/* Groups records by t0, and finds out what the largest group needs. */
static int find_groups(struct replay *r, char *err, size_t size)
{
	uint32_t i;

	r->groups = calloc(r->n_records, sizeof *r->groups);
	if (!r->groups)
		return fail(-ENOMEM, err, size, "no memory to read %s", r->c.path);
	for (i = 0; i < r->n_records;) {
		struct group *g = &r->groups[r->n_groups++];
		uint32_t rows = 0, bytes = 0, packets = 0;
		struct batch_view v;
		unsigned t;

		for (g->first = i, g->t0_us = r->records[i].t0_us; i < r->n_records && r->records[i].t0_us == g->t0_us; i++, g->n++) {
			batch_decode(&v, r->records[i].topic, r->records[i].bytes, r->records[i].len, NULL, 0);
			if (g->end_us < g->t0_us + (uint64_t)v.ticks * v.tick_us)
				g->end_us = g->t0_us + (uint64_t)v.ticks * v.tick_us;
			for (t = 0; t < OAL_N_TABLES; t++)
				if (is_state(t)) {
					rows += v.n_rows[t];
					bytes += v.n_rows[t] * oal_tables[t].row_size;
				}
			packets += v.n_rows[OAL_PACKET];
			if (v.n_flows > r->max_flows)
				r->max_flows = v.n_flows;
		}
		r->max_rows = rows > r->max_rows ? rows : r->max_rows;
		r->max_row_bytes = bytes > r->max_row_bytes ? bytes : r->max_row_bytes;
		r->max_packets = packets > r->max_packets ? packets : r->max_packets;
	}
	r->first_us = r->groups[0].t0_us;
	r->last_us = r->groups[r->n_groups - 1].end_us;
	return 0;
}

static int scan_pcap(struct replay *r, char *err, size_t size)
{
	struct pcap pcap;
	struct pcap_packet k;
	uint64_t n = 0;

	if (pcap_open(&pcap, r->file, r->file_len))
		return fail(-EINVAL, err, size, "%s is neither a capture of the file sink nor a pcap or pcapng file", r->c.path);
	for (; pcap_next(&pcap, &k); n++) {
		r->first_us = !n || k.t_us < r->first_us ? k.t_us : r->first_us;
		r->last_us = k.t_us > r->last_us ? k.t_us : r->last_us;
	}
	r->stats.breaks = pcap.broken;
	if (!n)
		return fail(-EINVAL, err, size, "%s holds no packet of a known link type (Ethernet, raw IP, Linux cooked)", r->c.path);
	if (r->last_us - r->first_us > UINT64_C(30) * 86400 * 1000000)
		return fail(-EINVAL, err, size, "%s spans more than 30 days: its timestamps are damaged", r->c.path);
	r->is_pcap = true;
	r->tick_us = OAL_SETTING_TICK_US;
	return 0;
}

static int read_file(struct replay *r, char *err, size_t size)
{
	int code = capture_load(r->c.path, &r->file, &r->file_len);

	if (code)
		return fail(code, err, size, "cannot read %s: %s", r->c.path, strerror(-code));
	if (!capture_is(r->file, r->file_len))
		return scan_pcap(r, err, size);
	code = read_records(r, err, size);
	return code ? code : find_groups(r, err, size);
}

/* --- players */

static void emit(void *ctx, const struct batch_out *b)
{
	struct player *p = ctx;

	p->replay->c.emit(p->replay->c.ctx, p->ap_id, b);
}

static uint64_t round_up(uint64_t v, uint64_t unit)
{
	return (v + unit - 1) / unit * unit;
}

/* Begins the file for the n-th time, its first interval at `at_us`. */
static void begin_loop(struct player *p, uint64_t at_us)
{
	const struct replay *r = p->replay;
	unsigned t, i;

	p->shift_us = at_us - r->first_us / INTERVAL_US * INTERVAL_US;
	p->end_us = r->last_us + p->shift_us;
	p->group = 0;
	p->group_end_us = 0;
	p->replay->stats.loops++;
	if (r->is_pcap)
		pcap_open(&p->pcap, r->file, r->file_len);
	for (t = 0; t < OAL_N_TABLES; t++)
		for (i = 0; p->entities[t] && i < p->keys[t].max; i++)
			p->entities[t][i].rebase = true;
	if (p->loop)
		pipeline_flows_end(p->pipeline);
}

static int new_player(struct replay *r, unsigned i, char *err, size_t size)
{
	static const unsigned most[OAL_N_TABLES] = {[OAL_STATION] = 256, [OAL_STATION_AC] = 1024, [OAL_CHANNEL] = 64, [OAL_QUEUE] = 256, [OAL_BEACON] = 512, [OAL_NEIGHBOUR_AP] = 256};
	struct player *p = &r->players[i];
	const struct pipeline_config c = {
		.ap_id = p->ap_id, .site = r->c.site, .boot_id = r->c.boot_id + i, .tick_us = r->tick_us, .max_flows = r->c.max_flows,
		.max_packets_per_batch = r->c.max_packets_per_batch, .pseudonym_key = r->c.pseudonym_key,
		.pseudonym_key_len = r->c.pseudonym_key_len, .program = r->c.program, .now_ns = r->c.now_ns, .emit = emit, .ctx = p};
	const uint64_t stagger_us = (uint64_t)OAL_SETTING_BATCH_TICKS * i / r->c.aps * r->tick_us;
	const uint64_t at_us = round_up(r->c.start_us, INTERVAL_US) + stagger_us;
	unsigned t;
	int code;

	p->replay = r;
	config_virtual_ap(p->ap_id, sizeof p->ap_id, r->c.ap_id, r->c.aps, i);
	code = r->c.open_ap ? r->c.open_ap(r->c.ctx, i, &c, &p->pipeline, err, size) : pipeline_new(&p->pipeline, &c);
	for (t = 0; !code && !r->is_pcap && t < OAL_N_TABLES; t++)
		if (is_state(t)) {
			code = dedup_new(&p->keys[t], t, most[t]);
			p->entities[t] = calloc(most[t], sizeof *p->entities[t]);
			if (!p->entities[t])
				code = -ENOMEM;
		}
	p->rows = calloc(r->max_rows + 1, sizeof *p->rows);
	p->bytes = malloc(r->max_row_bytes + 1);
	p->packets = calloc(r->max_packets + 1, sizeof *p->packets);
	if (!code && (!p->rows || !p->bytes || !p->packets))
		code = -ENOMEM;
	if (code)
		return code;
	begin_loop(p, at_us);
	/* A capture's ticks are met exactly; a pcap file has none. */
	p->due_us = (r->is_pcap ? r->first_us / r->tick_us * r->tick_us : r->first_us) + p->shift_us;
	return 0;
}

int replay_new(struct replay **out, const struct replay_config *c, char *err, size_t size)
{
	struct replay *r = calloc(1, sizeof *r);
	unsigned i;
	int code;

	if (size)
		*err = '\0';
	if (!r)
		return fail(-ENOMEM, err, size, "no memory to replay %s", c->path);
	r->c = *c;
	r->c.aps = c->aps ? c->aps : 1;
	r->c.speed_percent = c->speed_percent ? c->speed_percent : 100;
	if (r->c.aps > MAX_APS) {
		code = fail(-EINVAL, err, size, "%u virtual APs; at most %d in one process", r->c.aps, MAX_APS);
		goto failed;
	}
	if (c->client_net && *c->client_net && pcap_network_parse(&r->net, c->client_net)) {
		code = fail(-EINVAL, err, size, "'%s' is not a network: write it like 192.168.1.0/24", c->client_net);
		goto failed;
	}
	if ((code = read_file(r, err, size)))
		goto failed;
	r->stats.aps = r->c.aps;
	r->players = calloc(r->c.aps, sizeof *r->players);
	r->flows = calloc(r->max_flows + 1, sizeof *r->flows);
	if (!r->players || !r->flows) {
		code = fail(-ENOMEM, err, size, "no memory for %u virtual APs", r->c.aps);
		goto failed;
	}
	for (i = 0; i < r->c.aps; i++)
		if ((code = new_player(r, i, err, size))) {
			if (!*err)
				fail(code, err, size, "cannot set up virtual AP %u of %u: %s", i + 1, r->c.aps, strerror(-code));
			goto failed;
		}
	*out = r;
	return 0;
failed:
	replay_free(r);
	return code;
}

void replay_free(struct replay *r)
{
	unsigned i, t;

	if (!r)
		return;
	for (i = 0; r->players && i < r->c.aps; i++) {
		struct player *p = &r->players[i];

		if (!r->c.open_ap)
			pipeline_free(p->pipeline);
		for (t = 0; t < OAL_N_TABLES; t++) {
			dedup_free(&p->keys[t]);
			free(p->entities[t]);
		}
		free(p->rows);
		free(p->bytes);
		free(p->packets);
	}
	free(r->players);
	free(r->flows);
	free(r->groups);
	free(r->records);
	free(r->file);
	free(r);
}

/* --- capture: a group of batches to rows and packets */

static void set(uint8_t *p, uint8_t size, uint64_t v)
{
	switch (size) {
	case 1: *p = (uint8_t)v; break;
	case 2: *(uint16_t *)(void *)p = (uint16_t)v; break;
	case 4: *(uint32_t *)(void *)p = (uint32_t)v; break;
	default: *(uint64_t *)(void *)p = v; break;
	}
}

static uint64_t get(const uint8_t *p, uint8_t size)
{
	switch (size) {
	case 1: return *p;
	case 2: return *(const uint16_t *)(const void *)p;
	case 4: return *(const uint32_t *)(const void *)p;
	default: return *(const uint64_t *)(const void *)p;
	}
}

/* Names of the file become names of the pipeline. */
static void map_names(struct player *p, const struct batch_view *v, const struct oal_table *t, uint8_t *row)
{
	unsigned i;

	for (i = 0; i < t->n_columns; i++)
		if (t->columns[i].type == OAL_T_NAME) {
			uint16_t *name = (uint16_t *)(void *)(row + t->columns[i].offset);
			const struct batch_span s = batch_name(v, *name);
			char text[64];

			snprintf(text, sizeof text, "%.*s", (int)s.len, (const char *)s.at);
			*name = pipeline_name(p->pipeline, text);
		}
}

/* Counters go on where they were when the file began anew. */
static void map_counters(struct entity *e, const struct oal_table *t, uint8_t *row)
{
	unsigned i;

	for (i = t->n_keys; i < t->n_columns; i++) {
		const struct oal_column *c = &t->columns[i];
		const uint64_t mask = c->counter_bits == 32 ? UINT32_MAX : INT64_MAX;
		uint64_t v;

		if (c->kind != OAL_COUNTER)
			continue;
		v = get(row + c->offset, c->size);
		if (e->rebase)
			e->offset[i] = e->last[i] - v;
		v = (v + e->offset[i]) & mask;
		e->last[i] = v;
		set(row + c->offset, c->size, v);
	}
	e->rebase = false;
}

/* Finds or makes the entity of a row; NULL when there are too many. */
static struct entity *entity_of(struct player *p, unsigned t, const uint8_t *row)
{
	int slot = dedup_find(&p->keys[t], row);

	if (slot < 0 && (slot = dedup_add(&p->keys[t], row)) >= 0)
		p->entities[t][slot] = (struct entity){0};
	return slot < 0 ? NULL : &p->entities[t][slot];
}

static void decode_states(struct player *p, const struct batch_view *v, uint32_t *at)
{
	struct batch_cursor c;
	unsigned t;

	for (t = 0; t < OAL_N_TABLES; t++) {
		if (!is_state(t))
			continue;
		for (batch_rows(&c, v, t); batch_next_row(&c, p->bytes + *at);) {
			uint8_t *row = p->bytes + *at;
			struct entity *e;

			map_names(p, v, &oal_tables[t], row);
			e = entity_of(p, t, row);
			if (!e) {
				p->replay->stats.rows_skipped++;
				continue;
			}
			e->present = true;
			e->group = p->groups_played;
			map_counters(e, &oal_tables[t], row);
			p->rows[p->n_rows++] = (struct played_row){batch_row_time_us(v, t, row) + p->shift_us, t, *at};
			*at += oal_tables[t].row_size;
		}
	}
}

/* The higher port of a flow, another one in each loop. */
static uint16_t loop_port(const struct player *p, uint16_t port, uint16_t other)
{
	if (port < other || port < 1024 || !p->loop)
		return port;
	return (uint16_t)(1024 + (port - 1024 + (uint64_t)p->loop * LOOP_PORT_STEP) % 64512);
}

static void decode_packets(struct player *p, const struct batch_view *v)
{
	struct batch_flow *flows = p->replay->flows;
	struct batch_flow_cursor fc;
	struct oal_packet_row row;
	struct batch_cursor c;
	unsigned n = 0;

	for (batch_flows(&fc, v); batch_next_flow(&fc, &flows[n]); n++)
		if (flows[n].station_mac)
			pipeline_station_addr(p->pipeline, flows[n].client_addr, flows[n].addr_len, flows[n].station_mac);
	for (batch_rows(&c, v, OAL_PACKET); batch_next_row(&c, &row);) {
		const struct batch_flow *f = &flows[row.flow];
		const uint16_t client_port = loop_port(p, f->client_port, f->server_port), server_port = loop_port(p, f->server_port, f->client_port);
		const bool up = row.direction;
		struct packet k = {
			.t_us = v->t0_us + (uint64_t)row.t_us + p->shift_us, .src_mac = up ? f->station_mac : 0, .dst_mac = up ? 0 : f->station_mac,
			.addr_len = f->addr_len, .direction = up, .flags = row.flags, .ip_ecn = row.ip_ecn & 3,
			.src_port = up ? client_port : server_port, .dst_port = up ? server_port : client_port, .seq = row.seq, .ack = row.ack,
			.payload_bytes = row.payload_bytes, .window_raw = row.window_raw, .mss_bytes = row.mss_bytes,
			.syn_options = row.syn_options, .wscale = row.wscale, .sack_blocks = row.sack_blocks,
			.has_ts = !(row.absent & OAL_PACKET_ABSENT_TS_VAL), .ts_val = row.ts_val, .ts_ecr = row.ts_ecr};

		if (f->protocol != 6)
			continue;
		memcpy(k.src, up ? f->client_addr : f->server_addr, f->addr_len);
		memcpy(k.dst, up ? f->server_addr : f->client_addr, f->addr_len);
		p->packets[p->n_packets++] = k;
	}
}

static int compare_rows(const void *a, const void *b)
{
	const struct played_row *x = a, *y = b;

	if (x->t_us != y->t_us)
		return x->t_us < y->t_us ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

static int compare_packets(const void *a, const void *b)
{
	const struct packet *x = a, *y = b;

	return x->t_us < y->t_us ? -1 : x->t_us > y->t_us;
}

/* Entities of which the group says nothing have left. */
static void say_gone(struct player *p)
{
	unsigned t, i;

	for (t = 0; t < OAL_N_TABLES; t++)
		for (i = 0; p->entities[t] && i < p->keys[t].max; i++) {
			struct entity *e = &p->entities[t][i];

			if (!e->present || e->group == p->groups_played)
				continue;
			e->present = false;
			pipeline_gone(p->pipeline, t, dedup_known(&p->keys[t], i));
		}
}

static void decode_group(struct player *p)
{
	struct replay *r = p->replay;
	const struct group *g = &r->groups[p->group++];
	bool samples = false;
	uint32_t i, at = 0;

	p->groups_played++;
	p->n_rows = p->row = p->n_packets = p->packet = 0;
	p->n_missed = 0;
	p->group_end_us = g->end_us + p->shift_us;
	for (i = g->first; i < g->first + g->n; i++) {
		struct batch_missed_cursor missed;
		uint64_t from, n;
		struct batch_view v;

		batch_decode(&v, r->records[i].topic, r->records[i].bytes, r->records[i].len, NULL, 0);
		r->stats.batches_read++;
		pipeline_account(p->pipeline, v.ring_drops, v.dumps_interrupted, v.clock_state > 3 ? 0 : (uint8_t)v.clock_state, v.clock_error_us);
		if (v.topic == OAL_TOPIC_PACKETS) {
			decode_packets(p, &v);
			continue;
		}
		samples = true;
		decode_states(p, &v, &at);
		for (batch_missed(&missed, &v); p->n_missed < 128 && batch_next_missed(&missed, &from, &n); p->n_missed++) {
			p->missed_from[p->n_missed] = v.t0_us + from * v.tick_us + p->shift_us;
			p->missed_to[p->n_missed] = p->missed_from[p->n_missed] + n * v.tick_us;
		}
	}
	if (samples)
		say_gone(p);
	qsort(p->rows, p->n_rows, sizeof *p->rows, compare_rows);
	qsort(p->packets, p->n_packets, sizeof *p->packets, compare_packets);
}

static bool was_missed(const struct player *p)
{
	unsigned i;

	/* A hole between two batches of the file; the seam between two loops is none. */
	if (!p->replay->is_pcap && p->due_us >= p->group_end_us && p->group_end_us && p->due_us < p->end_us)
		return true;
	for (i = 0; i < p->n_missed; i++)
		if (p->due_us >= p->missed_from[i] && p->due_us < p->missed_to[i])
			return true;
	return false;
}

static void give_packets(struct player *p, uint64_t before_us)
{
	for (; p->packet < p->n_packets && p->packets[p->packet].t_us < before_us; p->packet++)
		pipeline_packet(p->pipeline, &p->packets[p->packet]);
}

/* --- pcap */

static void give_pcap_packets(struct player *p, uint64_t before_us)
{
	struct pcap_packet k;

	for (;;) {
		enum packet_reason reason, used;

		if (p->has_ahead) {
			if (p->ahead.t_us >= before_us)
				return;
			pipeline_packet(p->pipeline, &p->ahead);
			p->has_ahead = false;
		}
		if (!pcap_next(&p->pcap, &k))
			return;
		reason = packet_parse(&p->ahead, k.link, k.bytes, k.caplen, k.wirelen, &used);
		if (reason) {
			pipeline_skipped_frame(p->pipeline, reason);
			continue;
		}
		p->ahead.t_us = k.t_us + p->shift_us;
		p->ahead.direction = p->replay->net.addr_len ? pcap_direction(&p->replay->net, &p->ahead) : PIPELINE_DIRECTION_UNKNOWN;
		{
			const uint16_t src = p->ahead.src_port, dst = p->ahead.dst_port;

			p->ahead.src_port = loop_port(p, src, dst);
			p->ahead.dst_port = loop_port(p, dst, src);
		}
		p->has_ahead = true;
	}
}

/* --- time */

static void give_health(struct player *p)
{
	const struct replay_config *c = &p->replay->c;
	struct oal_health_row row = {0};
	struct pipeline_stats s;

	if (!c->version || p->ticks % HEALTH_TICKS)
		return;
	pipeline_stats(p->pipeline, &s);
	row.version = pipeline_name(p->pipeline, c->version);
	row.ticks = s.ticks;
	row.ticks_missed = s.ticks_missed;
	row.tick_late_max_us = s.tick_late_max_us;
	row.packets = s.packets;
	row.ring_drops = s.ring_drops;
	row.packets_skipped = s.packets_skipped;
	row.rows_sampled = s.rows_sampled;
	row.rows_sent = s.rows_sent;
	row.rows_dropped = s.rows_dropped;
	row.flows = s.flows;
	row.flows_evicted = s.flows_evicted;
	row.dumps_interrupted = s.dumps_interrupted;
	row.batches = s.batches;
	row.batch_bytes = s.batch_bytes;
	if (c->health)
		c->health(c->ctx, &row);
	pipeline_stats_reset_max(p->pipeline);
	pipeline_row(p->pipeline, OAL_HEALTH, &row);
}

/* The tick that is due, or the next loop, or the end. */
static void play_tick(struct player *p)
{
	struct replay *r = p->replay;

	if (p->due_us >= p->end_us) {
		if (r->is_pcap)
			give_pcap_packets(p, UINT64_MAX);
		else
			give_packets(p, UINT64_MAX);
		if (!r->c.loop) {
			pipeline_flush(p->pipeline);
			p->done = true;
			return;
		}
		p->loop++;
		/* Staggered APs are off the decision grid by whole ticks and stay so. */
		begin_loop(p, p->shift_us + round_up(r->last_us, INTERVAL_US));
	}
	if (!r->is_pcap && p->due_us >= p->group_end_us && p->group < r->n_groups && p->due_us >= r->groups[p->group].t0_us + p->shift_us) {
		give_packets(p, UINT64_MAX);
		decode_group(p);
	}
	if (r->is_pcap)
		give_pcap_packets(p, p->due_us);
	else
		give_packets(p, p->due_us);
	if (was_missed(p)) {
		p->missed++;
	} else {
		pipeline_tick(p->pipeline, p->due_us, p->missed, 0);
		p->missed = 0;
		for (; p->row < p->n_rows && p->rows[p->row].t_us <= p->due_us; p->row++)
			pipeline_row(p->pipeline, p->rows[p->row].table, p->bytes + p->rows[p->row].at);
		give_health(p);
	}
	p->ticks++;
	p->due_us += r->tick_us;
}

/* The clock as the rows see it, when it is `now_us`. */
static uint64_t played_time(const struct replay *r, uint64_t now_us)
{
	return now_us <= r->c.start_us ? now_us : r->c.start_us + (now_us - r->c.start_us) * r->c.speed_percent / 100;
}

int replay_advance(struct replay *r, uint64_t now_us)
{
	const uint64_t until_us = played_time(r, now_us);
	int more = 0;
	unsigned i;

	for (i = 0; i < r->c.aps; i++) {
		struct player *p = &r->players[i];

		while (!p->done && p->due_us <= until_us)
			play_tick(p);
		more |= !p->done;
	}
	return more;
}

uint64_t replay_next_us(const struct replay *r)
{
	uint64_t next_us = UINT64_MAX;
	unsigned i;

	for (i = 0; i < r->c.aps; i++)
		if (!r->players[i].done && r->players[i].due_us < next_us)
			next_us = r->players[i].due_us;
	if (next_us == UINT64_MAX || next_us <= r->c.start_us)
		return next_us;
	return r->c.start_us + ((next_us - r->c.start_us) * 100 + r->c.speed_percent - 1) / r->c.speed_percent;
}

void replay_flush(struct replay *r)
{
	unsigned i;

	for (i = 0; i < r->c.aps; i++)
		if (!r->players[i].done) {
			pipeline_flush(r->players[i].pipeline);
			r->players[i].done = true;
		}
}

void replay_stats(const struct replay *r, struct replay_stats *out)
{
	unsigned i, t;

	*out = r->stats;
	for (i = 0; i < r->c.aps; i++) {
		struct pipeline_stats s;

		pipeline_stats(r->players[i].pipeline, &s);
#define SUM(field) out->pipeline.field += s.field
		SUM(ticks); SUM(ticks_missed); SUM(packets); SUM(packets_skipped); SUM(packets_late); SUM(packets_guessed);
		SUM(ring_drops); SUM(rows_sampled); SUM(rows_sent); SUM(rows_dropped); SUM(entities_refused); SUM(flows);
		SUM(flows_evicted); SUM(names_refused); SUM(dumps_interrupted); SUM(batches); SUM(batch_bytes); SUM(decisions);
		SUM(memory_bytes);
#undef SUM
		for (t = 0; t < OAL_N_TABLES; t++)
			out->pipeline.table_rows[t] += s.table_rows[t];
	}
}
