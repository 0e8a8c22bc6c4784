#include "mark/mark_command.h"

#include "mark/mark_stations.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool read_mac(const char *word, struct mark_station *s)
{
	unsigned m[MARK_MAC_BYTES];
	int end = 0, i;

	if (sscanf(word, "%2x:%2x:%2x:%2x:%2x:%2x%n", &m[0], &m[1], &m[2], &m[3], &m[4], &m[5], &end) !=
		    MARK_MAC_BYTES ||
	    word[end])
		return false;
	for (i = 0; i < MARK_MAC_BYTES; i++)
		s->mac[i] = (uint8_t)m[i];
	return true;
}

static int read_set(struct mark_command *c, const char *line, char *err, size_t err_size)
{
	unsigned marks = 0, ttl_ms = 0, interval_us = MARK_USUAL_INTERVAL_US;
	char mac[32], rest[2];
	const int n = sscanf(line, " set %31s %3u %7u %7u %1s", mac, &marks, &ttl_ms, &interval_us, rest);

	if (n < 3 || n > 4 || !read_mac(mac, &c->station)) {
		snprintf(err, err_size, "usage: set MAC MARKS TTL_MS [INTERVAL_US]; MAC is like 02:00:00:00:00:01");
		return -EINVAL;
	}
	c->station.interval_us = marks & MARK_ECT0 ? interval_us : 0;
	if (marks > MARK_ALL || !mark_allowed(&c->station, (uint8_t)marks, ttl_ms)) {
		snprintf(err, err_size,
			 "MARKS is 1 (ECT(1)), 2 (ECT(0)) or 3, TTL_MS from 1 to %d, INTERVAL_US from %d to %d, and "
			 "MAC no group's",
			 MARK_MAX_TTL_MS, MARK_MIN_INTERVAL_US, MARK_MAX_INTERVAL_US);
		return -EINVAL;
	}
	c->marks = (uint8_t)marks;
	c->ttl_ms = ttl_ms;
	c->verb = MARK_SET;
	return 0;
}

int mark_command_parse(struct mark_command *c, const char *line, char *err, size_t err_size)
{
	char verb[16] = "", mac[32] = "", rest[2];
	const int n = sscanf(line, " %15s %31s %1s", verb, mac, rest);

	memset(c, 0, sizeof *c);
	if (n < 1 || verb[0] == '#')
		return 0;
	if (!strcmp(verb, "set"))
		return read_set(c, line, err, err_size);
	if (!strcmp(verb, "release") && n == 2 && !strcmp(mac, "all"))
		c->verb = MARK_RELEASE_EVERY;
	else if (!strcmp(verb, "release") && n == 2 && read_mac(mac, &c->station))
		c->verb = MARK_RELEASE;
	else if (n == 1 && !strcmp(verb, "stats"))
		c->verb = MARK_STATS;
	else if (n == 1 && !strcmp(verb, "quit"))
		c->verb = MARK_QUIT;
	if (c->verb != MARK_NOTHING)
		return 0;
	snprintf(err, err_size,
		 "commands: set MAC MARKS TTL_MS [INTERVAL_US]; release MAC; release all; stats; quit");
	return -EINVAL;
}
