#ifdef HAVE_AGENT /* the small package has no room for it */
#include "rpcd.h"

#include "base/json.h"
#include "base/json_read.h"
#include "base/log.h"
#include "status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	MOST_ARGUMENTS = 1024, /* bytes: of one member */
	NAME = 64,
};

/* Which members of the status a method answers with; none: all. */
static const struct method {
	const char *name, *arguments;
	const char *members[12];
} methods[] = {
	{ "status", "{}", { NULL } },
	{ "stations", "{}", { "samplers", "taps", "table_rows", "entities_refused", NULL } },
	{ "flows", "{}",
	  { "flows", "flows_evicted", "packets", "packets_skipped", "packets_late", "ring_drops", "control", NULL } },
	{ "policy", "{}", { "agent", "control", "alarms", NULL } },
	{ "kill", "{\"on\": true}", { NULL } },
};

static const struct method *find(const char *name)
{
	for (unsigned i = 0; i < sizeof methods / sizeof *methods; i++)
		if (!strcmp(methods[i].name, name))
			return &methods[i];
	return NULL;
}

int rpcd_list(FILE *out)
{
	for (unsigned i = 0; i < sizeof methods / sizeof *methods; i++)
		fprintf(out, "%s\"%s\": %s", i ? ", " : "{", methods[i].name, methods[i].arguments);
	fprintf(out, "}\n");
	return 0;
}

static bool wanted(const struct method *m, const char *member)
{
	for (unsigned i = 0; m->members[i]; i++)
		if (!strcmp(m->members[i], member))
			return true;
	return !m->members[0];
}

/* The members that a method is about, as in the status. False: the status is no JSON. */
static bool print_members(const struct method *m, const char *text, size_t len, FILE *out)
{
	struct json_reader r;
	char name[NAME];
	unsigned n = 0;

	json_read_begin(&r, text, len);
	if (json_read_object(&r))
		while (json_read_member(&r, name, sizeof name)) {
			const uint8_t *from = r.at;

			if (json_read_skip(&r) && wanted(m, name))
				fprintf(out, "%s\"%s\": %.*s", n++ ? ", " : "{", name, (int)(r.at - from),
					(const char *)from);
		}
	fprintf(out, "%s}\n", n ? "" : "{");
	while (r.at < r.end && strchr(" \n", *r.at)) /* the status ends with a line */
		r.at++;
	return json_read_end(&r);
}

static int print_status(const struct method *m, const char *socket, FILE *out)
{
	char *text = NULL, *answer = NULL;
	size_t len = 0, answer_len = 0;
	FILE *all = open_memstream(&text, &len), *part = open_memstream(&answer, &answer_len);
	int ret = all && part ? status_read(socket, all) : -ENOMEM;

	if (all)
		fclose(all);
	if (!ret && !print_members(m, text, len, part))
		ret = -EPROTO;
	if (part)
		fclose(part);
	if (ret)
		log_error("no answer from %s: %s; is ap-exporter running?", socket, strerror(-ret));
	else
		fwrite(answer, 1, answer_len, out);
	free(text);
	free(answer);
	return ret ? 1 : 0;
}

/* `{"on": true}`: 1, false: 0, `{}`: -1; -EINVAL: something else. rpcd adds a session's number. */
static int read_on(FILE *in)
{
	char text[MOST_ARGUMENTS], name[NAME];
	const size_t len = fread(text, 1, sizeof text, in);
	struct json_reader r;
	int on = -1;

	json_read_begin(&r, text, len);
	if (json_read_object(&r))
		while (json_read_member(&r, name, sizeof name)) {
			const uint8_t *from = r.at;

			if (!json_read_skip(&r) || strcmp(name, "on"))
				continue;
			while (from < r.at && *from == ' ')
				from++;
			on = r.at - from >= 4 && !memcmp(from, "true", 4)    ? 1
			     : r.at - from >= 5 && !memcmp(from, "false", 5) ? 0
									     : -EINVAL;
		}
	while (r.at < r.end && strchr(" \n", *r.at))
		r.at++;
	return json_read_end(&r) ? on : -EINVAL;
}

/* Plain TCP at the next tick, until it is taken back: the file of option kill_file. */
static int kill_control(const char *file, FILE *in, FILE *out)
{
	const int on = read_on(in);
	char line[2 * CONFIG_FILE];
	struct json j = { line, sizeof line, 0 };
	int fd = -1;

	if (on == -EINVAL) {
		log_error("kill takes {\"on\": true} or {\"on\": false}, or nothing to say how it is");
		return 1;
	}
	if (on == 1 && (fd = open(file, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644)) >= 0)
		close(fd);
	if ((on == 1 && fd < 0) || (on == 0 && unlink(file) < 0 && errno != ENOENT)) {
		log_error("cannot %s %s: %s", on ? "make" : "remove", file, strerror(errno));
		return 1;
	}
	json_add(&j, "{\"kill_file\": ");
	json_string(&j, file);
	json_add(&j, ", \"killed\": %s}", access(file, F_OK) == 0 ? "true" : "false");
	fprintf(out, "%.*s\n", (int)json_len(&j), line);
	return 0;
}

int rpcd_call(const struct config *c, const char *name, FILE *in, FILE *out)
{
	const struct method *m = find(name);

	if (!m) {
		log_error("no method '%s': try `ap-exporter rpcd list`", name);
		return 1;
	}
	if (strcmp(name, "kill"))
		return print_status(m, c->exporter.status_socket, out);
	if (c->rwnd.kill_file[0])
		return kill_control(c->rwnd.kill_file, in, out);
	if (c->mark.kill_file[0])
		return kill_control(c->mark.kill_file, in, out);
	log_error("there is no kill file: set option 'kill_file' of a section 'rwnd' or 'mark'");
	return 1;
}
#endif
