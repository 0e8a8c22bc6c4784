#include "tap/tap_ring.h"

#include <errno.h>
#include <linux/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

int tap_ring_map(struct tap_ring *r, int fd, size_t size)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *consumer = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), *rest;

	if (consumer == MAP_FAILED)
		return -errno;
	rest = mmap(NULL, page + 2 * size, PROT_READ, MAP_SHARED, fd, (off_t)page);
	if (rest == MAP_FAILED) {
		const int ret = -errno;

		munmap(consumer, page);
		return ret;
	}
	*r = (struct tap_ring){
		.consumer = consumer, .producer = rest, .data = (const uint8_t *)rest + page, .size = size,
		.page = page,
	};
	return 0;
}

void tap_ring_read(struct tap_ring *r, uint32_t most, tap_ring_cb cb, void *ctx)
{
	const unsigned long end = __atomic_load_n(r->producer, __ATOMIC_ACQUIRE);
	unsigned long at = *r->consumer; /* nobody else writes it */

	while (at != end && most--) {
		const uint8_t *head = r->data + (at & (r->size - 1));
		const uint32_t state = __atomic_load_n((const uint32_t *)(const void *)head, __ATOMIC_ACQUIRE);
		const uint32_t bytes = state & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);

		if (state & BPF_RINGBUF_BUSY_BIT)
			break;
		if (!(state & BPF_RINGBUF_DISCARD_BIT))
			cb(ctx, head + BPF_RINGBUF_HDR_SZ, bytes);
		at += (bytes + BPF_RINGBUF_HDR_SZ + 7) / 8 * 8;
		__atomic_store_n(r->consumer, at, __ATOMIC_RELEASE);
	}
}

void tap_ring_unmap(struct tap_ring *r)
{
	if (!r->consumer)
		return;
	munmap(r->consumer, r->page);
	munmap((void *)(uintptr_t)r->producer, r->page + 2 * r->size);
	r->consumer = NULL;
}
