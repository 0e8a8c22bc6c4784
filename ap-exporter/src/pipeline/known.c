#include "pipeline/known.h"

#include "pipeline/pipeline_state.h"

bool pipeline_station_active(const struct pipeline *p, uint64_t mac, uint64_t since_us)
{
	return stations_active(&p->stations, mac, since_us);
}

void pipeline_station_set_bypassed(struct pipeline *p, uint64_t mac, bool bypassed)
{
	stations_set_bypassed(&p->stations, mac, bypassed);
}

bool pipeline_station_bypassed(const struct pipeline *p, uint64_t mac)
{
	return stations_bypassed(&p->stations, mac);
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
	return table_is_state(t) ? p->dedup[t].max : 0;
}

const void *pipeline_known(const struct pipeline *p, enum oal_table_id t, unsigned place)
{
	return p->dedup[t].entities[place].state == DEDUP_LIVE ? dedup_known(&p->dedup[t], place) : NULL;
}
