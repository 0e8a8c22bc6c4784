/* packets.h: packets on their way into a data path: staged until their time is settled, then tracked and made rows. */
#ifndef OAL_PACKETS_H
#define OAL_PACKETS_H

#include <stdint.h>

struct packet;
struct pipeline;

enum pipeline_direction { PIPELINE_DOWN = 0, PIPELINE_UP = 1, PIPELINE_DIRECTION_UNKNOWN = 2 };

/* An Ethernet frame of the wired side. `direction` from PACKET_OUTGOING (up) or not (down). */
void pipeline_frame(struct pipeline *, const uint8_t *frame, uint32_t caplen, uint32_t wirelen, uint64_t t_us,
                    enum pipeline_direction direction);
/* The same for a packet that was parsed elsewhere (captures, pcap files). */
void pipeline_packet(struct pipeline *, const struct packet *);
/* A frame that packet_parse() refused elsewhere, with its reason: it is counted as if pipeline_frame() had. */
void pipeline_skipped_frame(struct pipeline *, unsigned reason);

/* The flows that another data path of this AP follows (the one before a reload): who they are and what their SYNs said,
 * which this one could not learn again. The newest, as many as there is room for. Only before the first tick. */
void pipeline_adopt_flows(struct pipeline *, const struct pipeline *before);

/* --- for this room */
/* Its time is settled: it goes through the flow tracker, and becomes a row of the oldest batch. */
void packets_settle(struct pipeline *, struct packet *);

#endif
