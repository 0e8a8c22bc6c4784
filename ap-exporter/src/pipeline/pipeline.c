/* Two ends look at time. The collecting end is at the tick that the caller began: state rows are made here, batches are
 * opened here (with their keyframes). The settling end is settle_ticks behind: packets enter the flow tracker here, in
 * time order, flows are sampled and features evaluated at decision instants, and batches are closed here. Between the two
 * there are one or two open batches; more after a stall. */
#include "pipeline/pipeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/batch_decode.h"
#include "wire/batch_encode.h"
#include "pipeline/dedup.h"
#include "feature/feature_slot.h"
#include "feature/feature_vector.h"
#include "packet/flow_table.h"
#include "wire/names.h"
#include "wire/utf8.h"
#include "packet/packet.h"
#include "pipeline/row_ring.h"
#include "packet/siphash.h"
#include "packet/stations.h"

enum { MAX_OPEN = 16 /* a power of two */, MAX_BATCH_TICKS = 250, MAX_MISSED = MAX_BATCH_TICKS / 2 + 1, MAX_ID = 128 };
/* A flow without packets for this long is no longer reported; the tracker remembers it until flow_idle_us. */
#define FLOW_QUIET_US UINT64_C(2000000)
/* After the end of a connection its last row goes out, then it is gone. */
#define FLOW_CLOSING_US UINT64_C(500000)
enum { CAUSE_CODEL = 1, CAUSE_OVERLIMIT, CAUSE_QDISC, CAUSE_MAC };

struct open_batch {
	uint64_t t0_us;
	uint32_t ticks; /* covered so far */
	unsigned n_missed;
	uint32_t missed_start[MAX_MISSED], missed_ticks[MAX_MISSED];
	uint32_t ring_drops, dumps_interrupted, late_max_us, clock_error_us, rows_dropped[OAL_N_TOPICS];
	uint8_t clock_state;
};

/* A direction of a flow as an entity of the flow table; its number is 2 * flow + direction. */
struct flow_entity {
	bool live, unsent;
	uint32_t row;
	uint64_t row_us;
	uint64_t flow_id; /* of the flow: at its direction 0 */
	struct oal_flow_row known;
};

struct pipeline {
	struct pipeline_config c;
	char ap_id[MAX_ID + 1], site[MAX_ID + 1];
	uint8_t key[SIPHASH_KEY_BYTES];
	struct names names;
	struct stations stations;
	struct pipeline_stats stats;
	uint64_t skipped[PACKET_N_REASONS];

	/* The collecting end. */
	struct open_batch open[MAX_OPEN]; /* ring; the newest is collected, the oldest settles */
	unsigned open_at, n_open;
	bool ticked;
	uint64_t due_us; /* of the last tick */
	uint64_t now_us; /* the same on the batch's grid */
	uint32_t tick; /* index in the newest batch */
	uint8_t clock_state;
	uint32_t clock_error_us;

	/* Rows. tick_offset: where the row struct has its tick. */
	struct row_ring rings[OAL_N_TABLES];
	struct dedup dedup[OAL_N_TABLES]; /* of the state tables but flow, and of keyed events */
	uint16_t tick_offset[OAL_N_TABLES], device_offset[OAL_N_TABLES];

	/* The settling end. */
	struct packet *staged;
	unsigned staged_max, staged_at, staged_end;
	uint64_t settled_us; /* nothing before this can be changed any more */
	uint64_t instant_us; /* next decision instant */
	uint64_t closed_t0_us; /* of the last batch closed */
	struct flow_table flows;
	struct flow_entity *flow_entities;
	struct feature_slot slots[PIPELINE_SLOTS];

	/* Encoding. */
	uint64_t seq[OAL_N_TOPICS];
	uint8_t *buffer;
	uint32_t *order, *run_rows;
	struct batch_flow *dictionary;
	uint16_t *flow_index; /* flow → place in the dictionary */
	size_t buffer_size;
};

static struct open_batch *oldest(struct pipeline *p)
{
	return &p->open[p->open_at];
}

static struct open_batch *newest(struct pipeline *p)
{
	return &p->open[(p->open_at + p->n_open - 1) % MAX_OPEN];
}

static uint64_t nominal_end(const struct pipeline *p, const struct open_batch *b)
{
	return b->t0_us + (uint64_t)p->c.batch_ticks * p->c.tick_us;
}

/* Tables whose rows collectors bring, with dedup. */
static inline bool is_state(enum oal_table_id t)
{
	return t <= OAL_BEACON || t == OAL_NEIGHBOUR_AP;
}
_Static_assert(OAL_STATION == 0 && OAL_PACKET == OAL_BEACON + 1, "the first tables of the samples topic come first");

/* Event tables whose rows are told apart by keys: those of one key are one run of a batch. */
static inline bool is_keyed_event(enum oal_table_id t)
{
	return t == OAL_DROP_EVENT || (t >= OAL_DECISION && t <= OAL_CONTROL);
}

/* --- set-up */

static unsigned or_default(unsigned value, unsigned standard)
{
	return value ? value : standard;
}

static int configure(struct pipeline *p, const struct pipeline_config *c)
{
	p->c = *c;
	p->c.tick_us = or_default(c->tick_us, OAL_SETTING_TICK_US);
	p->c.batch_ticks = or_default(c->batch_ticks, OAL_SETTING_BATCH_TICKS);
	p->c.settle_ticks = or_default(c->settle_ticks, 3);
	p->c.max_stations = or_default(c->max_stations, 64);
	p->c.max_queues = or_default(c->max_queues, 16);
	p->c.max_channels = or_default(c->max_channels, 8);
	p->c.max_beacons = or_default(c->max_beacons, 64);
	p->c.max_flows = or_default(c->max_flows, 1024);
	p->c.max_packets_per_batch = or_default(c->max_packets_per_batch, 4096);
	p->c.max_addresses = or_default(c->max_addresses, 4 * p->c.max_stations);
	p->c.flow_idle_us = or_default(c->flow_idle_us, 60000000);
	if (!c->ap_id || !*c->ap_id || strlen(c->ap_id) > MAX_ID || (c->site && strlen(c->site) > MAX_ID) || !c->boot_id || !c->emit)
		return -EINVAL;
	if (!utf8_is_valid((const uint8_t *)c->ap_id, strlen(c->ap_id)) || (c->site && !utf8_is_valid((const uint8_t *)c->site, strlen(c->site))))
		return -EINVAL;
	if (p->c.batch_ticks > MAX_BATCH_TICKS || p->c.settle_ticks >= p->c.batch_ticks || p->c.tick_us > 1000000)
		return -EINVAL;
	if (p->c.max_stations > 512 || p->c.max_queues > 256 || p->c.max_channels > 64 || p->c.max_beacons > 512 ||
	    p->c.max_flows > FLOW_MAX || p->c.max_packets_per_batch > 32768)
		return -EINVAL;
	if (c->pseudonym_key && c->pseudonym_key_len != SIPHASH_KEY_BYTES)
		return -EINVAL;
	strcpy(p->ap_id, c->ap_id);
	strcpy(p->site, c->site ? c->site : "");
	if (c->pseudonym_key)
		memcpy(p->key, c->pseudonym_key, sizeof p->key);
	return 0;
}

