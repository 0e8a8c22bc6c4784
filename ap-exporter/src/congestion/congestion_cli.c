#include "congestion/congestion_cli.h"

#include "base/json.h"
#include "base/log.h"
#include "congestion/congestion.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>

enum { LINE = 512 };

static const char usage[] = "commands: choose PREFIX NAME TTL_MS, model PREFIX HEX TTL_MS, release PREFIX|all, stats, "
			    "quit";

static void on_signal(int number)
{
}

static void answer(const struct congestion *c, const char *wrong, bool stats, FILE *out)
{
	char buf[2048];
	struct json j = { buf, sizeof buf, 0 };

	json_add(&j, "{\"ok\": %s", wrong ? "false" : "true");
	if (wrong) {
		json_add(&j, ", \"error\": ");
		json_string(&j, wrong);
	}
	if (stats) {
		json_add(&j, ", \"stats\": ");
		congestion_json(c, &j);
	}
	json_add(&j, "}");
	fprintf(out, "%.*s\n", (int)json_len(&j), buf);
	fflush(out);
}

static const char *name_of(int error)
{
	return error == -EINVAL	  ? "no such model or name, or a time to live that is not 1 to 60000 ms"
	       : error == -ENOENT ? "the kernel has no congestion control of that name"
	       : error == -ENOSPC ? "there are 4096 prefixes already: release some"
				  : strerror(-error);
}

static bool read_model(const char *hex, uint8_t model[CONGESTION_MODEL_BYTES])
{
	unsigned byte;

	if (strlen(hex) != 2 * CONGESTION_MODEL_BYTES || strspn(hex, "0123456789abcdef") != strlen(hex))
		return false;
	for (unsigned i = 0; i < CONGESTION_MODEL_BYTES; i++) {
		sscanf(hex + 2 * i, "%2x", &byte);
		model[i] = (uint8_t)byte;
	}
	return true;
}

/* What is wrong with a line; NULL: it was carried out. */
static const char *carry_out(struct congestion *c, const char *line)
{
	char verb[16] = "", to[64] = "", what[2 * CONGESTION_MODEL_BYTES + 2] = "", rest;
	uint8_t model[CONGESTION_MODEL_BYTES];
	struct congestion_prefix p;
	unsigned ttl_ms = 0;
	const int words = sscanf(line, "%15s %63s %305s %9u %c", verb, to, what, &ttl_ms, &rest);
	int ret;

	if (words == 2 && !strcmp(verb, "release") && !strcmp(to, "all")) {
		congestion_release_all(c);
		return NULL;
	}
	if (words < 2 || words > 4)
		return usage;
	if (congestion_prefix_parse(&p, to) < 0)
		return "no such prefix: ADDRESS or ADDRESS/BITS, without bits beyond these";
	if (words == 4 && !strcmp(verb, "choose"))
		ret = congestion_choose(c, &p, what, ttl_ms);
	else if (words == 4 && !strcmp(verb, "model"))
		ret = read_model(what, model) ? congestion_model(c, &p, model, ttl_ms) : -EINVAL;
	else if (words == 2 && !strcmp(verb, "release"))
		ret = congestion_release(c, &p);
	else
		return usage;
	return ret < 0 ? name_of(ret) : NULL;
}

int congestion_cli(const char *cgroup, FILE *in, FILE *out)
{
	const struct sigaction stop = { .sa_handler = on_signal }; /* without SA_RESTART: reading ends */
	struct congestion *c;
	char err[512] = "", line[LINE];

	if (congestion_open(&c, cgroup, true, err, sizeof err) < 0) {
		log_error("congestion: %s", err);
		return 1;
	}
	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	answer(c, NULL, true, out);
	while (!ferror(out) && fgets(line, sizeof line, in)) {
		line[strcspn(line, "\n")] = '\0';
		if (!strcmp(line, "quit"))
			break;
		if (!strcmp(line, "stats"))
			answer(c, NULL, true, out);
		else if (line[0])
			answer(c, carry_out(c, line), false, out);
	}
	congestion_close(c);
	return ferror(out) ? 1 : 0;
}
