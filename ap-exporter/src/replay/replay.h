/* replay.h: plays a file as one or several APs, now.
 *
 * A capture (.oalcap) is decoded to rows and packets, which go through a pipeline each again: dedup, flow tracker,
 * batches and features run as they do on live data. Packets of a pcap or pcapng file go the same way.
 *
 * Time. The file's first decision interval is laid on the first one at or after start_us; all other times keep their
 * distance, so the n-th AP's decisions see what the file's AP saw. AP i starts i/aps of a batch later than the first.
 *
 * Loop. When the file ends it starts over, at the next multiple of the decision interval. Counters go on from where
 * they were (their first value is taken for their last), flows end and others begin: the higher port of each differs
 * from loop to loop, so that sequence numbers that start over are not taken for retransmissions. boot_id and seq go on.
 */
#ifndef OAL_REPLAY_H
#define OAL_REPLAY_H

#include <stddef.h>
#include <stdint.h>

#include "replay/replay_config.h"

struct replay;

/* Reads the whole file. Negative errno, with what is wrong and what to do in `err`. */
int replay_new(struct replay **, const struct replay_config *, char *err, size_t err_size);
void replay_free(struct replay *);
/* Plays all that is due by `now_us`. 1: there is more to come; 0: every AP has come to the end. */
int replay_advance(struct replay *, uint64_t now_us);
/* As replay_advance(), but of what is due only the first REPLAY_STEP_US: one that fell behind gives its caller a turn
 * between steps, and comes up again if it can. */
int replay_step(struct replay *, uint64_t now_us);
enum { REPLAY_STEP_US = 40000 };
/* When the next tick of an AP is due. UINT64_MAX at the end. */
uint64_t replay_next_us(const struct replay *);
/* Emits what is open; for shutdown. At the end of the file it was done already. */
void replay_flush(struct replay *);
void replay_stats(const struct replay *, struct replay_stats *);

#endif