/* How many entities a table may have, and how many of its rows a batch and the settling time after it. Stations that are
 * sampled at every tick take the most: there is room for half of them doing so. */
static void limits(const struct pipeline *p, unsigned entities[OAL_N_TABLES], unsigned rows[OAL_N_TABLES])
{
	entities[OAL_STATION] = p->c.max_stations;
	rows[OAL_STATION] = 32 * p->c.max_stations;
	/* Few stations use all four categories; a batch cannot hold more anyway. */
	entities[OAL_STATION_AC] = 4 * p->c.max_stations < 1024 ? 4 * p->c.max_stations : 1024;
	rows[OAL_STATION_AC] = 32 * p->c.max_stations;
	entities[OAL_CHANNEL] = p->c.max_channels;
	rows[OAL_CHANNEL] = 32 * p->c.max_channels;
	entities[OAL_QUEUE] = p->c.max_queues;
	rows[OAL_QUEUE] = 64 * p->c.max_queues;
	entities[OAL_BEACON] = p->c.max_beacons;
	rows[OAL_BEACON] = 5 * p->c.max_beacons;
	entities[OAL_PACKET] = entities[OAL_FLOW] = 2 * p->c.max_flows;
	rows[OAL_PACKET] = p->c.max_packets_per_batch;
	rows[OAL_FLOW] = 2 * p->c.max_flows;
	entities[OAL_DROP_EVENT] = 4 * p->c.max_stations + p->c.max_queues;
	rows[OAL_DROP_EVENT] = 1024;
	entities[OAL_HEALTH] = 1;
	rows[OAL_HEALTH] = 8;
	/* Two or three decisions a batch, after a stall more; a bundle or two. */
	entities[OAL_DECISION] = entities[OAL_BUNDLE_STATUS] = 16;
	rows[OAL_DECISION] = 64;
	rows[OAL_BUNDLE_STATUS] = 32;
	/* Every flow that is worth it, at most a few times a batch. */
	entities[OAL_REWRITE] = entities[OAL_ACTION] = p->c.max_flows < 128 ? p->c.max_flows : 128;
	rows[OAL_REWRITE] = rows[OAL_ACTION] = 256;
	entities[OAL_CONTROL] = 4;
	rows[OAL_CONTROL] = 8;
	entities[OAL_NEIGHBOUR_AP] = 32;
	rows[OAL_NEIGHBOUR_AP] = 96;
}

static void find_offsets(struct pipeline *p)
{
	unsigned t, i;

	for (t = 0; t < OAL_N_TABLES; t++)
		for (i = 0; i < oal_tables[t].n_columns; i++) {
			const struct oal_column *c = &oal_tables[t].columns[i];

			if (c->kind == OAL_TICK)
				p->tick_offset[t] = c->offset;
			if (!strcmp(c->name, "device"))
				p->device_offset[t] = c->offset;
		}
}

void pipeline_feature_spaces(const struct pipeline *p, struct feature_space *spaces)
{
	unsigned entities[OAL_N_TABLES], rows[OAL_N_TABLES], t;

	limits(p, entities, rows);
	for (t = 0; t < OAL_N_TABLES; t++)
		spaces[t] = (struct feature_space){entities[t], t == OAL_FLOW ? OAL_FLOW_DIRECTION : -1};
}

struct feature_slot *pipeline_slot(struct pipeline *p, unsigned slot)
{
	return &p->slots[slot];
}

static int allocate(struct pipeline *p)
{
	unsigned entities[OAL_N_TABLES], rows[OAL_N_TABLES], by_topic[OAL_N_TOPICS] = {0}, most = 0, t;
	int r;

	limits(p, entities, rows);
	for (t = 0; t < OAL_N_TABLES; t++) {
		if ((r = row_ring_new(&p->rings[t], t, rows[t], entities[t])))
			return r;
		p->stats.memory_bytes += p->rings[t].memory;
		by_topic[oal_tables[t].topic] += p->rings[t].max_mask + 1;
		if (is_state(t) || is_keyed_event(t)) {
			if ((r = dedup_new(&p->dedup[t], t, entities[t])))
				return r;
			p->stats.memory_bytes += p->dedup[t].memory;
		}
	}
	for (t = 0; t < OAL_N_TOPICS; t++)
		most = by_topic[t] > most ? by_topic[t] : most;
	if ((r = flow_table_new(&p->flows, p->c.max_flows)) ||
	    (r = stations_new(&p->stations, p->c.max_stations, p->c.max_addresses)))
		return r;
	p->staged_max = p->c.max_packets_per_batch / 4 < 64 ? 64 : p->c.max_packets_per_batch / 4;
	p->buffer_size = OAL_SETTING_MAX_BATCH_BYTES;
	p->staged = calloc(p->staged_max, sizeof *p->staged);
	p->flow_entities = calloc(2 * p->c.max_flows, sizeof *p->flow_entities);
	p->flow_index = calloc(p->c.max_flows, sizeof *p->flow_index);
	p->dictionary = calloc(p->c.max_flows, sizeof *p->dictionary);
	p->order = calloc(most, sizeof *p->order);
	p->run_rows = calloc(most, sizeof *p->run_rows);
	p->buffer = malloc(p->buffer_size); /* only what a batch takes is ever touched, and so resident */
	if (!p->staged || !p->flow_entities || !p->flow_index || !p->dictionary || !p->order || !p->run_rows || !p->buffer)
		return -ENOMEM;
	p->stats.memory_bytes += sizeof *p + p->flows.memory + p->stations.memory + p->staged_max * sizeof *p->staged +
	                         p->c.max_flows * (2 * sizeof *p->flow_entities + sizeof *p->flow_index + sizeof *p->dictionary) +
	                         most * (sizeof *p->order + sizeof *p->run_rows);
	if (p->c.program) {
		struct feature_space spaces[OAL_N_TABLES];

		pipeline_feature_spaces(p, spaces);
		if ((r = feature_slot_state(&p->slots[0].next, p->c.program, spaces)))
			return r;
		feature_slot_advance(&p->slots[0]);
		p->stats.memory_bytes += feature_memory(p->slots[0].running);
	}
	return 0;
}

