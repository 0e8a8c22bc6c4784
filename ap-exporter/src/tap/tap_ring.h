/* tap_ring.h: a BPF ring buffer, read by its mapping alone: no system call, and no descriptor once it is mapped. */
#ifndef OAL_TAP_RING_H
#define OAL_TAP_RING_H

#include <stddef.h>
#include <stdint.h>

struct tap_ring {
	unsigned long *consumer; /* what was read, in bytes since the start */
	const unsigned long *producer;
	const uint8_t *data; /* twice in a row: a record is in one piece */
	size_t size, page; /* bytes */
};

typedef void (*tap_ring_cb)(void *ctx, const void *record, uint32_t bytes);

/* Maps the ring of `size` bytes, a power of two. 0 or negative errno. */
int tap_ring_map(struct tap_ring *, int map_fd, size_t size);
/* Reads what is there, at most so many records. */
void tap_ring_read(struct tap_ring *, uint32_t most, tap_ring_cb, void *ctx);
void tap_ring_unmap(struct tap_ring *);

#endif
