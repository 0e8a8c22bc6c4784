#include "packet/stations.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int stations_new(struct stations *s, unsigned max_stations, unsigned max_addresses)
{
	unsigned buckets = 16;

	memset(s, 0, sizeof *s);
	while (buckets < 2 * max_stations || buckets < max_addresses)
		buckets *= 2;
	s->max_stations = max_stations;
	s->max_addresses = max_addresses;
	s->mask = buckets - 1;
	s->stations = calloc(max_stations, sizeof *s->stations);
	s->addresses = calloc(max_addresses, sizeof *s->addresses);
	s->station_buckets = calloc(buckets, sizeof *s->station_buckets);
	s->address_buckets = calloc(buckets, sizeof *s->address_buckets);
	s->memory = max_stations * sizeof *s->stations + max_addresses * sizeof *s->addresses +
		    2u * buckets * sizeof(uint16_t);
	return s->stations && s->addresses && s->station_buckets && s->address_buckets ? 0 : -ENOMEM;
}

void stations_free(struct stations *s)
{
	free(s->stations);
	free(s->addresses);
	free(s->station_buckets);
	free(s->address_buckets);
}

static unsigned mac_bucket(const struct stations *s, uint64_t mac)
{
	return (unsigned)((uint32_t)(mac ^ mac >> 24) * 0x9e3779b1u >> 16) & s->mask;
}

static struct station *find(const struct stations *s, uint64_t mac)
{
	unsigned i;

	for (i = s->station_buckets[mac_bucket(s, mac)]; i; i = s->stations[i - 1].chain)
		if (s->stations[i - 1].mac == mac)
			return &s->stations[i - 1];
	return NULL;
}

void stations_add(struct stations *s, uint64_t mac)
{
	uint16_t *bucket = &s->station_buckets[mac_bucket(s, mac)];
	struct station *known = find(s, mac);
	unsigned i;

	if (known) {
		known->references++;
		return;
	}
	for (i = 0; i < s->max_stations; i++)
		if (!s->stations[i].references) {
			s->stations[i] = (struct station){.mac = mac, .references = 1, .chain = *bucket};
			*bucket = (uint16_t)(i + 1);
			return;
		}
}

void stations_remove(struct stations *s, uint64_t mac)
{
	uint16_t *link = &s->station_buckets[mac_bucket(s, mac)];
	struct station *known = find(s, mac);

	if (!known || --known->references)
		return;
	while (&s->stations[*link - 1] != known)
		link = &s->stations[*link - 1].chain;
	*link = known->chain;
}

static unsigned address_bucket(const struct stations *s, const uint8_t *addr, unsigned len)
{
	uint32_t h = len;
	unsigned i;

	for (i = 0; i < len; i++)
		h = (h ^ addr[i]) * 16777619u;
	return (h ^ h >> 16) & s->mask;
}

static uint16_t *address_link(const struct stations *s, const uint8_t *addr, unsigned len)
{
	uint16_t *link = &s->address_buckets[address_bucket(s, addr, len)];

	while (*link && (s->addresses[*link - 1].len != len || memcmp(s->addresses[*link - 1].addr, addr, len)))
		link = &s->addresses[*link - 1].chain;
	return link;
}

static void forget_address(struct stations *s, struct station_address *a)
{
	uint16_t *link = address_link(s, a->addr, a->len);

	*link = a->chain;
	a->len = 0;
}

void stations_address(struct stations *s, const uint8_t *addr, unsigned len, uint64_t mac)
{
	uint16_t *link = address_link(s, addr, len);
	struct station_address *a = NULL;
	unsigned i;

	if (*link) {
		a = &s->addresses[*link - 1];
		a->mac = mac;
		if (!mac)
			forget_address(s, a);
		return;
	}
	if (!mac)
		return;
	for (i = 0; i < s->max_addresses && !a; i++)
		if (!s->addresses[i].len)
			a = &s->addresses[i];
	if (!a) {
		a = &s->addresses[s->replace++ % s->max_addresses];
		forget_address(s, a);
	}
	link = &s->address_buckets[address_bucket(s, addr, len)];
	*a = (struct station_address){.len = (uint8_t)len, .mac = mac, .chain = *link};
	memcpy(a->addr, addr, len);
	*link = (uint16_t)(a - s->addresses + 1);
}

uint64_t stations_of(const struct stations *s, uint64_t client_mac, const uint8_t *addr, unsigned len)
{
	const uint16_t *link;

	if (client_mac && find(s, client_mac))
		return client_mac;
	link = address_link(s, addr, len);
	return *link ? s->addresses[*link - 1].mac : 0;
}

void stations_touch(struct stations *s, uint64_t mac, uint64_t t_us)
{
	struct station *known = mac ? find(s, mac) : NULL;

	if (known)
		known->packet_us = t_us;
}

void stations_forget_times(struct stations *s)
{
	unsigned i;

	for (i = 0; i < s->max_stations; i++)
		s->stations[i].packet_us = 0;
}

bool stations_active(const struct stations *s, uint64_t mac, uint64_t since_us)
{
	const struct station *known = find(s, mac);

	return known && known->packet_us >= since_us;
}

void stations_set_bypassed(struct stations *s, uint64_t mac, bool bypassed)
{
	struct station *known = find(s, mac);

	if (known)
		known->bypassed = bypassed;
}

unsigned stations_n_bypassed(const struct stations *s)
{
	unsigned n = 0;

	for (unsigned i = 0; i < s->max_stations; i++)
		n += s->stations[i].references && s->stations[i].bypassed;
	return n;
}

bool stations_bypassed(const struct stations *s, uint64_t mac)
{
	const struct station *known = mac ? find(s, mac) : NULL;

	return known && known->bypassed;
}