int pipeline_new(struct pipeline **out, const struct pipeline_config *c)
{
	struct pipeline *p = calloc(1, sizeof *p);
	int r;

	if (!p)
		return -ENOMEM;
	find_offsets(p);
	if ((r = configure(p, c)) || (r = allocate(p))) {
		pipeline_free(p);
		return r;
	}
	*out = p;
	return 0;
}

void pipeline_free(struct pipeline *p)
{
	unsigned t;

	if (!p)
		return;
	for (t = 0; t < OAL_N_TABLES; t++) {
		row_ring_free(&p->rings[t]);
		dedup_free(&p->dedup[t]);
	}
	flow_table_free(&p->flows);
	stations_free(&p->stations);
	for (t = 0; t < PIPELINE_SLOTS; t++)
		feature_slot_free(&p->slots[t]);
	free(p->staged);
	free(p->flow_entities);
	free(p->flow_index);
	free(p->dictionary);
	free(p->order);
	free(p->run_rows);
	free(p->buffer);
	free(p);
}

uint16_t pipeline_name(struct pipeline *p, const char *name)
{
	return names_intern(&p->names, name, &p->stats.names_refused);
}

const char *pipeline_name_of(const struct pipeline *p, uint16_t i)
{
	return names_get(&p->names, i);
}

/* --- closing a batch */

static void count_dropped(struct pipeline *p, struct open_batch *b, unsigned topic, uint32_t n)
{
	p->stats.rows_dropped += n;
	b->rows_dropped[topic] += n;
}

static void pseudonymise(const struct pipeline *p, uint8_t *addr, unsigned len)
{
	uint8_t input[17] = {0};
	unsigned i, k;

	memcpy(input, addr, len);
	for (i = 0; i < len; i += 8) {
		uint64_t h;

		input[len] = (uint8_t)i; /* both halves of a long address depend on all of it */
		h = siphash(p->key, input, len + 1);
		for (k = i; k < len && k < i + 8; k++, h >>= 8)
			addr[k] = (uint8_t)h;
	}
}

/* How a flow is called outside. */
static void describe_flow(const struct pipeline *p, const struct flow *f, struct batch_flow *d)
{
	d->addr_len = f->addr_len;
	memcpy(d->client_addr, f->client_addr, 16);
	memcpy(d->server_addr, f->server_addr, 16);
	if (p->c.pseudonym_key) {
		pseudonymise(p, d->client_addr, d->addr_len);
		pseudonymise(p, d->server_addr, d->addr_len);
	}
	d->client_port = f->client_port;
	d->server_port = f->server_port;
	d->protocol = 6;
	d->station_mac = f->station_mac;
}

/* Gives every flow that has rows in the batch a place in its dictionary. */
static unsigned make_dictionary(struct pipeline *p)
{
	const struct row_ring *rings[2] = {&p->rings[OAL_PACKET], &p->rings[OAL_FLOW]};
	unsigned n = 0, r, i;

	memset(p->flow_index, 0xff, p->c.max_flows * sizeof *p->flow_index);
	for (r = 0; r < 2; r++)
		for (i = 0; i < rings[r]->n_touched; i++) {
			const uint16_t flow = rings[r]->touched[i] / 2;
			struct batch_flow *d = &p->dictionary[n];

			if (p->flow_index[flow] != FLOW_NONE)
				continue;
			p->flow_index[flow] = (uint16_t)n++;
			describe_flow(p, &p->flows.flows[flow], d);
			d->flow_id = p->flow_entities[2 * flow].flow_id;
		}
	return n;
}

static void fill_header(struct pipeline *p, const struct open_batch *b, unsigned topic, struct batch_header *h)
{
	*h = (struct batch_header){
		.ap_id = p->ap_id, .site = p->site, .boot_id = p->c.boot_id, .seq = p->seq[topic], .t0_us = b->t0_us,
		.tick_us = p->c.tick_us, .ticks = b->ticks, .schema_revision = OAL_SETTING_SCHEMA_REVISION,
		.missed_start = b->missed_start, .missed_ticks = b->missed_ticks, .n_missed = b->n_missed,
		/* Each counted where its rows are, so that a sum over topics is right. */
		.ring_drops = topic == OAL_TOPIC_PACKETS ? b->ring_drops : 0,
		.dumps_interrupted = topic == OAL_TOPIC_SAMPLES ? b->dumps_interrupted : 0,
		.rows_dropped = b->rows_dropped[topic], .tick_late_max_us = b->late_max_us, .clock_state = b->clock_state,
		.clock_error_us = b->clock_error_us, .feature_hash = p->slots[0].program_id, .names = p->names.text, .n_names = p->names.n};
}

static void emit_topic(struct pipeline *p, struct open_batch *b, unsigned topic, uint64_t end_us)
{
	struct batch_rows rows[OAL_N_TABLES] = {0};
	uint32_t at = 0, sent = 0;
	struct batch_header header;
	struct batch_writer w;
	unsigned t;
	bool ok;

	for (t = 0; t < OAL_N_TABLES; t++)
		if (oal_tables[t].topic == topic) {
			const uint32_t left_out = row_ring_batch(&p->rings[t], end_us, &rows[t], p->order + at, p->run_rows + at);

			rows[t].flow_index = p->flow_index;
			at += rows[t].n_rows + left_out;
			count_dropped(p, b, topic, left_out);
		}
	if (topic == OAL_TOPIC_EVENTS && !at)
		return;
	fill_header(p, b, topic, &header);
	batch_begin(&w, p->buffer, p->buffer_size);
	ok = batch_put_header(&w, &header);
	if (topic == OAL_TOPIC_PACKETS)
		ok = ok && batch_put_flows(&w, p->dictionary, make_dictionary(p));
	for (t = 0; ok && t < OAL_N_TABLES; t++) {
		if (!rows[t].n_rows)
			continue;
		if (batch_put_rows(&w, &rows[t])) {
			sent += rows[t].n_rows;
			p->stats.table_rows[t] += rows[t].n_rows;
		} else {
			/* More than a record may hold; the header is written, so the next one says so. */
			count_dropped(p, newest(p), topic, rows[t].n_rows);
		}
	}
	if (ok) {
		const struct batch_out out = {(int)topic, p->buffer, batch_len(&w), p->seq[topic], b->t0_us, sent};

		p->seq[topic]++;
		p->stats.batches++;
		p->stats.batch_bytes += out.len;
		p->stats.rows_sent += sent;
		p->c.emit(p->c.ctx, &out);
	}
}

