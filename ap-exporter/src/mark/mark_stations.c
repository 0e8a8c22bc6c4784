#include "mark/mark_stations.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP = 1 }; /* bit of an address's first byte */

bool mark_allowed(const struct mark_station *s, uint8_t marks, uint32_t ttl_ms)
{
	static const uint8_t nobody[MARK_MAC_BYTES];
	const bool spaced = marks & MARK_ECT0;

	if (s->mac[0] & GROUP || !memcmp(s->mac, nobody, sizeof nobody))
		return false;
	if (!marks || marks & ~MARK_ALL || !ttl_ms || ttl_ms > MARK_MAX_TTL_MS)
		return false;
	return spaced ? s->interval_us >= MARK_MIN_INTERVAL_US && s->interval_us <= MARK_MAX_INTERVAL_US
		      : !s->interval_us;
}

uint64_t mark_meet(uint64_t a, uint64_t b)
{
	return a | b;
}

struct mark_station mark_station_of(uint64_t mac, uint32_t interval_us)
{
	struct mark_station s = { .interval_us = interval_us };
	unsigned i;

	for (i = 0; i < MARK_MAC_BYTES; i++)
		s.mac[i] = (uint8_t)(mac >> 8 * (MARK_MAC_BYTES - 1 - i));
	return s;
}

/* --- the table: those in use are 0…n-1 */

struct marked {
	struct mark_station station;
	uint64_t until_us;
	uint32_t since;
};

struct mark_stations {
	uint32_t n, max, since; /* since: the last that was given */
	struct marked *at;
};

struct mark_stations *mark_stations_new(uint32_t max)
{
	struct mark_stations *t = calloc(1, sizeof *t);

	if (!t)
		return NULL;
	t->max = max;
	t->at = calloc(max, sizeof *t->at);
	if (t->at)
		return t;
	free(t);
	return NULL;
}

void mark_stations_free(struct mark_stations *t)
{
	if (!t)
		return;
	free(t->at);
	free(t);
}

void mark_stations_clear(struct mark_stations *t)
{
	t->n = 0;
}

uint32_t mark_stations_count(const struct mark_stations *t)
{
	return t->n;
}

static uint32_t find(const struct mark_stations *t, const struct mark_station *s)
{
	uint32_t i = 0;

	while (i < t->n && memcmp(t->at[i].station.mac, s->mac, sizeof s->mac))
		i++;
	return i;
}

int mark_stations_set(struct mark_stations *t, const struct mark_station *s, uint64_t until_us)
{
	const uint32_t i = find(t, s);
	const bool is_new = i == t->n;

	if (is_new && t->n == t->max)
		return -ENOSPC;
	if (is_new) {
		t->n++;
		t->since += t->since == UINT32_MAX ? 2 : 1; /* never 0 */
		t->at[i].since = t->since;
	}
	t->at[i].station = *s;
	t->at[i].until_us = until_us;
	return is_new;
}

uint32_t mark_stations_since(const struct mark_stations *t, const struct mark_station *s)
{
	const uint32_t i = find(t, s);

	return i == t->n ? 0 : t->at[i].since;
}

bool mark_stations_remove(struct mark_stations *t, const struct mark_station *s)
{
	const uint32_t i = find(t, s);

	if (i == t->n)
		return false;
	t->at[i] = t->at[--t->n];
	return true;
}

bool mark_stations_expire(struct mark_stations *t, uint64_t now_us, struct mark_station *s)
{
	uint32_t i;

	for (i = 0; i < t->n; i++)
		if (t->at[i].until_us <= now_us) {
			*s = t->at[i].station;
			t->at[i] = t->at[--t->n];
			return true;
		}
	return false;
}
