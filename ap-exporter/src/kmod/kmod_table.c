#include "kmod/kmod_table.h"

#include "kmod/kmod_station.h"
#include "pipeline/pipeline.h"
#include "sample/refresh.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { SECOND_TICKS = 1000000 / OAL_SETTING_TICK_US };

struct known {
	struct kmod_station data;
	struct refresh_seen refresh;
	uint8_t ac_sent; /* bit a: the category has had a row */
	bool used, reported; /* reported: its counters, at least once */
};

struct kmod_table {
	struct pipeline *pipeline;
	uint64_t hold_us;
	uint32_t max, cursor;
	uint16_t device;
	struct refresh refresh;
	uint32_t refresh_at; /* tick at which rows of it are due */
	struct known known[];
};

struct kmod_table *kmod_table_new(struct pipeline *p, uint16_t device, uint32_t max, uint32_t active_hold_ticks)
{
	struct kmod_table *t = calloc(1, sizeof *t + max * sizeof t->known[0]);

	if (!t)
		return NULL;
	t->pipeline = p;
	t->device = device;
	t->max = max;
	t->hold_us = (uint64_t)active_hold_ticks * OAL_SETTING_TICK_US;
	t->refresh = (struct refresh){ .table = &refresh_station, .device = device };
	return t;
}

void kmod_table_free(struct kmod_table *t)
{
	free(t);
}

/* The module reports stations in the same order each time: the next is searched for behind the last. */
static struct known *find(struct kmod_table *t, uint64_t mac, bool add)
{
	struct known *unused = NULL;

	for (uint32_t n = 0; n < t->max; n++) {
		const uint32_t i = t->cursor + n < t->max ? t->cursor + n : t->cursor + n - t->max;
		struct known *k = &t->known[i];

		if (k->used && k->data.row.mac == mac) {
			t->cursor = i + 1 < t->max ? i + 1 : 0;
			return k;
		}
		if (!k->used && !unused)
			unused = k;
	}
	if (!add || !unused)
		return NULL;
	memset(unused, 0, sizeof *unused);
	unused->used = true;
	unused->data.row.mac = mac;
	unused->data.row.device = t->device;
	for (unsigned a = 0; a < OAL_SAMPLER_ACS; a++) {
		unused->data.acs[a].mac = mac;
		unused->data.acs[a].device = t->device;
		unused->data.acs[a].ac = (uint8_t)a;
	}
	return unused;
}

static void add_acs(struct kmod_table *t, struct known *k)
{
	for (unsigned a = 0; a < OAL_SAMPLER_ACS; a++) {
		const uint8_t bit = (uint8_t)(1u << a);

		if (!(k->data.used & bit) || (!(k->data.changed & bit) && (k->ac_sent & bit)))
			continue;
		pipeline_row(t->pipeline, OAL_STATION_AC, &k->data.acs[a]);
		k->ac_sent |= bit;
	}
}

/* Its flows may have packets all the same. */
static void request_counters(const struct kmod_table *t, const struct oal_sampler_station *s,
			     struct oal_sampler_reader *reader, uint64_t now_us)
{
	const uint32_t n = reader->wanted, slots = sizeof reader->wanted_mac / sizeof reader->wanted_mac[0];

	if (s->active || !pipeline_station_active(t->pipeline, kmod_mac(s->mac),
						  now_us > t->hold_us ? now_us - t->hold_us : 0))
		return;
	memcpy(reader->wanted_mac[n % slots], s->mac, sizeof s->mac);
	__atomic_store_n(&reader->wanted, n + 1, __ATOMIC_RELEASE);
}

static void forget(struct kmod_table *t, struct known *k)
{
	if (k->reported)
		pipeline_gone(t->pipeline, OAL_STATION, &k->data.row);
	for (unsigned a = 0; a < OAL_SAMPLER_ACS; a++)
		if (k->ac_sent >> a & 1)
			pipeline_gone(t->pipeline, OAL_STATION_AC, &k->data.acs[a]);
	k->used = false;
}

static void add_refresh(void *pipeline, const struct oal_counter_refresh_row *row)
{
	pipeline_row(pipeline, OAL_COUNTER_REFRESH, row);
}

static void gone_refresh(void *pipeline, const struct oal_counter_refresh_row *row)
{
	pipeline_gone(pipeline, OAL_COUNTER_REFRESH, row);
}

/* How often does the driver renew what it says? As with nl80211 (collect_stations.c). */
static void observe_refresh(struct kmod_table *t, struct known *k, const struct oal_station_row *before,
			    const struct oal_sampler_station *s)
{
	const struct oal_station_row *now = &k->data.row;
	const uint32_t tick = s->record.tick;

	if (k->reported && s->active)
		refresh_observe(&t->refresh, &k->refresh, before, now, tick,
				now->rx_pkts != before->rx_pkts || now->tx_pkts != before->tx_pkts || k->data.changed);
	else
		k->refresh = (struct refresh_seen){ 0 };
	if ((int32_t)(tick - t->refresh_at) < 0)
		return;
	t->refresh_at = tick + SECOND_TICKS;
	refresh_send(&t->refresh, add_refresh, t->pipeline);
}

static void counters(struct kmod_table *t, const struct oal_sampler_station *s, struct oal_sampler_reader *reader,
		     uint64_t now_us)
{
	struct known *k = find(t, kmod_mac(s->mac), true);
	struct oal_station_row before;

	if (!k)
		return; /* the module counts those that find no place */
	before = k->data.row;
	kmod_station_counters(&k->data, s);
	observe_refresh(t, k, &before, s);
	pipeline_row(t->pipeline, OAL_STATION, &k->data.row);
	k->reported = true;
	add_acs(t, k);
	request_counters(t, s, reader, now_us);
}

void kmod_table_record(struct kmod_table *t, const struct oal_sampler_record *r, struct oal_sampler_reader *reader,
		       uint64_t now_us)
{
	const struct oal_sampler_depth *depth = (const void *)r;
	const struct oal_sampler_left *left = (const void *)r;
	struct known *k;

	switch (r->kind) {
	case OAL_SAMPLER_STATION: counters(t, (const void *)r, reader, now_us); break;
	case OAL_SAMPLER_DEPTH:
		k = find(t, kmod_mac(depth->mac), false);
		if (!k)
			break; /* its counters come first */
		kmod_station_depth(&k->data, depth);
		add_acs(t, k);
		break;
	case OAL_SAMPLER_LEFT:
		k = find(t, kmod_mac(left->mac), false);
		if (k)
			forget(t, k);
		break;
	default: break;
	}
}

void kmod_table_forget(struct kmod_table *t)
{
	for (uint32_t i = 0; i < t->max; i++)
		if (t->known[i].used)
			forget(t, &t->known[i]);
	refresh_forget(&t->refresh, gone_refresh, t->pipeline);
	t->cursor = 0;
}