/* Feature programs forget an entity that had no row in the batch. */
static void drop_entity(struct pipeline *p, enum oal_table_id t, unsigned entity)
{
	unsigned i;

	for (i = 0; i < PIPELINE_SLOTS; i++)
		if (p->slots[i].running)
			feature_drop(p->slots[i].running, t, entity);
}

/* Entities without a row in the batch are dropped from feature state, and forgotten unless they have rows by now. */
static void sweep(struct pipeline *p, enum oal_table_id t, uint64_t end_us)
{
	const struct row_ring *ring = &p->rings[t];
	struct dedup *d = &p->dedup[t];
	unsigned i;

	for (i = 0; i < d->max; i++) {
		if (d->entities[i].state == DEDUP_FREE || ring->count[i])
			continue;
		if (!oal_tables[t].event)
			drop_entity(p, t, i);
		if (d->entities[i].row_us >= end_us)
			continue;
		if (t == OAL_STATION)
			stations_remove(&p->stations, ((const struct oal_station_row *)dedup_known(d, i))->mac);
		dedup_remove(d, i);
	}
}

static void sweep_flows(struct pipeline *p, uint64_t t0_us, uint64_t end_us)
{
	const struct row_ring *ring = &p->rings[OAL_FLOW];
	unsigned i;

	for (i = 0; i < p->flows.touched; i++) {
		struct flow *f = &p->flows.flows[i];
		struct flow_entity *e = &p->flow_entities[2 * i];
		bool idle;

		if (!f->used)
			continue;
		if (!ring->count[2 * i])
			drop_entity(p, OAL_FLOW, 2 * i);
		if (!ring->count[2 * i + 1])
			drop_entity(p, OAL_FLOW, 2 * i + 1);
		idle = f->last_us + FLOW_QUIET_US < end_us;
		if (idle || (f->closing && f->closing_us + FLOW_CLOSING_US < end_us))
			e[0].live = e[1].live = false;
		/* Its number is used anew only when nothing refers to it: no row in this batch, none since. */
		if (!e[0].live && !e[1].live && e[0].row_us < t0_us && e[1].row_us < t0_us && f->last_us < t0_us &&
		    (f->last_us + p->c.flow_idle_us < end_us || (idle && f->closing)))
			flow_remove(&p->flows, (uint16_t)i);
	}
}

static bool any_reads(const struct pipeline *p, enum oal_table_id t)
{
	unsigned i;

	for (i = 0; i < PIPELINE_SLOTS; i++)
		if (p->slots[i].running && feature_reads(p->slots[i].running, t))
			return true;
	return false;
}

/* Gives the feature programs every row before `end_us`. */
static void feed(struct pipeline *p, uint64_t end_us)
{
	unsigned t, i;

	for (t = 0; t < OAL_N_TABLES; t++) {
		struct row_ring *r = &p->rings[t];
		const uint32_t first = r->fed;

		if (!any_reads(p, t))
			continue; /* `fed` follows `batched` */
		for (i = 0; i < PIPELINE_SLOTS; i++) {
			struct feature *f = p->slots[i].running;

			if (!f || !feature_reads(f, t))
				continue;
			for (r->fed = first; r->fed != r->next && r->t_us[r->fed & r->mask] < end_us; r->fed++)
				feature_row(f, t, oal_tables[t].event ? 0 : r->entity[r->fed & r->mask], row_ring_at(r, r->fed),
				            r->t_us[r->fed & r->mask]);
		}
	}
}

static void push_flow_row(struct pipeline *p, unsigned entity, uint32_t tick);

/* Closes the oldest batch with the rows before `end_us`, which is where the next one begins. */
static void close_batch(struct pipeline *p, uint64_t end_us)
{
	struct open_batch *b = oldest(p);
	unsigned topic, t;

	feed(p, end_us);
	for (topic = 0; topic < OAL_N_TOPICS; topic++)
		emit_topic(p, b, topic, end_us);
	for (t = 0; t < OAL_N_TABLES; t++)
		if (is_state(t) || is_keyed_event(t))
			sweep(p, t, end_us);
	sweep_flows(p, b->t0_us, b->t0_us + (uint64_t)b->ticks * p->c.tick_us);
	for (t = 0; t < OAL_N_TABLES; t++) {
		row_ring_batched(&p->rings[t]);
		if (!any_reads(p, t))
			p->rings[t].fed = p->rings[t].batched;
	}
	p->closed_t0_us = b->t0_us;
	p->open_at = (p->open_at + 1) % MAX_OPEN;
	p->n_open--;
}

/* The next batch's turn at the settling end. */
static void settle_batch(struct pipeline *p)
{
	const uint64_t t0_us = oldest(p)->t0_us;
	unsigned i;

	if (p->settled_us < t0_us)
		p->settled_us = t0_us;
	/* The rows before this batch went to the old program; a new one starts with this batch's keyframes. */
	for (i = 0; i < PIPELINE_SLOTS; i++) {
		feature_slot_advance(&p->slots[i]);
		if (p->slots[i].running && feature_gap(p->slots[i].running, t0_us))
			feature_restart(p->slots[i].running, t0_us);
	}
	if (p->instant_us < t0_us || p->instant_us - t0_us > OAL_SETTING_DECISION_INTERVAL_US)
		p->instant_us = (t0_us + OAL_SETTING_DECISION_INTERVAL_US - 1) / OAL_SETTING_DECISION_INTERVAL_US * OAL_SETTING_DECISION_INTERVAL_US;
	for (i = 0; i < 2 * p->flows.touched; i++)
		if (p->flow_entities[i].live)
			push_flow_row(p, i, 0);
}

/* --- flows */

/* Puts what is known of a flow's direction into the oldest batch. */
static void push_flow_row(struct pipeline *p, unsigned entity, uint32_t tick)
{
	struct flow_entity *e = &p->flow_entities[entity];
	const uint64_t t_us = oldest(p)->t0_us + (uint64_t)tick * p->c.tick_us;
	struct row_ring *ring = &p->rings[OAL_FLOW];
	struct oal_flow_row *row;

	e->known.tick = tick;
	if (e->row_us == t_us && row_ring_open(ring, e->row))
		row = row_ring_at(ring, e->row);
	else
		row = row_ring_push(ring, entity, t_us, &e->row);
	e->unsent = !row;
	if (!row) {
		count_dropped(p, oldest(p), OAL_TOPIC_PACKETS, 1);
		return;
	}
	*row = e->known;
	e->row_us = t_us;
}

