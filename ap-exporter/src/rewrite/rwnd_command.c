#include "rewrite/rwnd_command.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	LINE = 512, /* bytes of a command: the longest, with two IPv6 addresses, takes about 150 */
	MAX_WORDS = 9, /* of a command: `set` has eight, and one too many must show */
	USUAL_MSS = 1448, /* bytes: of Ethernet with timestamps */
	MAX_SLEEP_MS = 3600000, /* an hour: longer is a slip of the pen */
};

static bool read_number(const char *word, uint32_t most, uint32_t *n)
{
	unsigned long long v;
	char *end;

	errno = 0;
	v = strtoull(word, &end, 10);
	if (!isdigit((unsigned char)word[0]) || *end || errno || v > most)
		return false;
	*n = (uint32_t)v;
	return true;
}

/* ADDRESS:PORT or [ADDRESS]:PORT; the address's length, 0 if it is neither. */
static uint8_t read_end(const char *word, uint8_t addr[16], uint16_t *port)
{
	const bool bracket = word[0] == '[';
	const char *colon = bracket ? strstr(word, "]:") : strrchr(word, ':');
	char text[INET6_ADDRSTRLEN];
	size_t len;
	uint32_t n;

	if (!colon)
		return 0;
	word += bracket;
	len = (size_t)(colon - word);
	if (len >= sizeof text || !read_number(colon + 1 + bracket, UINT16_MAX, &n) || !n)
		return 0;
	memcpy(text, word, len);
	text[len] = '\0';
	*port = (uint16_t)n;
	if (inet_pton(bracket ? AF_INET6 : AF_INET, text, addr) != 1)
		return 0;
	return bracket ? 16 : 4;
}

static int read_flow(struct rwnd_flow *f, char **words, char *err, size_t err_size)
{
	const uint8_t client = read_end(words[0], f->client_addr, &f->client_port),
		      server = read_end(words[1], f->server_addr, &f->server_port);

	if (!client || !server) {
		snprintf(err, err_size, "'%.64s' is not like 192.0.2.1:443 or [2001:db8::1]:443",
			 words[client ? 1 : 0]);
		return -EINVAL;
	}
	if (client != server) {
		snprintf(err, err_size, "one address is IPv4 and the other IPv6");
		return -EINVAL;
	}
	f->addr_len = client;
	return 0;
}

static int read_set(struct rwnd_command *c, char **words, unsigned n, char *err, size_t err_size)
{
	uint32_t scale = RWND_SCALE_LEARNED, mss = USUAL_MSS;
	int ret;

	if (n < 4 || n > 6) {
		snprintf(err, err_size, "usage: set CLIENT:PORT SERVER:PORT BYTES TTL_MS [SCALE [MSS]] [up|down]");
		return -EINVAL;
	}
	ret = read_flow(&c->flow, words, err, err_size);
	if (ret < 0)
		return ret;
	if (!read_number(words[2], UINT32_MAX, &c->bytes) || !read_number(words[3], RWND_MAX_TTL_MS, &c->ttl_ms) ||
	    !c->ttl_ms) {
		snprintf(err, err_size, "BYTES is a number, and TTL_MS one from 1 to %d", RWND_MAX_TTL_MS);
		return -EINVAL;
	}
	if ((n > 4 && !read_number(words[4], RWND_MAX_SCALE, &scale)) ||
	    (n > 5 && (!read_number(words[5], UINT16_MAX, &mss) || mss < RWND_MIN_MSS))) {
		snprintf(err, err_size, "SCALE is a number from 0 to %d, and MSS one from %d to %d", RWND_MAX_SCALE,
			 RWND_MIN_MSS, UINT16_MAX);
		return -EINVAL;
	}
	c->flow.scale = (uint8_t)scale;
	c->flow.mss_bytes = (uint16_t)mss;
	c->verb = RWND_SET;
	return 0;
}

/* A direction as the last of a command's words; true: there is one. */
static bool read_direction(const char *word, uint8_t *direction)
{
	const bool down = !strcmp(word, "down");

	*direction = down ? RWND_DOWN : RWND_UP;
	return down || !strcmp(word, "up");
}

int rwnd_command_parse(struct rwnd_command *c, const char *line, char *err, size_t err_size)
{
	char text[LINE], *words[MAX_WORDS], *at, *rest;
	unsigned n = 0;

	memset(c, 0, sizeof *c);
	if (strlen(line) >= sizeof text) {
		snprintf(err, err_size, "the line is longer than %d characters", LINE - 1);
		return -EINVAL;
	}
	strcpy(text, line);
	for (at = strtok_r(text, " \t\r\n", &rest); at && n < MAX_WORDS; at = strtok_r(NULL, " \t\r\n", &rest))
		words[n++] = at;
	if (!n || words[0][0] == '#')
		return 0;
	if ((!strcmp(words[0], "set") || (!strcmp(words[0], "release") && n > 3)) &&
	    read_direction(words[n - 1], &c->flow.direction))
		n--;
	if (!strcmp(words[0], "set"))
		return read_set(c, words + 1, n - 1, err, err_size);
	if (!strcmp(words[0], "release") && n == 2 && !strcmp(words[1], "all")) {
		c->verb = RWND_RELEASE_ALL;
		return 0;
	}
	if (!strcmp(words[0], "release") && n == 3) {
		c->verb = RWND_RELEASE;
		return read_flow(&c->flow, words + 1, err, err_size);
	}
	if (!strcmp(words[0], "sleep") && n == 2 && read_number(words[1], MAX_SLEEP_MS, &c->sleep_ms)) {
		c->verb = RWND_SLEEP;
		return 0;
	}
	if (n == 1 && (!strcmp(words[0], "stats") || !strcmp(words[0], "quit"))) {
		c->verb = words[0][0] == 's' ? RWND_STATS : RWND_QUIT;
		return 0;
	}
	snprintf(err, err_size,
		 "commands: set CLIENT:PORT SERVER:PORT BYTES TTL_MS [SCALE [MSS]] [up|down]; release CLIENT:PORT "
		 "SERVER:PORT [up|down]; release all; stats; sleep MS; quit");
	return -EINVAL;
}
