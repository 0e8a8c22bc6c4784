/* player.h: plays a file as one AP: the ticks that are due, with the rows and packets of each. */
#ifndef OAL_PLAYER_H
#define OAL_PLAYER_H

#include <stddef.h>

struct player;

/* AP `i` of the replay whose config, file, stats, net and flows stand in `p`, else all zero. Negative errno; the reason
 * is in `err` where open_ap() gave one. */
int player_new(struct player *p, unsigned i, char *err, size_t err_size);
void player_free(struct player *);
/* The tick that is due; after the last one the next loop, or the end. */
void player_tick(struct player *);

#endif
