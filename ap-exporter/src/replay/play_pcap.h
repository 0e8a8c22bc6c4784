/* play_pcap.h: packets of a pcap or pcapng file for an AP's pipeline. */
#ifndef OAL_PLAY_PCAP_H
#define OAL_PLAY_PCAP_H

#include <stdint.h>

struct player;

/* Gives the pipeline the packets before this time. */
void play_pcap_packets(struct player *, uint64_t before_us);

#endif