/* A direction that carries payload for the first time, or again after it was quiet: a row of what was known before it,
 * so that its counters' growth from here on is complete. */
static void wake_flow(struct pipeline *p, unsigned entity, uint64_t t_us)
{
	struct flow_entity *e = &p->flow_entities[entity];
	const struct open_batch *b = oldest(p);
	uint64_t tick = (t_us - b->t0_us) / p->c.tick_us;

	e->live = true;
	if (!e->known.sent_pkts)
		e->known.absent = OAL_FLOW_ABSENT_RWND_BYTES;
	e->known.flow = (uint16_t)(entity / 2);
	e->known.direction = entity % 2;
	memset(p->flows.flows[entity / 2].dir[entity % 2].history, 0, sizeof p->flows.flows->dir->history);
	p->flows.flows[entity / 2].dir[entity % 2].history_n = 0;
	/* Not at or before an instant that was evaluated; and the next batch begins with such a row anyway. */
	if (b->t0_us + tick * p->c.tick_us + OAL_SETTING_DECISION_INTERVAL_US <= p->instant_us)
		tick++;
	if (tick < p->c.batch_ticks)
		push_flow_row(p, entity, (uint32_t)tick);
}

static bool flow_row_changed(const struct oal_flow_row *a, const struct oal_flow_row *b)
{
	return a->absent != b->absent || a->sent_bytes != b->sent_bytes || a->sent_pkts != b->sent_pkts ||
	       a->retrans_bytes != b->retrans_bytes || a->retrans_pkts != b->retrans_pkts ||
	       a->delivered_bytes != b->delivered_bytes || a->dup_acks != b->dup_acks || a->unacked_bytes != b->unacked_bytes ||
	       a->rwnd_bytes != b->rwnd_bytes || a->rtt_down_us != b->rtt_down_us || a->rtt_up_us != b->rtt_up_us ||
	       a->delivery_rate_kbps != b->delivery_rate_kbps;
}

static void sample_flow(struct pipeline *p, unsigned i, unsigned direction, uint32_t tick)
{
	struct flow *f = &p->flows.flows[i];
	const struct flow_direction *d = &f->dir[direction];
	struct flow_entity *e = &p->flow_entities[2 * i + direction];
	const bool has_rwnd = flow_has_rwnd(f, direction);
	struct oal_flow_row row = {
		.absent = has_rwnd ? 0 : OAL_FLOW_ABSENT_RWND_BYTES, .flow = (uint16_t)i, .direction = (uint8_t)direction,
		.sent_bytes = d->sent_bytes, .sent_pkts = d->sent_pkts, .retrans_bytes = d->retrans_bytes,
		.retrans_pkts = d->retrans_pkts, .delivered_bytes = d->delivered_bytes, .dup_acks = d->dup_acks,
		.unacked_bytes = flow_unacked(d), .rwnd_bytes = has_rwnd ? d->rwnd_bytes : 0, .rtt_down_us = d->srtt_us,
		.rtt_up_us = f->dir[!direction].srtt_us,
		.delivery_rate_kbps = flow_delivery_kbps(f, direction, OAL_SETTING_DECISION_INTERVAL_US)};

	p->stats.rows_sampled++;
	if (!e->unsent && !flow_row_changed(&row, &e->known))
		return;
	e->known = row;
	push_flow_row(p, 2 * i + direction, tick);
}

static void sample_flows(struct pipeline *p, uint64_t instant_us)
{
	const uint32_t tick = (uint32_t)((instant_us - oldest(p)->t0_us) / p->c.tick_us);
	uint16_t i;

	for (i = p->flows.newest; i != FLOW_NONE && p->flows.flows[i].last_us + FLOW_QUIET_US + OAL_SETTING_DECISION_INTERVAL_US >= instant_us;
	     i = p->flows.flows[i].older) {
		struct flow *f = &p->flows.flows[i];

		if (!f->station_mac)
			f->station_mac = stations_of(&p->stations, f->client_mac, f->client_addr, f->addr_len);
		if (p->flow_entities[2 * i].live)
			sample_flow(p, i, 0, tick);
		if (p->flow_entities[2 * i + 1].live)
			sample_flow(p, i, 1, tick);
	}
}

/* A flow's number for a new flow when all are taken: that of the flow longest without a packet, if nothing refers to it. */
static bool evict_flow(struct pipeline *p)
{
	const uint16_t i = p->flows.oldest;
	const struct flow_entity *e = &p->flow_entities[2 * i];

	if (i == FLOW_NONE || e[0].live || e[1].live || e[0].row_us >= p->closed_t0_us || e[1].row_us >= p->closed_t0_us ||
	    p->flows.flows[i].last_us >= oldest(p)->t0_us)
		return false;
	flow_remove(&p->flows, i);
	p->stats.flows_evicted++;
	return true;
}

static uint16_t flow_of(struct pipeline *p, struct packet *k)
{
	const bool unknown = k->direction > PIPELINE_UP;
	struct batch_flow named;
	uint16_t i;

	if (unknown)
		k->direction = (uint8_t)packet_guess_direction(k);
	i = flow_find(&p->flows, k);
	if (i == FLOW_NONE && unknown) { /* unless the flow is known the other way round, the guess stands */
		k->direction = !k->direction;
		i = flow_find(&p->flows, k);
		if (i == FLOW_NONE) {
			k->direction = !k->direction;
			p->stats.packets_guessed += !(k->flags & PACKET_SYN);
		}
	}
	if (i != FLOW_NONE)
		return i;
	if (flow_table_full(&p->flows) && !evict_flow(p))
		return FLOW_NONE;
	i = flow_add(&p->flows, k);
	memset(&p->flow_entities[2 * i], 0, 2 * sizeof *p->flow_entities);
	describe_flow(p, &p->flows.flows[i], &named);
	p->flow_entities[2 * i].flow_id = batch_flow_id(&named);
	p->flows.flows[i].station_mac = stations_of(&p->stations, p->flows.flows[i].client_mac, p->flows.flows[i].client_addr, k->addr_len);
	return i;
}

