// SPDX-License-Identifier: GPL-2.0-only
/* stations.c: the stations of one interface, by address. As many as the reader has room for; nothing is allocated. */
#include <linux/etherdevice.h>
#include <linux/jhash.h>

#include "sampler.h"

static u16 *bucket_of(struct sampler *s, const u8 *mac)
{
	return &s->bucket[jhash(mac, ETH_ALEN, 0) % BUCKETS];
}

void stations_init(struct sampler *s)
{
	u32 i;

	memset(s->bucket, 0, sizeof(s->bucket));
	memset(s->slots, 0, s->want.max_stations * sizeof(s->slots[0]));
	for (i = 0; i < s->want.max_stations; i++)
		s->slots[i].next = i + 2 <= s->want.max_stations ? i + 2 : 0;
	s->free = 1;
}

struct slot *stations_find(struct sampler *s, const u8 *mac)
{
	u16 i;

	for (i = *bucket_of(s, mac); i; i = s->slots[i - 1].next)
		if (ether_addr_equal_unaligned(s->slots[i - 1].mac, mac))
			return &s->slots[i - 1];
	return NULL;
}

struct slot *stations_add(struct sampler *s, const u8 *mac)
{
	u16 *first = bucket_of(s, mac), i = s->free;
	struct slot *slot;

	if (!i) {
		s->refused++;
		return NULL;
	}
	slot = &s->slots[i - 1];
	s->free = slot->next;
	memset(slot, 0, sizeof(*slot));
	ether_addr_copy(slot->mac, mac);
	slot->used = true;
	slot->next = *first;
	*first = i;
	s->used++;
	return slot;
}

static void remove(struct sampler *s, struct slot *slot)
{
	const u16 i = slot - s->slots + 1;
	u16 *at = bucket_of(s, slot->mac);

	while (*at != i)
		at = &s->slots[*at - 1].next;
	*at = slot->next;
	clear_bit(i - 1, s->due);
	slot->used = false;
	slot->next = s->free;
	s->free = i;
	s->used--;
}

void stations_sweep(struct sampler *s)
{
	u32 i;

	if (s->seen == s->used)
		return;
	for (i = 0; i < s->want.max_stations; i++) {
		struct slot *slot = &s->slots[i];
		struct oal_sampler_left left = { };

		if (!slot->used || slot->seen == s->tick)
			continue;
		ether_addr_copy(left.mac, slot->mac);
		ring_put(s, &left.record, OAL_SAMPLER_LEFT, sizeof(left));
		remove(s, slot);
	}
}
