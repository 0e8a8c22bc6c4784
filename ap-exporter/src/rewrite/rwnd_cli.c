#include "rewrite/rwnd_cli.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/text_file.h"
#include "base/log.h"
#include "rewrite/rwnd_clamps.h"
#include "rewrite/rwnd_command.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum {
	LINE = 512, /* bytes of a command: the longest, with two IPv6 addresses, takes about 150 */
	POLL_MS = 20, /* how often deadlines, ports and the kill file are checked */
};

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
static void poll_session(struct session *s)
{
	const bool killed = text_file_may_be(s->kill_file);

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
		poll_session(s);
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

	poll_session(s);
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
		rwnd_check_clamp(&c.flow, &c.bytes, c.ttl_ms);
		fprintf(s->out, ", \"bytes\": %u", c.bytes);
		if (c.flow.scale != RWND_SCALE_LEARNED)
			fprintf(s->out, ", \"window_raw\": %u",
				rwnd_raw(c.bytes, rwnd_floor_bytes(&c.flow), c.flow.scale));
	}
	fprintf(s->out, "}\n");
	return c.verb != RWND_QUIT;
}

/* Lines of `fd`, with looks in between. */
static void serve(struct session *s, int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char buf[2 * LINE];
	bool skipping = false; /* the rest of a line that was too long */
	size_t len = 0;
	ssize_t n;
	char *end;

	while (!stopped && !ferror(s->out)) {
		if (poll(&p, 1, POLL_MS) <= 0) {
			poll_session(s);
			continue;
		}
		n = read(fd, buf + len, sizeof buf - 1 - len);
		if (n <= 0)
			return;
		len += (size_t)n;
		buf[len] = '\0';
		while ((end = memchr(buf, '\n', len))) {
			*end = '\0';
			if (!skipping && (!carry_out(s, buf) || stopped))
				return;
			skipping = false;
			fflush(s->out);
			len -= (size_t)(end + 1 - buf);
			memmove(buf, end + 1, len + 1);
		}
		if (len == sizeof buf - 1) {
			if (!skipping)
				answer_error(s, "the line is too long");
			fflush(s->out);
			skipping = true;
			len = 0;
		}
	}
}

int rwnd_cli(const struct config_rwnd *config, FILE *in, FILE *out)
{
	const struct sigaction stop = { .sa_handler = on_signal }; /* without SA_RESTART: poll() ends */
	struct session s = { .kill_file = config->kill_file, .out = out };
	char err[1024];

	/* A person is told at once what is missing; the daemon may wait for it. */
	if (rwnd_check(config, err, sizeof err) < 0 || rwnd_open(&s.rwnd, config, err, sizeof err) < 0) {
		log_error("%s", err);
		return 1;
	}
	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	signal(SIGPIPE, SIG_IGN);
	fprintf(out, "{\"ok\": true, \"backend\": \"%s\"}\n",
		rwnd_backend(s.rwnd) == OAL_REWRITE_BACKEND_OVS ? "ovs" : "bpf");
	fflush(out);
	serve(&s, fileno(in));
	rwnd_close(s.rwnd);
	fflush(out);
	return ferror(out) ? 1 : 0;
}
