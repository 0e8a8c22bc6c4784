#include "base/uci.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct reader {
	const char *p, *end;
	unsigned line;
	const char *wrong; /* why the last word could not be read */
};

static bool blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static void skip_line(struct reader *r)
{
	while (r->p < r->end && *r->p != '\n')
		r->p++;
}

/* 1: a word was read; 0: the line has no more; -1: r->wrong says why. */
static int word(struct reader *r, char out[UCI_WORD_MAX])
{
	size_t n = 0;
	char quote = 0;

	while (r->p < r->end && blank(*r->p))
		r->p++;
	if (r->p == r->end || *r->p == '\n' || *r->p == '#')
		return 0;
	for (; r->p < r->end; r->p++) {
		char c = *r->p;

		if (c == '\0') {
			r->wrong = "a NUL byte: this is not a text file";
			return -1;
		}
		if (c == '\n' || (!quote && blank(c)))
			break;
		if (quote ? c == quote : (c == '\'' || c == '"')) {
			quote = quote ? 0 : c;
			continue;
		}
		if (c == '\\' && quote != '\'') {
			if (r->p + 1 == r->end || r->p[1] == '\n') {
				r->wrong = "a \\ at the end of the line";
				return -1;
			}
			c = *++r->p;
			if (c == '\0') {
				r->wrong = "a NUL byte: this is not a text file";
				return -1;
			}
		}
		if (n + 1 >= UCI_WORD_MAX) {
			r->wrong = "a word longer than 511 bytes";
			return -1;
		}
		out[n++] = c;
	}
	if (quote) {
		r->wrong = quote == '"' ? "a \" that is not closed on its line" : "a ' that is not closed on its line";
		return -1;
	}
	out[n] = '\0';
	return 1;
}

static int fail(const struct reader *r, char *err, size_t err_size, const char *what)
{
	snprintf(err, err_size, "line %u: %s", r->line, what);
	return -EINVAL;
}

/* `config TYPE ['NAME']` and `option NAME VALUE` after their first word. */
static int statement(struct reader *r, const char *keyword, const struct uci_handler *h, void *ctx, bool *in_section,
		     char *err, size_t err_size)
{
	char name[UCI_WORD_MAX], value[UCI_WORD_MAX], extra[UCI_WORD_MAX], why[512] = "";
	bool section = !strcmp(keyword, "config"), list = !strcmp(keyword, "list"),
	     package = !strcmp(keyword, "package");
	int ret;

	if (!section && !list && !package && strcmp(keyword, "option")) {
		snprintf(why, sizeof why, "'%.64s' where 'config', 'option' or 'list' is expected", keyword);
		return fail(r, err, err_size, why);
	}
	ret = word(r, name);
	if (ret < 0)
		return fail(r, err, err_size, r->wrong);
	if (!ret || !name[0]) {
		snprintf(why, sizeof why, "'%.64s' needs a %s", keyword, section ? "type" : "name");
		return fail(r, err, err_size, why);
	}
	ret = word(r, value);
	if (ret < 0)
		return fail(r, err, err_size, r->wrong);
	if (!ret) {
		value[0] = '\0';
		if (!section && !package) {
			snprintf(why, sizeof why, "'%.64s %.64s' needs a value", keyword, name);
			return fail(r, err, err_size, why);
		}
	} else if (word(r, extra)) {
		snprintf(why, sizeof why, "something after '%.64s %.64s …': quote a value that has blanks", keyword,
		         name);
		return fail(r, err, err_size, why);
	}
	if (package)
		return 0;
	if (!section && !*in_section) {
		snprintf(why, sizeof why, "'%.64s %.64s' before the first 'config'", keyword, name);
		return fail(r, err, err_size, why);
	}
	*in_section = true;
	ret = section ? h->section(ctx, name, value, why, sizeof why)
	              : h->option(ctx, name, value, list, why, sizeof why);
	return ret < 0 ? fail(r, err, err_size, why) : 0;
}

int uci_parse(const char *text, size_t len, const struct uci_handler *handler, void *ctx, char *err, size_t err_size)
{
	struct reader r = { .p = text, .end = text + len, .line = 1 };
	char keyword[UCI_WORD_MAX];
	bool in_section = false;

	for (; r.p < r.end; r.line++) {
		int ret = word(&r, keyword);

		if (ret < 0)
			return fail(&r, err, err_size, r.wrong);
		if (ret) {
			ret = statement(&r, keyword, handler, ctx, &in_section, err, err_size);
			if (ret < 0)
				return ret;
		}
		skip_line(&r);
		if (r.p < r.end)
			r.p++;
	}
	return 0;
}
