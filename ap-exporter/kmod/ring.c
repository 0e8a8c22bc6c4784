// SPDX-License-Identifier: GPL-2.0-only
/* ring.c: records into the mapped ring. The mapping belongs to the reader as much as to us: nothing is read back from
 * it but the reader's tail, and that only as a hint of how much room there is. */
#include <linux/string.h>

#include "sampler.h"

/* A tail that cannot be leaves none. */
u32 ring_room(const struct sampler *s)
{
	const u32 used = s->head - smp_load_acquire(&s->reader->tail);

	return used > s->want.ring_bytes ? 0 : s->want.ring_bytes - used;
}

static void publish_head(struct sampler *s, u32 bytes)
{
	s->head += bytes;
	smp_store_release(&s->header->head, s->head);
}

void ring_put(struct sampler *s, struct oal_sampler_record *r, enum oal_sampler_kind kind, size_t bytes)
{
	const u32 at = s->head & (s->want.ring_bytes - 1), rest = s->want.ring_bytes - at;
	const u32 skipped = rest < bytes ? rest : 0;

	r->kind = kind;
	r->bytes = bytes;
	r->tick = s->tick;
	if (ring_room(s) < skipped + bytes) {
		s->lost++;
		return;
	}
	if (skipped) {
		const struct oal_sampler_record wrap = {
			.kind = OAL_SAMPLER_WRAP,
			.bytes = sizeof(wrap),
			.tick = s->tick,
		};

		memcpy(s->ring + at, &wrap, sizeof(wrap));
		publish_head(s, skipped);
	}
	memcpy(s->ring + (s->head & (s->want.ring_bytes - 1)), r, bytes);
	publish_head(s, bytes);
}

void ring_publish(struct sampler *s)
{
	struct oal_sampler_header *h = s->header;

	WRITE_ONCE(h->ticks_missed, s->missed);
	WRITE_ONCE(h->records_lost, s->lost);
	WRITE_ONCE(h->stations, s->used);
	WRITE_ONCE(h->stations_refused, s->refused);
	WRITE_ONCE(h->tick_us, (u32)div_u64(s->tick_ns, NSEC_PER_USEC));
	WRITE_ONCE(h->counters_us, (u32)div_u64(s->counters_ns, NSEC_PER_USEC));
	WRITE_ONCE(h->state, s->state);
	smp_store_release(&h->tick, s->tick);
}
