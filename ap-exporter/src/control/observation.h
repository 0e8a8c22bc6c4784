/* observation.h: the flows and stations of one access point as a control law takes them, gathered from its data path.
 */
#ifndef OAL_OBSERVATION_H
#define OAL_OBSERVATION_H

#include <stdint.h>

#include "control/control.h"

struct flow;
struct pipeline;

/* Direction of data, and the side whose windows hold it back, as in packet/flow.h. */
enum { OBSERVATION_DOWN = 0, OBSERVATION_UP = 1 };
static inline unsigned observation_receiver(unsigned direction)
{
	return !direction;
}

struct observation {
	const struct pipeline *pipeline;
	struct control_station *stations;
	struct control_flow *flows; /* without a model's word */
	unsigned n_stations, n_flows, max_stations, max_flows;
	/* Where its station was found last, by place of the flow and of the station_ac row. */
	uint16_t *station_of_flow, *station_of_ac;
	unsigned n_acs;
};

/* Sized by the pipeline. `o` is all zero. -ENOMEM: what there is, is observation_free()'s. */
int observation_new(struct observation *o, const struct pipeline *);
void observation_free(struct observation *);
/* What is there at `t_us`, realtime; flows that have data in this direction. Allocates nothing. */
void observation_read(struct observation *, uint64_t t_us, unsigned direction);
/* Backlog of queueing disciplines on the Wi-Fi ports: a parent's holds its children's. */
uint32_t observation_shared_backlog(const struct observation *);
/* What a flow is called in rows; never 0. */
uint64_t observation_flow_id(const struct observation *, uint16_t flow);
/* Payload of a full segment in this direction. */
uint16_t observation_mss(const struct flow *, unsigned direction);

#endif
