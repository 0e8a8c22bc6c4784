#include "enrol/ticket.h"

#include "wire/base64.h"
#include "base/json_read.h"
#include "base/version.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static bool is_name(const char *s)
{
	return strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == strlen(s);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* What is wrong with it, or NULL. */
static const char *read_json(struct ticket *t, const uint8_t *json, size_t len)
{
	uint64_t version = 0;
	struct json_reader r;
	char name[16];
	size_t end;

	json_read_begin(&r, json, len);
	if (json_read_object(&r))
		while (json_read_member(&r, name, sizeof name)) {
			if (!strcmp(name, "v"))
				json_read_number(&r, UINT32_MAX, &version);
			else if (!strcmp(name, "url"))
				json_read_text(&r, t->url, sizeof t->url);
			else if (!strcmp(name, "ap_id"))
				json_read_text(&r, t->ap_id, sizeof t->ap_id);
			else if (!strcmp(name, "site"))
				json_read_text(&r, t->site, sizeof t->site);
			else if (!strcmp(name, "token"))
				json_read_text(&r, t->token, sizeof t->token);
			else if (!strcmp(name, "ca"))
				json_read_text(&r, t->ca, sizeof t->ca);
			else
				json_read_skip(&r);
		}
	if (!json_read_end(&r))
		return "it is cut short, or not a ticket";
	if (version != 1)
		return "it is of another version: use the exporter that fits the push service";
	for (end = strlen(t->url); end && t->url[end - 1] == '/'; end--)
		t->url[end - 1] = '\0';
	if (strncmp(t->url, "https://", 8) || !t->url[8] || strpbrk(t->url, " ?#\"\r\n"))
		return "its url is not like https://HOST:PORT";
	if (!t->ap_id[0] || !is_name(t->ap_id) || !is_name(t->site))
		return "it names no " OAL_HERE;
	if (!t->token[0])
		return "it has no token";
	return strstr(t->ca, "-----BEGIN CERTIFICATE-----") ? NULL : "it has no certificate of the authority";
}

int ticket_parse(struct ticket *t, const char *text, size_t len, char *err, size_t err_size)
{
	static uint8_t json[TICKET_MAX];
	const char *wrong = NULL;
	size_t n = 0;

	memset(t, 0, sizeof *t);
	while (len && is_blank(*text)) {
		text++;
		len--;
	}
	while (len && is_blank(text[len - 1]))
		len--;
	if (!len)
		wrong = "it is empty";
	else if (len > sizeof json)
		wrong = "it is longer than 16 KiB";
	else if (!base64url_decode(json, &n, text, len))
		wrong = "it has characters that are not a ticket's, or is cut short";
	if (!wrong)
		wrong = read_json(t, json, n);
	explicit_bzero(json, n);
	if (!wrong)
		return 0;
	explicit_bzero(t, sizeof *t);
	snprintf(err, err_size, "the ticket cannot be used: %s; get one with: oal-deploy ctl ticket AP_ID", wrong);
	return -EINVAL;
}
