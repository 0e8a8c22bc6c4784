/* batch_close.h: the end of a batch: its rows are encoded and emitted, and who had none in it is forgotten. */
#ifndef OAL_BATCH_CLOSE_H
#define OAL_BATCH_CLOSE_H

#include <stdint.h>

struct pipeline;

/* Closes the oldest batch with the rows before `end_us`, which is where the next one begins. */
void batch_close(struct pipeline *, uint64_t end_us);

#endif
