/* kmod_ring.h: the ring that the kernel module oal_sampler fills, mapped. Taking records out of it is reading memory:
 * no system call, no wait. What stands there is checked like any bytes from outside. */
#ifndef OAL_KMOD_RING_H
#define OAL_KMOD_RING_H

#include "kmod/oal_sampler.h"

#include <stddef.h>
#include <stdint.h>

struct kmod_ring {
	int fd; /* -1: not open */
	void *map; /* NULL: not mapped */
	size_t map_bytes;
	const struct oal_sampler_header *header;
	struct oal_sampler_reader *reader;
	const uint8_t *bytes;
	uint32_t size, tail; /* of the ring; what was taken */
};

/* Opens the device; nothing is sampled yet. 0; -ENOENT: the module is not there; another negative errno. */
int kmod_ring_open(struct kmod_ring *, const char *device);
/* Starts, or starts anew with an empty ring and everything to be told again. 0; -EPROTO: the module is of another
 * version; the errors of OAL_SAMPLER_START. */
int kmod_ring_start(struct kmod_ring *, const struct oal_sampler_start *);
void kmod_ring_close(struct kmod_ring *);

/* Lays the ring over memory that has the header's page, the reader's and the records. -EPROTO: that is not it. */
int kmod_ring_lay(struct kmod_ring *, void *memory, size_t bytes);
/* The next record of a tick up to `tick`. NULL: none now, with *broken 0; or what stands there is no record, with
 * -EPROTO in it: nothing can be taken any more. It stays until kmod_ring_release(). */
const struct oal_sampler_record *kmod_ring_next(struct kmod_ring *, uint32_t tick, int *broken);
void kmod_ring_release(struct kmod_ring *, const struct oal_sampler_record *);

#endif
