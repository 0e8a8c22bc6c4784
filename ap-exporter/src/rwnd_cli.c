#include "rwnd_cli.h"

#include "clock.h"
#include "json.h"
#include "log.h"
#include "rwnd_clamps.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	LINE = 512,
	MOST_WORDS = 8,
	POLL_MS = 20, /* between looks at deadlines, ports and the kill file */
	USUAL_MSS = 1448, /* of Ethernet with timestamps */
	MOST_SLEEP_MS = 3600000,
};

/* --- lines */

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
	const uint8_t client = read_end(words[0], f->client_addr, &f->client_port), server = read_end(words[1], f->server_addr, &f->server_port);

	if (!client || !server) {
		snprintf(err, err_size, "'%.64s' is not like 192.0.2.1:443 or [2001:db8::1]:443", words[client ? 1 : 0]);
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
		snprintf(err, err_size, "usage: set CLIENT:PORT SERVER:PORT BYTES TTL_MS [SCALE [MSS]]");
		return -EINVAL;
	}
	ret = read_flow(&c->flow, words, err, err_size);
	if (ret < 0)
		return ret;
	if (!read_number(words[2], UINT32_MAX, &c->bytes) || !read_number(words[3], RWND_MAX_TTL_MS, &c->ttl_ms) || !c->ttl_ms) {
		snprintf(err, err_size, "BYTES is a number, and TTL_MS one from 1 to %d", RWND_MAX_TTL_MS);
		return -EINVAL;
	}
	if ((n > 4 && !read_number(words[4], RWND_MAX_SCALE, &scale)) || (n > 5 && (!read_number(words[5], UINT16_MAX, &mss) || mss < RWND_MIN_MSS))) {
		snprintf(err, err_size, "SCALE is a number from 0 to %d, and MSS one from %d to %d", RWND_MAX_SCALE, RWND_MIN_MSS, UINT16_MAX);
		return -EINVAL;
	}
	c->flow.scale = (uint8_t)scale;
	c->flow.mss_bytes = (uint16_t)mss;
	c->verb = RWND_SET;
	return 0;
}

int rwnd_command_parse(struct rwnd_command *c, const char *line, char *err, size_t err_size)
{
	char text[LINE], *words[MOST_WORDS], *at, *rest;
	unsigned n = 0;

	memset(c, 0, sizeof *c);
	if (strlen(line) >= sizeof text) {
		snprintf(err, err_size, "the line is longer than %d characters", LINE - 1);
		return -EINVAL;
	}
	strcpy(text, line);
	for (at = strtok_r(text, " \t\r\n", &rest); at && n < MOST_WORDS; at = strtok_r(NULL, " \t\r\n", &rest))
		words[n++] = at;
	if (!n || words[0][0] == '#')
		return 0;
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
	if (!strcmp(words[0], "sleep") && n == 2 && read_number(words[1], MOST_SLEEP_MS, &c->sleep_ms)) {
		c->verb = RWND_SLEEP;
		return 0;
	}
	if (n == 1 && (!strcmp(words[0], "stats") || !strcmp(words[0], "quit"))) {
		c->verb = words[0][0] == 's' ? RWND_STATS : RWND_QUIT;
		return 0;
	}
	snprintf(err, err_size, "commands: set CLIENT:PORT SERVER:PORT BYTES TTL_MS [SCALE [MSS]]; release CLIENT:PORT SERVER:PORT; release all; stats; sleep MS; quit");
	return -EINVAL;
}

/* --- the session */

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
	stopped = 1;
}

struct session {
	struct rwnd *rwnd;
	const char *kill_file;
	bool killed;
	FILE *out;
};

static void answer_error(struct session *s, const char *why)
{
	char buf[LINE * 2];
	struct json j = { buf, sizeof buf, 0 };

	json_add(&j, "{\"ok\": false, \"error\": ");
	json_string(&j, why);
	json_add(&j, "}");
	fprintf(s->out, "%.*s\n", (int)json_len(&j), buf);
}

/* Everything that happens without a command. */
static void look_after(struct session *s)
{
	const bool killed = s->kill_file[0] && access(s->kill_file, F_OK) == 0;

	if (killed && !s->killed)
		rwnd_release_all(s->rwnd);
	s->killed = killed;
	rwnd_poll(s->rwnd, clock_monotonic_us());
}