static void settle_packet(struct pipeline *p, struct packet *k)
{
	struct open_batch *b = oldest(p);
	struct oal_packet_row *row;
	uint32_t number;
	uint16_t i;

	p->stats.rows_sampled++;
	/* Processors stamp packets a little out of order; a late one would belong to what has left already. */
	if (k->t_us < p->settled_us) {
		p->stats.packets_late += p->settled_us - k->t_us > p->c.tick_us;
		k->t_us = p->settled_us;
	}
	p->settled_us = k->t_us;
	i = flow_of(p, k);
	if (i == FLOW_NONE) {
		count_dropped(p, b, OAL_TOPIC_PACKETS, 1);
		return;
	}
	if (k->payload_bytes && !p->flow_entities[2 * i + k->direction].live)
		wake_flow(p, 2u * i + k->direction, k->t_us);
	flow_packet(&p->flows, i, k);
	stations_touch(&p->stations, p->flows.flows[i].station_mac, k->t_us);
	row = row_ring_push(&p->rings[OAL_PACKET], 2u * i + k->direction, k->t_us, &number);
	if (!row) {
		count_dropped(p, b, OAL_TOPIC_PACKETS, 1);
		return;
	}
	*row = (struct oal_packet_row){
		.absent = k->has_ts ? 0 : OAL_PACKET_ABSENT_TS_VAL | OAL_PACKET_ABSENT_TS_ECR, .flow = i, .direction = k->direction,
		.t_us = (int64_t)(k->t_us - b->t0_us), .seq = k->seq, .ack = k->ack, .payload_bytes = k->payload_bytes,
		.window_raw = k->window_raw, .flags = k->flags, .syn_options = k->syn_options, .wscale = k->wscale,
		.mss_bytes = k->mss_bytes, .sack_blocks = k->sack_blocks, .ts_val = k->ts_val, .ts_ecr = k->ts_ecr, .ip_ecn = k->ip_ecn};
}

/* --- the settling end */

/* A decision instant: samples the flows, and lets every feature program say what it sees. */
static void evaluate(struct pipeline *p)
{
	const struct pipeline_consumer *to = &p->c.consumer;
	const uint64_t instant_us = p->instant_us;
	unsigned i;

	sample_flows(p, instant_us);
	feed(p, instant_us + 1);
	p->instant_us += OAL_SETTING_DECISION_INTERVAL_US;
	for (i = 0; i < PIPELINE_SLOTS; i++) {
		struct feature *f = p->slots[i].running;

		while (f && feature_next_us(f) <= instant_us) {
			const uint64_t start_ns = p->c.now_ns ? p->c.now_ns() : 0;
			struct feature_vector x = {
				.instant_us = feature_next_us(f), .program_id = p->slots[i].program_id, .n = feature_program(f)->n};

			x.values = feature_evaluate(f);
			if (p->c.now_ns)
				x.took_ns = (uint32_t)(p->c.now_ns() - start_ns);
			p->stats.decisions++;
			if (to->features)
				to->features(to->ctx, i, &x);
		}
	}
}

/* Brings the settling end forward: packets before `packets_us`, instants before `instants_us`, and the end of every batch
 * but the newest, in the order of time. */
static void settle(struct pipeline *p, uint64_t packets_us, uint64_t instants_us)
{
	while (p->n_open) {
		const uint64_t end_us = p->n_open > 1 ? p->open[(p->open_at + 1) % MAX_OPEN].t0_us : UINT64_MAX;
		const uint64_t packet_us = p->staged_at < p->staged_end ? p->staged[p->staged_at].t_us : UINT64_MAX;

		if (end_us <= packets_us && end_us <= packet_us && end_us <= p->instant_us) {
			close_batch(p, end_us);
			settle_batch(p);
		} else if (packet_us < packets_us && (packet_us <= p->instant_us || p->instant_us >= instants_us)) {
			/* And all that follow before anything else is due. */
			uint64_t until_us = packets_us < end_us ? packets_us : end_us;

			if (p->instant_us < instants_us && until_us > p->instant_us + 1)
				until_us = p->instant_us + 1;
			do
				settle_packet(p, &p->staged[p->staged_at++]);
			while (p->staged_at < p->staged_end && p->staged[p->staged_at].t_us < until_us);
		} else if (p->instant_us < instants_us) {
			evaluate(p);
		} else {
			break;
		}
	}
	if (p->staged_at == p->staged_end)
		p->staged_at = p->staged_end = 0;
	if (p->settled_us < packets_us)
		p->settled_us = packets_us;
}

/* --- the collecting end */

static void push_state(struct pipeline *p, enum oal_table_id t, unsigned slot)
{
	struct dedup_entity *e = &p->dedup[t].entities[slot];
	struct row_ring *ring = &p->rings[t];
	void *row;

	if (e->row_us == p->now_us && row_ring_open(ring, e->row))
		row = row_ring_at(ring, e->row); /* the batch's keyframe, made at this tick from what was known before */
	else
		row = row_ring_push(ring, slot, p->now_us, &e->row);
	e->unsent = !row;
	if (!row) {
		count_dropped(p, newest(p), oal_tables[t].topic, 1);
		return;
	}
	memcpy(row, dedup_known(&p->dedup[t], slot), ring->table->row_size);
	e->row_us = p->now_us;
}

static void set_tick(const struct pipeline *p, enum oal_table_id t, void *row)
{
	*(uint32_t *)(void *)((uint8_t *)row + p->tick_offset[t]) = p->tick;
}

static void open_batch(struct pipeline *p, uint64_t t0_us)
{
	struct open_batch *b;
	unsigned t, i;

	p->n_open++;
	b = newest(p);
	memset(b, 0, offsetof(struct open_batch, missed_start));
	b->ring_drops = b->dumps_interrupted = b->late_max_us = 0;
	memset(b->rows_dropped, 0, sizeof b->rows_dropped);
	b->clock_state = p->clock_state;
	b->clock_error_us = p->clock_error_us;
	b->t0_us = t0_us;
	p->now_us = t0_us;
	p->tick = 0;
	for (t = 0; t < OAL_N_TABLES; t++)
		for (i = 0; is_state(t) && i < p->dedup[t].max; i++)
			if (p->dedup[t].entities[i].state == DEDUP_LIVE) {
				set_tick(p, t, dedup_known(&p->dedup[t], i));
				push_state(p, t, i);
			}
	if (p->n_open == 1)
		settle_batch(p);
}

/* Ticks [b->ticks, end) of the newest batch went by unsampled. */
static void mark_missed(struct pipeline *p, uint32_t end)
{
	struct open_batch *b = newest(p);

	if (end <= b->ticks)
		return;
	if (b->n_missed < MAX_MISSED) {
		b->missed_start[b->n_missed] = b->ticks;
		b->missed_ticks[b->n_missed++] = end - b->ticks;
	}
	b->ticks = end;
}

