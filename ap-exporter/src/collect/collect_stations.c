#include "collect/collect_stations.h"

#include "collect/nl80211_station.h"
#include "sample/refresh.h"
#include "sample/rest.h"

#include <errno.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/nl80211.h>
#include <stdlib.h>
#include <string.h>

enum {
	ANSWER_TICKS = REST_FLOOD + 1,
	ACTIVE_PKTS = 4, /* between two samples make an idle station an active one: more than keep-alives and ARP */
	DUMP_LEAST = 2, /* so few active stations are always asked one by one */
	IDLE_PACE = 2, /* paces that slow only the looks at stations without traffic */
	IDLE_PATIENCE = 4, /* of an answer that takes longer than a tick: asked a quarter of the time at the most … */
	ACTIVE_PATIENCE = 1, /* … and stations with traffic half of it */
	DUMP_QUARTERS = 3, /* from so many quarters of all stations on, one dump is cheaper than many requests */
};

struct station {
	struct nl80211_station data;
	struct netlink_request get;
	uint64_t traffic_at; /* tick of the last traffic seen; the station is active for active_hold_ticks from there */
	uint64_t seen_at; /* tick of the last answer about it */
	struct refresh_seen refresh;
	uint8_t ac_sent;
	bool used, active;
};

struct collect_stations {
	struct collect_source *source;
	const struct config_nl80211 *config;
	uint16_t device, family;
	struct netlink_request dump;
	uint64_t now_tick;
	uint64_t dump_at, active_at; /* ticks at which all are due, and the active ones */
	uint64_t answer_at; /* at which the tick thread has said which idle ones have flows with packets */
	uint32_t stride; /* ticks between samples of an active station */
	uint32_t took_us; /* by the slowest request of this tick */
	uint32_t n_active, n_used, max, cursor;
	bool active_only; /* of the dump that is being read */
	uint32_t refused; /* beyond max */
	struct refresh refresh;
	struct netlink_request **gets;
	struct station stations[];
};

void collect_nl80211_request(struct netlink_request *r, uint16_t family, uint8_t cmd, uint16_t flags, uint32_t ifindex)
{
	struct genlmsghdr g = { .cmd = cmd, .version = 1 };

	netlink_request(r, family, flags, &g, sizeof g);
	netlink_append(r, NL80211_ATTR_IFINDEX, &ifindex, sizeof ifindex);
}

static void forget(struct collect_stations *c, struct station *s)
{
	samples_gone(c->source->samples, OAL_STATION, &s->data.row);
	for (unsigned a = 0; a < NL80211_ACS; a++)
		if (s->ac_sent >> a & 1)
			samples_gone(c->source->samples, OAL_STATION_AC, &s->data.acs.row[a]);
	if (s->active)
		c->n_active--;
	s->used = s->active = false;
	c->n_used--;
}

static void request_one(const struct collect_stations *c, struct station *s)
{
	uint8_t octets[6];

	collect_nl80211_request(&s->get, c->family, NL80211_CMD_GET_STATION, 0, c->source->interface.index);
	for (int i = 0; i < 6; i++)
		octets[i] = (uint8_t)(s->data.row.mac >> (40 - 8 * i));
	netlink_append(&s->get, NL80211_ATTR_MAC, octets, sizeof octets);
}

/* Answers of a dump come in the same order every time: the next one is searched for behind the last. */
static struct station *find(struct collect_stations *c, uint64_t mac)
{
	struct station *unused = NULL;

	for (uint32_t k = 0; k < c->max; k++) {
		uint32_t i = c->cursor + k < c->max ? c->cursor + k : c->cursor + k - c->max;
		struct station *s = &c->stations[i];

		if (s->used && s->data.row.mac == mac) {
			c->cursor = i + 1 < c->max ? i + 1 : 0;
			return s;
		}
		if (!s->used && !unused)
			unused = s;
	}
	if (!unused) {
		c->refused++;
		return NULL;
	}
	memset(unused, 0, sizeof *unused);
	unused->used = true;
	unused->data.row.mac = mac;
	unused->data.row.device = c->device;
	for (unsigned a = 0; a < NL80211_ACS; a++) {
		unused->data.acs.row[a].mac = mac;
		unused->data.acs.row[a].device = c->device;
		unused->data.acs.row[a].ac = (uint8_t)a;
	}
	request_one(c, unused);
	c->n_used++;
	return unused;
}

