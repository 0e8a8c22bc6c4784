#include "kmod/kmod_ring.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

static uint32_t align_to_page(uint32_t bytes)
{
	const uint32_t page = (uint32_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) / page * page;
}

int kmod_ring_open(struct kmod_ring *r, const char *device)
{
	*r = (struct kmod_ring){ .fd = open(device, O_RDWR | O_CLOEXEC) };
	if (r->fd >= 0)
		return 0;
	return errno == ENXIO || errno == ENODEV ? -ENOENT : -errno;
}

int kmod_ring_lay(struct kmod_ring *r, void *memory, size_t bytes)
{
	const struct oal_sampler_header *h = memory;

	if (bytes < OAL_SAMPLER_RING_AT + OAL_SAMPLER_RING_MIN || h->magic != OAL_SAMPLER_MAGIC ||
	    h->version != OAL_SAMPLER_VERSION || h->ring_bytes > bytes - OAL_SAMPLER_RING_AT ||
	    h->ring_bytes < OAL_SAMPLER_RING_MIN || (h->ring_bytes & (h->ring_bytes - 1)))
		return -EPROTO;
	r->header = h;
	r->reader = (void *)((uint8_t *)memory + OAL_SAMPLER_READER_AT);
	r->bytes = (uint8_t *)memory + OAL_SAMPLER_RING_AT;
	r->size = h->ring_bytes;
	r->tail = 0;
	return 0;
}

int kmod_ring_start(struct kmod_ring *r, const struct oal_sampler_start *start)
{
	const uint32_t bytes = align_to_page(OAL_SAMPLER_RING_AT + start->ring_bytes);

	if (ioctl(r->fd, OAL_SAMPLER_START, start) < 0)
		return -errno;
	if (!r->map) {
		void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);

		if (map == MAP_FAILED)
			return -errno;
		r->map = map;
		r->map_bytes = bytes;
	}
	return kmod_ring_lay(r, r->map, r->map_bytes);
}

void kmod_ring_close(struct kmod_ring *r)
{
	if (r->map)
		munmap(r->map, r->map_bytes);
	if (r->fd >= 0)
		close(r->fd);
	*r = (struct kmod_ring){ .fd = -1 };
}

static unsigned bits(uint8_t set)
{
	return (unsigned)__builtin_popcount(set);
}

/* Does a record of this kind have this length? */
static int shaped(const struct oal_sampler_record *r)
{
	const struct oal_sampler_station *s = (const void *)r;

	switch (r->kind) {
	case OAL_SAMPLER_WRAP: return r->bytes == sizeof *r;
	case OAL_SAMPLER_DEPTH: return r->bytes == sizeof(struct oal_sampler_depth);
	case OAL_SAMPLER_LEFT: return r->bytes == sizeof(struct oal_sampler_left);
	case OAL_SAMPLER_STATION:
		return r->bytes >= sizeof *s && s->acs < 1u << OAL_SAMPLER_ACS &&
		       r->bytes == sizeof *s + bits(s->acs) * sizeof s->ac[0];
	default: return 0;
	}
}

const struct oal_sampler_record *kmod_ring_next(struct kmod_ring *r, uint32_t tick, int *broken)
{
	*broken = 0;
	for (;;) {
		const uint32_t filled = __atomic_load_n(&r->header->head, __ATOMIC_ACQUIRE) - r->tail;
		const uint32_t at = r->tail & (r->size - 1), rest = r->size - at;
		const struct oal_sampler_record *record = (const void *)(r->bytes + at);

		if (!filled)
			return NULL;
		/* A head that is no multiple of a record's alignment, or a record beyond what is there, is none. */
		if (filled > r->size || filled % 8 || rest % 8 || filled < sizeof *record ||
		    (record->kind != OAL_SAMPLER_WRAP && (record->bytes > filled || record->bytes > rest)) ||
		    !shaped(record) || (record->kind == OAL_SAMPLER_WRAP && rest > filled)) {
			*broken = -EPROTO;
			return NULL;
		}
		if (record->kind != OAL_SAMPLER_WRAP)
			return (int32_t)(record->tick - tick) <= 0 ? record : NULL;
		r->tail += rest;
		__atomic_store_n(&r->reader->tail, r->tail, __ATOMIC_RELEASE);
	}
}

void kmod_ring_release(struct kmod_ring *r, const struct oal_sampler_record *record)
{
	r->tail += record->bytes;
	__atomic_store_n(&r->reader->tail, r->tail, __ATOMIC_RELEASE);
}