/* Times before and after a step of the clock do not compare: everything counts as long ago. */
static void forget_times(struct pipeline *p)
{
	unsigned t, i;

	for (t = 0; t < OAL_N_TABLES; t++)
		for (i = 0; i < p->dedup[t].max; i++)
			p->dedup[t].entities[i].row_us = p->dedup[t].entities[i].sampled_us = 0;
	for (i = 0; i < p->flows.touched; i++) {
		p->flow_entities[2 * i].row_us = p->flow_entities[2 * i + 1].row_us = 0;
		p->flows.flows[i].last_us = p->flows.flows[i].closing_us = 0;
	}
	stations_forget_times(&p->stations);
	p->settled_us = p->closed_t0_us = 0;
}

/* Ends all open batches where they are. */
static void end_batches(struct pipeline *p)
{
	if (!p->n_open)
		return;
	settle(p, nominal_end(p, newest(p)), p->now_us + 1);
	/* What came later than the batch could hold has no batch to go to. */
	count_dropped(p, newest(p), OAL_TOPIC_PACKETS, p->staged_end - p->staged_at);
	p->staged_at = p->staged_end = 0;
	close_batch(p, UINT64_MAX);
	forget_times(p);
}

void pipeline_tick(struct pipeline *p, uint64_t due_us, uint32_t missed_before, uint32_t late_us)
{
	const uint64_t settle_us = (uint64_t)p->c.settle_ticks * p->c.tick_us;
	struct open_batch *b;
	bool first;

	p->stats.ticks += 1 + (uint64_t)missed_before;
	p->stats.ticks_missed += missed_before;
	if (late_us > p->stats.tick_late_max_us)
		p->stats.tick_late_max_us = late_us;
	/* The clock was stepped, or the daemon stood still: no row of this hole could be told from a guess. */
	if (p->n_open && (due_us < p->due_us || due_us - p->due_us > OAL_SETTING_FEATURE_GAP_US))
		end_batches(p);
	first = !p->n_open;
	if (first)
		open_batch(p, due_us);
	while (due_us >= nominal_end(p, newest(p))) {
		const uint64_t end_us = nominal_end(p, newest(p));

		mark_missed(p, p->c.batch_ticks);
		if (p->n_open == MAX_OPEN) /* batches shorter than the settling time's slack: only by odd settings */
			settle(p, newest(p)->t0_us, newest(p)->t0_us);
		open_batch(p, end_us);
	}
	b = newest(p);
	p->due_us = due_us;
	p->tick = (uint32_t)((due_us - b->t0_us) / p->c.tick_us);
	p->now_us = b->t0_us + (uint64_t)p->tick * p->c.tick_us;
	mark_missed(p, p->tick);
	if (b->ticks == p->tick)
		b->ticks++;
	if (late_us > b->late_max_us)
		b->late_max_us = late_us;
	if (p->c.consumer.begin_tick)
		p->c.consumer.begin_tick(p->c.consumer.ctx);
	if (!first) /* decisions that come of it are events of this tick */
		settle(p, due_us - settle_us, due_us - settle_us);
	if (p->c.consumer.end_tick)
		p->c.consumer.end_tick(p->c.consumer.ctx, due_us);
}

/* Growth of a loss counter; as features count increments. */
static uint32_t growth(uint32_t old, uint32_t now)
{
	return now >= old ? now - old : old - now > UINT32_C(1) << 31 ? now - old : now;
}

/* An event of this tick; `row` but for its tick. */
static void push_event(struct pipeline *p, enum oal_table_id t, const void *row)
{
	struct dedup *d = is_keyed_event(t) ? &p->dedup[t] : NULL;
	int slot = d ? dedup_find(d, row) : 0;
	uint32_t number;
	void *out;

	if (slot < 0)
		slot = dedup_add(d, row);
	out = slot < 0 ? NULL : row_ring_push(&p->rings[t], (unsigned)slot, p->now_us, &number);
	if (!out) {
		count_dropped(p, newest(p), oal_tables[t].topic, 1);
		return;
	}
	memcpy(out, row, oal_tables[t].row_size);
	set_tick(p, t, out);
	if (d)
		d->entities[slot].row_us = p->now_us;
}

static void push_drop(struct pipeline *p, unsigned cause, uint16_t device, uint64_t mac, uint32_t queue, uint32_t count)
{
	const struct oal_drop_event_row row = {.cause = (uint8_t)cause, .device = device, .mac = mac, .queue = queue, .count = count};

	if (count)
		push_event(p, OAL_DROP_EVENT, &row);
}

static void derive_drops(struct pipeline *p, enum oal_table_id t, const void *before, const void *now)
{
	if (t == OAL_STATION) {
		const struct oal_station_row *a = before, *b = now;

		if (a->tx_failed != b->tx_failed)
			push_drop(p, CAUSE_MAC, b->device, b->mac, 0, growth(a->tx_failed, b->tx_failed));
	} else if (t == OAL_STATION_AC) {
		const struct oal_station_ac_row *a = before, *b = now;

		if (a->drops != b->drops)
			push_drop(p, CAUSE_CODEL, b->device, b->mac, b->ac, growth(a->drops, b->drops));
		if (a->overlimit != b->overlimit)
			push_drop(p, CAUSE_OVERLIMIT, b->device, b->mac, b->ac, growth(a->overlimit, b->overlimit));
	} else if (t == OAL_QUEUE) {
		const struct oal_queue_row *a = before, *b = now;

		/* mq only adds up its children, which are reported themselves. */
		if (a->drops != b->drops && strncmp(names_get(&p->names, b->kind), "mq", 2))
			push_drop(p, CAUSE_QDISC, b->device, 0, b->handle, growth(a->drops, b->drops));
	}
}

void pipeline_row(struct pipeline *p, enum oal_table_id t, const void *row)
{
	struct dedup *d = &p->dedup[t];
	struct dedup_entity *e;
	bool send;
	int slot;

	if (!p->n_open)
		return;
	p->stats.rows_sampled++;
	if (oal_tables[t].topic == OAL_TOPIC_EVENTS) {
		push_event(p, t, row);
		return;
	}
	if (!is_state(t))
		return;
	slot = dedup_find(d, row);
	if (slot < 0) {
		slot = dedup_add(d, row);
		if (slot < 0) {
			p->stats.entities_refused++;
			count_dropped(p, newest(p), oal_tables[t].topic, 1);
			return;
		}
		if (t == OAL_STATION)
			stations_add(&p->stations, ((const struct oal_station_row *)row)->mac);
		e = &d->entities[slot];
		send = true;
	} else {
		e = &d->entities[slot];
		/* At the batch's first tick the keyframe is rewritten even if only what does not count has changed. */
		send = e->unsent || e->state == DEDUP_GONE || dedup_changed(d, (unsigned)slot, row) || e->row_us == p->now_us;
		if (send)
			derive_drops(p, t, dedup_known(d, (unsigned)slot), row);
		e->state = DEDUP_LIVE;
		memcpy(dedup_known(d, (unsigned)slot), row, d->table->row_size);
	}
	set_tick(p, t, dedup_known(d, (unsigned)slot));
	e->sampled_us = p->now_us;
	if (send)
		push_state(p, t, (unsigned)slot);
}