static void update_activity(struct collect_stations *c, struct station *s, uint32_t moved)
{
	bool traffic = s->active ? moved > 0 : moved >= ACTIVE_PKTS;

	if (!s->seen_at) /* a station that has just come is about to have some */
		traffic = true;

	for (unsigned a = 0; a < NL80211_ACS; a++)
		traffic |= s->data.acs.row[a].backlog_pkts > 0;
	if (!s->active && !traffic) { /* its flows may have packets all the same */
		samples_query(c->source->samples, s->data.row.mac,
			      (uint64_t)c->config->active_hold_ticks * OAL_SETTING_TICK_US);
		c->answer_at = c->now_tick + ANSWER_TICKS;
	}
	if (traffic)
		s->traffic_at = c->now_tick;
	else if (s->active && c->now_tick - s->traffic_at >= c->config->active_hold_ticks)
		c->n_active--, s->active = false;
	if (traffic && !s->active)
		c->n_active++, s->active = true;
	s->data.row.interval_ticks = (uint16_t)(s->active ? c->stride : c->config->idle_interval_ticks);
}

static void on_station(void *ctx, const struct nlmsghdr *h, const uint8_t *payload, uint32_t len)
{
	struct collect_stations *c = ctx;
	struct nl_attr info;
	struct oal_station_row before;
	struct station *s;
	uint32_t moved;
	uint64_t mac;

	(void)h;
	if (len < GENL_HDRLEN || !nl80211_find_station(payload + GENL_HDRLEN, len - GENL_HDRLEN, &mac, &info))
		return;
	s = find(c, mac);
	if (!s)
		return;
	if (c->active_only && !s->active && s->seen_at)
		return;
	before = s->data.row;
	nl80211_parse_station(&s->data, &info);
	moved = s->data.row.rx_pkts + s->data.row.tx_pkts - before.rx_pkts - before.tx_pkts;
	if (s->seen_at && s->active)
		refresh_observe(&c->refresh, &s->refresh, &before, &s->data.row, (uint32_t)c->now_tick,
				moved || s->data.acs.changed);
	else
		s->refresh = (struct refresh_seen){ 0 };
	update_activity(c, s, moved);
	s->seen_at = c->now_tick;
	samples_row(c->source->samples, OAL_STATION, &s->data.row);
	for (unsigned a = 0; a < NL80211_ACS; a++) {
		uint8_t bit = (uint8_t)(1u << a);

		if (!(s->data.acs.used & bit) || (!(s->data.acs.changed & bit) && (s->ac_sent & bit)))
			continue;
		samples_row(c->source->samples, OAL_STATION_AC, &s->data.acs.row[a]);
		s->ac_sent |= bit;
	}
}

static void note_time(struct collect_stations *c, const struct netlink_result *r)
{
	if (r->took_us > c->took_us)
		c->took_us = r->took_us;
}

/* A station that the dump did not name has left, unless a request for its address finds it: a dump that is interrupted
 * by another station's leaving skips one. */
static void request_missing(struct collect_stations *c)
{
	for (uint32_t i = 0; i < c->max && c->source->interface.index; i++) {
		struct station *s = &c->stations[i];
		struct netlink_request *one = &s->get;
		struct netlink_result r;
		int ret;

		if (!s->used || s->seen_at == c->now_tick)
			continue;
		ret = netlink_get(c->source->nl, &one, 1, on_station, c, &r);
		note_time(c, &r);
		if (ret < 0)
			collect_source_settle(c->source, ret, &r);
		else if (r.error == -ENODEV)
			collect_source_settle(c->source, r.error, &r);
		else if (r.error)
			forget(c, s);
	}
}

/* Asks for all at once. True: nothing went wrong. */
static bool dump(struct collect_stations *c)
{
	struct netlink_result r;
	int ret;

	c->cursor = 0;
	ret = netlink_dump(c->source->nl, &c->dump, on_station, c, &r);
	note_time(c, &r);
	return collect_source_settle(c->source, ret, &r);
}

