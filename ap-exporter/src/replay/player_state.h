/* player_state.h: one AP that a file is played as. For the files of this room alone. */
#ifndef OAL_PLAYER_STATE_H
#define OAL_PLAYER_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "packet/packet.h"
#include "packet/pcap.h"
#include "pipeline/dedup.h"
#include "replay/replay_config.h"
#include "replay/replay_file.h"

enum {
	PLAYER_COLUMNS = 32, /* of a state table, at most */
	PLAYER_MISSED = 128, /* runs of missed ticks that are remembered of a group */
	PLAYER_PORT_STEP = 7919, /* between a flow's ports in two loops: a prime, so that few loops share one */
};
_Static_assert((int)OAL_STATION_N_COLUMNS <= (int)PLAYER_COLUMNS, "the widest state table fits struct player_entity");

/* A state row of the group that is being played. */
struct player_row {
	uint64_t t_us;
	uint32_t table, at; /* at: in the player's bytes */
};

/* What is remembered of an entity: to tell that it left, and to let its counters go on after the file's end. */
struct player_entity {
	bool present, rebase;
	uint32_t group; /* of its last row, counted over loops */
	uint64_t offset[PLAYER_COLUMNS]; /* added to a counter, per column */
	uint64_t last[PLAYER_COLUMNS]; /* last value given out */
};

struct player {
	char ap_id[160];
	const struct replay_config *config;
	const struct replay_file *file;
	struct replay_stats *stats; /* of all players together */
	const struct pcap_network *net; /* Wi-Fi side of a pcap; addr_len 0: the side that opened the connection */
	struct batch_flow *flows; /* scratch: dictionary of the batch being decoded */
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
	struct player_row *rows;
	uint32_t n_rows, row;
	uint8_t *bytes;
	struct packet *packets;
	uint32_t n_packets, packet;
	uint64_t missed_from[PLAYER_MISSED], missed_to[PLAYER_MISSED]; /* realtime */
	unsigned n_missed;
	struct dedup keys[OAL_N_TABLES];
	struct player_entity *entities[OAL_N_TABLES];
	/* pcap. */
	struct pcap pcap;
	struct packet ahead;
	bool has_ahead;
};

/* The higher port of a flow, another one in each loop. */
static inline uint16_t player_port(const struct player *p, uint16_t port, uint16_t other)
{
	if (port < other || port < 1024 || !p->loop)
		return port;
	return (uint16_t)(1024 + (port - 1024 + (uint64_t)p->loop * PLAYER_PORT_STEP) % 64512);
}

#endif