void pipeline_gone(struct pipeline *p, enum oal_table_id t, const void *row)
{
	int slot;

	if (!is_state(t) || (slot = dedup_find(&p->dedup[t], row)) < 0)
		return;
	p->dedup[t].entities[slot].state = DEDUP_GONE;
}

void pipeline_gone_before(struct pipeline *p, enum oal_table_id t, uint16_t device, uint64_t since_us)
{
	struct dedup *d = &p->dedup[t];
	unsigned i;

	for (i = 0; is_state(t) && i < d->max; i++) {
		struct dedup_entity *e = &d->entities[i];

		if (e->state == DEDUP_LIVE && e->sampled_us < since_us &&
		    *(const uint16_t *)(const void *)((const uint8_t *)dedup_known(d, i) + p->device_offset[t]) == device)
			e->state = DEDUP_GONE;
	}
}

/* Room for one more packet at the end of the staging list; NULL when there is none. */
static struct packet *stage(struct pipeline *p)
{
	if (p->staged_end == p->staged_max && p->staged_at) {
		memmove(p->staged, p->staged + p->staged_at, (p->staged_end - p->staged_at) * sizeof *p->staged);
		p->staged_end -= p->staged_at;
		p->staged_at = 0;
	}
	return p->staged_end < p->staged_max ? &p->staged[p->staged_end] : NULL;
}

void pipeline_frame(struct pipeline *p, const uint8_t *frame, uint32_t caplen, uint32_t wirelen, uint64_t t_us,
                    enum pipeline_direction direction)
{
	struct packet *k = stage(p);
	enum packet_reason used, reason;

	p->stats.packets++;
	if (!k) {
		if (p->n_open)
			count_dropped(p, newest(p), OAL_TOPIC_PACKETS, 1);
		return;
	}
	reason = packet_parse(k, PACKET_LINK_ETHERNET, frame, caplen, wirelen, &used);
	p->skipped[reason ? reason : used]++;
	if (reason) {
		p->stats.packets_skipped++;
		return;
	}
	k->t_us = t_us;
	k->direction = (uint8_t)direction;
	p->staged_end++;
}

void pipeline_packet(struct pipeline *p, const struct packet *packet)
{
	struct packet *k = stage(p);

	p->stats.packets++;
	if (!k) {
		if (p->n_open)
			count_dropped(p, newest(p), OAL_TOPIC_PACKETS, 1);
		return;
	}
	*k = *packet;
	p->skipped[PACKET_OK]++;
	p->staged_end++;
}

void pipeline_skipped_frame(struct pipeline *p, unsigned reason)
{
	p->stats.packets++;
	p->stats.packets_skipped++;
	p->skipped[reason < PACKET_N_REASONS ? reason : PACKET_BAD_HEADER]++;
}

void pipeline_station_addr(struct pipeline *p, const uint8_t *ip, int ip_len, uint64_t mac)
{
	if (ip_len == 4 || ip_len == 16)
		stations_address(&p->stations, ip, (unsigned)ip_len, mac);
}

bool pipeline_station_active(const struct pipeline *p, uint64_t mac, uint64_t since_us)
{
	return stations_active(&p->stations, mac, since_us);
}

unsigned pipeline_frequencies(const struct pipeline *p, uint16_t *mhz, unsigned most)
{
	unsigned n = 0, i, k;

	for (i = 0; i < pipeline_places(p, OAL_CHANNEL) && n < most; i++) {
		const struct oal_channel_row *row = pipeline_known(p, OAL_CHANNEL, i);

		if (!row)
			continue;
		for (k = 0; k < n && mhz[k] != row->frequency_mhz; k++)
			;
		if (k == n)
			mhz[n++] = row->frequency_mhz;
	}
	return n;
}

void pipeline_flows_end(struct pipeline *p)
{
	unsigned i;

	for (i = 0; i < 2 * p->flows.touched; i++)
		p->flow_entities[i].live = false;
}

const struct flow_table *pipeline_flow_table(const struct pipeline *p)
{
	return &p->flows;
}

uint64_t pipeline_flow_id(const struct pipeline *p, uint16_t flow)
{
	return p->flow_entities[2 * flow].flow_id;
}

const struct oal_flow_row *pipeline_flow_row(const struct pipeline *p, uint16_t flow)
{
	return &p->flow_entities[2 * flow].known;
}

unsigned pipeline_places(const struct pipeline *p, enum oal_table_id t)
{
	return is_state(t) ? p->dedup[t].max : 0;
}

const void *pipeline_known(const struct pipeline *p, enum oal_table_id t, unsigned place)
{
	return p->dedup[t].entities[place].state == DEDUP_LIVE ? dedup_known(&p->dedup[t], place) : NULL;
}

void pipeline_account(struct pipeline *p, uint32_t ring_drops, uint32_t dumps_interrupted, uint8_t clock_state, uint32_t clock_error_us)
{
	p->stats.ring_drops += ring_drops;
	p->stats.dumps_interrupted += dumps_interrupted;
	p->clock_state = clock_state;
	p->clock_error_us = clock_error_us;
	if (p->n_open) {
		struct open_batch *b = newest(p);

		b->ring_drops += ring_drops;
		b->dumps_interrupted += dumps_interrupted;
		if (clock_state > b->clock_state) /* the worst of the batch: stepped, then unsynchronised */
			b->clock_state = clock_state;
		if (clock_error_us > b->clock_error_us)
			b->clock_error_us = clock_error_us;
	}
}

void pipeline_stats(const struct pipeline *p, struct pipeline_stats *out)
{
	*out = p->stats;
	out->flows = p->flows.used;
}

const uint64_t *pipeline_skipped(const struct pipeline *p)
{
	return p->skipped;
}

void pipeline_stats_reset_max(struct pipeline *p)
{
	p->stats.tick_late_max_us = 0;
}

void pipeline_flush(struct pipeline *p)
{
	end_batches(p);
}