static void sleep_for(struct session *s, uint32_t ms)
{
	const uint64_t until_us = clock_monotonic_us() + ms * UINT64_C(1000);
	uint64_t now_us;

	while (!stopped && (now_us = clock_monotonic_us()) < until_us) {
		const uint64_t left_ms = (until_us - now_us + 999) / 1000;

		poll(NULL, 0, left_ms < POLL_MS ? (int)left_ms : POLL_MS);
		look_after(s);
	}
}

static void answer_stats(struct session *s)
{
	char buf[4096];
	struct json j = { buf, sizeof buf, 0 };

	json_add(&j, "{\"ok\": true, \"killed\": %s, \"stats\": ", s->killed ? "true" : "false");
	rwnd_json(s->rwnd, &j);
	json_add(&j, "}");
	fprintf(s->out, "%.*s\n", (int)json_len(&j), buf);
}

/* False at the end. */
static bool carry_out(struct session *s, const char *line)
{
	struct rwnd_command c;
	char err[LINE];
	int ret = 0;

	look_after(s);
	if (rwnd_command_parse(&c, line, err, sizeof err) < 0) {
		answer_error(s, err);
		return true;
	}
	if (c.verb == RWND_NOTHING)
		return true;
	if (c.verb == RWND_STATS) {
		answer_stats(s);
		return true;
	}
	if (c.verb == RWND_SET && s->killed) {
		snprintf(err, sizeof err, "killed: %s exists; remove it to clamp again", s->kill_file);
		answer_error(s, err);
		return true;
	}
	if (c.verb == RWND_SET)
		ret = rwnd_set(s->rwnd, &c.flow, c.bytes, c.ttl_ms);
	else if (c.verb == RWND_RELEASE)
		ret = rwnd_release(s->rwnd, &c.flow);
	else if (c.verb == RWND_RELEASE_ALL)
		rwnd_release_all(s->rwnd);
	else if (c.verb == RWND_SLEEP)
		sleep_for(s, c.sleep_ms);
	if (ret < 0) {
		answer_error(s, ret == -EINVAL ? "no such clamp can be here: this backend needs SCALE" :
				ret == -ENOSPC ? "the table is full: release flows or raise option 'max_flows'" :
				ret == -ENOTCONN ? "the data path is away" : strerror(-ret));
		return true;
	}
	fprintf(s->out, "{\"ok\": true, \"t_us\": %llu", (unsigned long long)clock_realtime_us());
	if (c.verb == RWND_SET) { /* as it came out */
		rwnd_judge(&c.flow, &c.bytes, c.ttl_ms);
		fprintf(s->out, ", \"bytes\": %u", c.bytes);
		if (c.flow.scale != RWND_SCALE_LEARNED)
			fprintf(s->out, ", \"window_raw\": %u", rwnd_raw(c.bytes, rwnd_floor_bytes(&c.flow), c.flow.scale));
	}
	fprintf(s->out, "}\n");
	return c.verb != RWND_QUIT;
}

/* Lines of `fd`, with looks in between. */
static void serve(struct session *s, int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char buf[2 * LINE];
	size_t len = 0;
	ssize_t n;
	char *end;

	while (!stopped && !ferror(s->out)) {
		if (poll(&p, 1, POLL_MS) <= 0) {
			look_after(s);
			continue;
		}
		n = read(fd, buf + len, sizeof buf - 1 - len);
		if (n <= 0)
			return;
		len += (size_t)n;
		buf[len] = '\0';
		while ((end = memchr(buf, '\n', len))) {
			*end = '\0';
			if (!carry_out(s, buf) || stopped)
				return;
			fflush(s->out);
			len -= (size_t)(end + 1 - buf);
			memmove(buf, end + 1, len + 1);
		}
		if (len == sizeof buf - 1) {
			answer_error(s, "the line is too long");
			fflush(s->out);
			len = 0;
		}
	}
}

int rwnd_cli(const struct config_rwnd *config, FILE *in, FILE *out)
{
	const struct sigaction stop = { .sa_handler = on_signal }; /* without SA_RESTART: poll() ends */
	struct session s = { .kill_file = config->kill_file, .out = out };
	char err[1024];

	if (rwnd_open(&s.rwnd, config, err, sizeof err) < 0) {
		log_error("%s", err);
		return 1;
	}
	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	signal(SIGPIPE, SIG_IGN);
	fprintf(out, "{\"ok\": true, \"backend\": \"%s\"}\n", rwnd_backend(s.rwnd) == OAL_REWRITE_BACKEND_OVS ? "ovs" : "bpf");
	fflush(out);
	serve(&s, fileno(in));
	rwnd_close(s.rwnd);
	fflush(out);
	return ferror(out) ? 1 : 0;
}
