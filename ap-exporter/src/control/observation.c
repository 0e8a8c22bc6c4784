#include "control/observation.h"

#include <errno.h>
#include <stdlib.h>

#include "packet/flow_table.h"
#include "pipeline/known.h"
#include "rewrite/rwnd.h"

enum {
	QUIET_US = 1000000, /* a flow without data for longer takes no part */
	DEFAULT_MSS = 1460, /* bytes, of an end whose SYN was not seen */
	TIMESTAMPS = 12, /* bytes that TCP's option takes from a segment */
	DOWN = OBSERVATION_DOWN, UP = OBSERVATION_UP,
};

int observation_new(struct observation *o, const struct pipeline *p)
{
	o->pipeline = p;
	o->max_flows = pipeline_flow_table(p)->max;
	o->max_stations = pipeline_places(p, OAL_STATION);
	o->n_acs = pipeline_places(p, OAL_STATION_AC);
	o->stations = calloc(o->max_stations, sizeof *o->stations);
	o->flows = calloc(o->max_flows, sizeof *o->flows);
	o->station_of_flow = calloc(o->max_flows, sizeof *o->station_of_flow);
	o->station_of_ac = calloc(o->n_acs + 1, sizeof *o->station_of_ac);
	return o->stations && o->flows && o->station_of_flow && o->station_of_ac ? 0 : -ENOMEM;
}

void observation_free(struct observation *o)
{
	free(o->stations);
	free(o->flows);
	free(o->station_of_flow);
	free(o->station_of_ac);
}

static uint16_t find_station(const struct observation *o, uint64_t mac, uint16_t *last)
{
	unsigned i;

	if (*last < o->n_stations && o->stations[*last].mac == mac)
		return *last;
	for (i = 0; i < o->n_stations; i++)
		if (o->stations[i].mac == mac)
			return *last = (uint16_t)i;
	return CONTROL_NO_STATION;
}

static void observe_stations(struct observation *o)
{
	const struct pipeline *p = o->pipeline;
	unsigned i;

	o->n_stations = 0;
	for (i = 0; i < o->max_stations; i++) {
		const struct oal_station_row *row = pipeline_known(p, OAL_STATION, i);

		if (row)
			o->stations[o->n_stations++] = (struct control_station){
				.mac = row->mac, .airtime_us = row->tx_airtime_us, .rx_bytes = row->rx_bytes,
				.tx_bytes = row->tx_bytes, .link_kbps = row->tx_bitrate_kbps, .place = (uint16_t)i,
				.bypassed = pipeline_station_bypassed(p, row->mac)};
	}
	for (i = 0; i < o->n_acs; i++) {
		const struct oal_station_ac_row *row = pipeline_known(p, OAL_STATION_AC, i);
		const uint16_t station = row ? find_station(o, row->mac, &o->station_of_ac[i]) : CONTROL_NO_STATION;

		if (station == CONTROL_NO_STATION)
			continue;
		o->stations[station].backlog_bytes += row->backlog_bytes;
		o->stations[station].own_queues |= row->tx_bytes > 0;
	}
}

uint16_t observation_mss(const struct flow *f, unsigned direction)
{
	const uint16_t told = f->mss_bytes[observation_receiver(direction)], mss = told ? told : DEFAULT_MSS;

	return mss > RWND_MIN_MSS + TIMESTAMPS ? mss - TIMESTAMPS : RWND_MIN_MSS;
}

uint64_t observation_flow_id(const struct observation *o, uint16_t flow)
{
	const uint64_t id = pipeline_flow_id(o->pipeline, flow);

	return id ? id : 1;
}

static void observe_flows(struct observation *o, uint64_t t_us, unsigned direction)
{
	const struct flow_table *t = pipeline_flow_table(o->pipeline);
	const unsigned receiver = observation_receiver(direction);
	uint16_t i;

	o->n_flows = 0;
	for (i = t->newest; i != FLOW_NONE && t->flows[i].last_us + QUIET_US >= t_us; i = t->flows[i].older) {
		const struct flow *f = &t->flows[i];
		const struct flow_direction *d = &f->dir[direction];

		if (!d->payload_us || d->payload_us + QUIET_US < t_us || f->closing)
			continue;
		o->flows[o->n_flows++] = (struct control_flow){
			.id = observation_flow_id(o, i),
			.delivered_bytes = d->delivered_bytes,
			.unacked_bytes = flow_unacked(d),
			.rtt_down_us = f->dir[DOWN].srtt_us,
			.rtt_up_us = f->dir[UP].srtt_us,
			.place = i,
			.station = find_station(o, f->station_mac, &o->station_of_flow[i]),
			.mss_bytes = observation_mss(f, direction),
			.server_port = f->server_port,
			.announced_bytes = flow_has_rwnd(f, direction) ? d->rwnd_bytes : 0,
			.scale = f->scale[receiver],
			.can_clamp = f->scale_state[receiver] == FLOW_SCALE_KNOWN &&
				     !pipeline_station_bypassed(o->pipeline, f->station_mac),
		};
	}
}

void observation_read(struct observation *o, uint64_t t_us, unsigned direction)
{
	observe_stations(o);
	observe_flows(o, t_us, direction);
}

uint32_t observation_shared_backlog(const struct observation *o)
{
	const struct pipeline *p = o->pipeline;
	uint32_t backlog = 0;
	unsigned i, k;

	for (i = 0; i < pipeline_places(p, OAL_QUEUE); i++) {
		const struct oal_queue_row *row = pipeline_known(p, OAL_QUEUE, i);

		if (!row || row->backlog_bytes <= backlog)
			continue;
		for (k = 0; k < o->n_stations; k++) {
			const struct oal_station_row *s = pipeline_known(p, OAL_STATION, o->stations[k].place);

			if (s->device == row->device) {
				backlog = row->backlog_bytes;
				break;
			}
		}
	}
	return backlog;
}