static void sample_all(struct collect_stations *c)
{
	c->active_only = false;
	if (dump(c))
		request_missing(c);
}

static void sample_active(struct collect_stations *c)
{
	struct netlink_result r;
	unsigned n = 0;
	int ret;

	c->active_only = true;
	if (c->n_active > DUMP_LEAST && c->n_active * 4 >= c->n_used * DUMP_QUARTERS) {
		dump(c);
		return;
	}
	c->cursor = 0;
	for (uint32_t i = 0; i < c->max && n < c->n_active; i++)
		if (c->stations[i].active)
			c->gets[n++] = &c->stations[i].get;
	ret = netlink_get(c->source->nl, c->gets, n, on_station, c, &r);
	note_time(c, &r);
	if (!ret && r.error == -ENODEV)
		ret = r.error;
	collect_source_settle(c->source, ret, &r);
	if (r.failed)
		c->dump_at = c->now_tick + 1; /* one has left: see who is there */
}

struct collect_stations *collect_stations_new(struct collect_source *source, const struct config_nl80211 *config,
					      uint16_t device, uint32_t max)
{
	struct collect_stations *c = calloc(1, sizeof *c + max * sizeof c->stations[0]);

	if (!c)
		return NULL;
	c->gets = calloc(max, sizeof *c->gets);
	if (!c->gets) {
		free(c);
		return NULL;
	}
	c->source = source;
	c->config = config;
	c->max = max;
	c->device = device;
	c->stride = 1;
	c->refresh = (struct refresh){ .table = &refresh_station, .device = device };
	return c;
}

void collect_stations_free(struct collect_stations *c)
{
	if (!c)
		return;
	free(c->gets);
	free(c);
}

void collect_stations_prepare(struct collect_stations *c, uint16_t family)
{
	c->family = family;
	collect_nl80211_request(&c->dump, family, NL80211_CMD_GET_STATION, NLM_F_DUMP, c->source->interface.index);
	c->dump_at = c->active_at = 0;
}

void collect_stations_again(struct collect_stations *c)
{
	c->dump_at = c->active_at = 0;
}

void collect_stations_forget(struct collect_stations *c)
{
	for (uint32_t i = 0; i < c->max; i++)
		if (c->stations[i].used)
			forget(c, &c->stations[i]);
	refresh_forget_samples(&c->refresh, c->source->samples);
}

void collect_stations_second(struct collect_stations *c)
{
	refresh_send_samples(&c->refresh, c->source->samples);
}

/* Stations whose flows have packets are active, whatever their counters say. */
static void read_wanted(struct collect_stations *c)
{
	uint64_t mac;

	while (samples_wanted(c->source->samples, &mac))
		for (uint32_t i = 0; i < c->max; i++) {
			struct station *s = &c->stations[i];

			if (!s->used || s->data.row.mac != mac)
				continue;
			s->traffic_at = c->now_tick;
			if (!s->active)
				c->n_active++, s->active = true;
		}
}

void collect_stations_tick(struct collect_stations *c, const struct collector_tick *t)
{
	c->now_tick = t->number;
	c->took_us = 0;
	read_wanted(c);
	if (t->number >= c->dump_at) {
		sample_all(c);
		c->dump_at = t->number + pace_interval(c->config->idle_interval_ticks,
						       t->pace < IDLE_PACE ? t->pace : IDLE_PACE, c->took_us,
						       IDLE_PATIENCE);
	} else if (c->n_active && t->number >= c->active_at) {
		sample_active(c);
	} else {
		return;
	}
	/* Stations that carry traffic slow down last, when the rest has. */
	c->stride = pace_interval(1, t->pace > IDLE_PACE ? t->pace - IDLE_PACE : 0, c->took_us, ACTIVE_PATIENCE);
	c->active_at = t->number + c->stride;
}

uint64_t collect_stations_due(const struct collect_stations *c)
{
	uint64_t at = c->dump_at;

	if (c->n_active && c->active_at < at)
		at = c->active_at;
	return c->answer_at > c->now_tick && c->answer_at < at ? c->answer_at : at;
}

uint32_t collect_stations_refused(const struct collect_stations *c)
{
	return c->refused;
}

uint32_t collect_stations_max(const struct collect_stations *c)
{
	return c->max;
}
