#include "pipeline/pipeline_config.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "packet/flow_table.h"
#include "packet/siphash.h"
#include "wire/utf8.h"

static unsigned or_default(unsigned value, unsigned standard)
{
	return value ? value : standard;
}

static unsigned clamp(unsigned value, unsigned least, unsigned most)
{
	return value < least ? least : value > most ? most : value;
}

/* Text that may name an AP or a site in a batch's header. */
static bool is_id(const char *text)
{
	return text && strlen(text) <= PIPELINE_MAX_ID && utf8_is_valid((const uint8_t *)text, strlen(text));
}

int pipeline_config_complete(struct pipeline_config *out, const struct pipeline_config *c)
{
	*out = *c;
	out->tick_us = or_default(c->tick_us, OAL_SETTING_TICK_US);
	out->batch_ticks = or_default(c->batch_ticks, OAL_SETTING_BATCH_TICKS);
	out->settle_ticks = or_default(c->settle_ticks, 3);
	out->max_stations = or_default(c->max_stations, 64);
	out->max_queues = or_default(c->max_queues, 16);
	out->max_channels = or_default(c->max_channels, 8);
	out->max_beacons = or_default(c->max_beacons, 64);
	out->max_flows = or_default(c->max_flows, 1024);
	out->max_packets_per_batch = or_default(c->max_packets_per_batch, 4096);
	out->max_addresses = or_default(c->max_addresses, 4 * out->max_stations);
	out->flow_idle_us = or_default(c->flow_idle_us, 60000000);
	if (!is_id(c->ap_id) || !*c->ap_id || (c->site && !is_id(c->site)) || !c->boot_id || !c->emit)
		return -EINVAL;
	if (out->batch_ticks > PIPELINE_MAX_BATCH_TICKS || out->settle_ticks >= out->batch_ticks ||
	    out->tick_us > 1000000)
		return -EINVAL;
	if (out->max_stations > 512 || out->max_queues > 256 || out->max_channels > 64 || out->max_beacons > 512 ||
	    out->max_flows > FLOW_MAX || out->max_packets_per_batch > 32768 ||
	    out->max_senders > oal_tables[OAL_SENDER_TCP].max_rows)
		return -EINVAL;
	if (c->pseudonym_key && c->pseudonym_key_len != SIPHASH_KEY_BYTES)
		return -EINVAL;
	return 0;
}

/* How many entities a table may have, and how many of its rows a batch and the settling time after it. Stations that
 * are sampled at every tick take the most: there is room for half of them doing so. */
void pipeline_limits(const struct pipeline_config *c, unsigned entities[OAL_N_TABLES], unsigned rows[OAL_N_TABLES])
{
	entities[OAL_STATION] = c->max_stations;
	rows[OAL_STATION] = 32 * c->max_stations;
	/* Few stations use all four categories; a batch cannot hold more anyway. */
	entities[OAL_STATION_AC] = 4 * c->max_stations < 1024 ? 4 * c->max_stations : 1024;
	rows[OAL_STATION_AC] = 32 * c->max_stations;
	entities[OAL_CHANNEL] = c->max_channels;
	rows[OAL_CHANNEL] = 32 * c->max_channels;
	entities[OAL_QUEUE] = c->max_queues;
	rows[OAL_QUEUE] = 64 * c->max_queues;
	entities[OAL_BEACON] = c->max_beacons;
	rows[OAL_BEACON] = 5 * c->max_beacons;
	entities[OAL_PACKET] = entities[OAL_FLOW] = 2 * c->max_flows;
	rows[OAL_PACKET] = c->max_packets_per_batch;
	rows[OAL_FLOW] = 2 * c->max_flows;
	entities[OAL_DROP_EVENT] = 4 * c->max_stations + c->max_queues;
	rows[OAL_DROP_EVENT] = 1024;
	entities[OAL_HEALTH] = 1;
	rows[OAL_HEALTH] = 8;
	/* Two or three decisions a batch, after a stall more; a bundle or two. */
	entities[OAL_DECISION] = entities[OAL_BUNDLE_STATUS] = 16;
	rows[OAL_DECISION] = 64;
	rows[OAL_BUNDLE_STATUS] = 32;
	/* Every flow that is worth it, at most a few times a batch. */
	entities[OAL_REWRITE] = entities[OAL_ACTION] = c->max_flows < 128 ? c->max_flows : 128;
	rows[OAL_REWRITE] = rows[OAL_ACTION] = 256;
	entities[OAL_CONTROL] = 4;
	rows[OAL_CONTROL] = 8;
	entities[OAL_NEIGHBOUR_AP] = 32;
	rows[OAL_NEIGHBOUR_AP] = 96;
	/* Of each radio some fourteen, seldom news. */
	entities[OAL_COUNTER_REFRESH] = 128;
	rows[OAL_COUNTER_REFRESH] = 384;
	/* What a connection changes is looked at a few times a batch where there are few, less often where there are
	 * many. */
	entities[OAL_SENDER_TCP] = entities[OAL_SENDER_SESSION] = c->max_senders ? c->max_senders : 1;
	rows[OAL_SENDER_TCP] =
		c->max_senders ? clamp(4 * c->max_senders, 1024, oal_tables[OAL_SENDER_TCP].max_rows) : 1;
	rows[OAL_SENDER_SESSION] = c->max_senders ? clamp(c->max_senders, 256, 16384) : 1;
}
