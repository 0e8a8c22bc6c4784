#include "mark/mark_cli.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/text_file.h"
#include "base/log.h"
#include "mark/mark_command.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum {
	LINE = 256, /* bytes of a command: the longest takes about 60 */
	POLL_MS = 20, /* how often deadlines, ports and the kill file are checked */
};

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
	stopped = 1;
}

struct session {
	struct mark *mark;
	const char *kill_file;
	bool killed;
	FILE *out;
};

/* Everything that happens without a command. */
static void poll_session(struct session *s)
{
	const bool killed = text_file_may_be(s->kill_file);

	if (killed && !s->killed)
		mark_release_all(s->mark);
	s->killed = killed;
	mark_poll(s->mark, clock_monotonic_us());
}

/* An answer: what went wrong, or that nothing did and the counters where they were asked for. */
static void answer(struct session *s, const char *wrong, bool stats)
{
	char buf[4096];
	struct json j = { buf, sizeof buf, 0 };

	json_add(&j, "{\"ok\": %s, \"t_us\": %llu, \"killed\": %s", wrong ? "false" : "true",
		 (unsigned long long)clock_realtime_us(), s->killed ? "true" : "false");
	if (wrong) {
		json_add(&j, ", \"error\": ");
		json_string(&j, wrong);
	}
	if (stats) {
		json_add(&j, ", \"stats\": ");
		mark_json(s->mark, &j);
	}
	json_add(&j, "}");
	fprintf(s->out, "%.*s\n", (int)json_len(&j), buf);
	fflush(s->out);
}

static const char *name_of(int error)
{
	return error == -ENOSPC	      ? "the table is full: release stations or raise option 'max_stations'"
	       : error == -ENOTCONN   ? "the data path is away"
	       : error == -EOPNOTSUPP ? "the bridge came back without the action mark_ce"
				      : strerror(-error);
}

/* False at the end. */
static bool carry_out(struct session *s, const char *line)
{
	struct mark_command c;
	char err[LINE];
	int ret = 0;

	poll_session(s);
	if (mark_command_parse(&c, line, err, sizeof err) < 0) {
		answer(s, err, false);
		return true;
	}
	if (c.verb == MARK_NOTHING)
		return true;
	if (c.verb == MARK_SET && s->killed) {
		answer(s, "killed: remove the kill file to mark again", false);
		return true;
	}
	if (c.verb == MARK_SET)
		ret = mark_set(s->mark, &c.station, c.marks, c.ttl_ms);
	else if (c.verb == MARK_RELEASE)
		ret = mark_release(s->mark, &c.station);
	else if (c.verb == MARK_RELEASE_EVERY)
		mark_release_all(s->mark);
	answer(s, ret < 0 ? name_of(ret) : NULL, c.verb == MARK_STATS);
	return c.verb != MARK_QUIT;
}

/* Lines of `fd`, with looks in between. One that is too long ends the session. */
static void serve(struct session *s, int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char line[LINE];
	size_t len = 0;
	ssize_t n;

	while (!stopped && !ferror(s->out)) {
		if (poll(&p, 1, POLL_MS) <= 0) {
			poll_session(s);
			continue;
		}
		n = read(fd, line + len, 1);
		if (n <= 0 || len == sizeof line - 1)
			return;
		if (line[len++] != '\n')
			continue;
		line[len - 1] = '\0';
		len = 0;
		if (!carry_out(s, line))
			return;
	}
}

int mark_cli(const struct config_mark *config, FILE *in, FILE *out)
{
	const struct sigaction stop = { .sa_handler = on_signal }; /* without SA_RESTART: poll() ends */
	struct session s = { .kill_file = config->kill_file, .out = out };
	char err[1024];

	/* A person is told at once what is missing; the daemon may wait for it. */
	if (mark_check(config, err, sizeof err) < 0 || mark_open(&s.mark, config, err, sizeof err) < 0) {
		log_error("%s", err);
		return 1;
	}
	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	signal(SIGPIPE, SIG_IGN);
	answer(&s, NULL, true);
	serve(&s, fileno(in));
	mark_close(s.mark);
	fflush(out);
	return ferror(out) ? 1 : 0;
}
