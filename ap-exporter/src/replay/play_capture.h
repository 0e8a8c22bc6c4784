/* play_capture.h: a capture's batches, decoded to the rows and packets that an AP's pipeline is given again. */
#ifndef OAL_PLAY_CAPTURE_H
#define OAL_PLAY_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

struct player;

/* Decodes the next group: its rows and packets are the player's, in the order of time. */
void play_capture_group(struct player *);
/* Was the tick that is due missed when the file was recorded, or is it in a hole of the file? */
bool play_capture_missed(const struct player *);
/* Gives the pipeline the packets before this time. */
void play_capture_packets(struct player *, uint64_t before_us);

#endif
