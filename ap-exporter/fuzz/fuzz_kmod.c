/* A ring as no kernel module would fill it: nothing outside it is read, and it comes to an end. Input: the ring's head,
 * four bytes; then its bytes. */
#include "kmod/kmod_ring.h"
#include "kmod/kmod_station.h"

#include <stdlib.h>
#include <string.h>

enum { RING = OAL_SAMPLER_RING_MIN, MOST_RECORDS = RING / 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void take(struct kmod_station *k, const struct oal_sampler_record *r)
{
	if (r->kind == OAL_SAMPLER_STATION)
		kmod_station_counters(k, (const void *)r);
	else if (r->kind == OAL_SAMPLER_DEPTH)
		kmod_station_depth(k, (const void *)r);
	else
		k->row.mac = kmod_mac(((const struct oal_sampler_left *)r)->mac);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *memory = calloc(1, OAL_SAMPLER_RING_AT + RING); /* no byte more: a read beyond it is found */
	struct oal_sampler_header *h = (void *)memory;
	const struct oal_sampler_record *r;
	struct kmod_station k = { 0 };
	struct kmod_ring ring;
	unsigned records = 0;
	int broken;

	if (!memory || size < 4) {
		free(memory);
		return 0;
	}
	*h = (struct oal_sampler_header){ .magic = OAL_SAMPLER_MAGIC, .version = OAL_SAMPLER_VERSION,
					  .ring_bytes = RING };
	memcpy(&h->head, data, 4);
	memcpy(memory + OAL_SAMPLER_RING_AT, data + 4, size - 4 < RING ? size - 4 : RING);
	if (kmod_ring_lay(&ring, memory, OAL_SAMPLER_RING_AT + RING))
		abort();
	while ((r = kmod_ring_next(&ring, UINT32_MAX / 2, &broken))) {
		if (records++ > MOST_RECORDS)
			abort();
		take(&k, r);
		kmod_ring_release(&ring, r);
	}
	free(memory);
	return 0;
}
