#include "enrol/http.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The value of the header `name` (with its colon), trimmed, in `out`; false for another header, or one too long. */
static bool header_is(const char *line, size_t len, const char *name, char *out, size_t size)
{
	size_t at = strlen(name);

	if (len < at || strncasecmp(line, name, at))
		return false;
	while (at < len && (line[at] == ' ' || line[at] == '\t'))
		at++;
	while (len > at &&
	       (line[len - 1] == '\r' || line[len - 1] == '\n' || line[len - 1] == ' ' || line[len - 1] == '\t'))
		len--;
	if (len - at >= size)
		return false;
	memcpy(out, line + at, len - at);
	out[len - at] = '\0';
	return true;
}

/* "abc", also where a proxy made it W/"abc". */
static void read_etag(char *etag, const char *value)
{
	const char *first = strchr(value, '"'), *last = strrchr(value, '"');
	const char *c;

	etag[0] = '\0';
	if (!first || last == first)
		return;
	for (c = first + 1; c < last; c++)
		if (*c < 0x21 || *c > 0x7e || *c == '"')
			return;
	memcpy(etag, first + 1, (size_t)(last - first - 1));
	etag[last - first - 1] = '\0';
}

/* [a-z][a-z0-9-]{0,30} */
static bool is_policy(const char *name, size_t len)
{
	return len && len < HTTP_POLICY && name[0] >= 'a' && name[0] <= 'z' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") >= len;
}

/* Names, one space between two. A list that says anything else says nothing. */
static void read_policies(struct http_answer *a, const char *value)
{
	const char *name = value;

	a->policies_said = false;
	while (*name) {
		const size_t len = strcspn(name, " ");

		if (!is_policy(name, len))
			return;
		name += len;
		name += *name == ' ';
	}
	strcpy(a->policies, value);
	a->policies_said = true;
}

void http_header_killed(struct http_answer *a, const char *value)
{
	unsigned n = *value != '\0';

	a->killed_said = true;
	for (const char *name = value; *name; name += *name == ' ') {
		const size_t len = strcspn(name, " ");

		if (!is_policy(name, len)) {
			a->killed_unclear = true;
			return;
		}
		name += len;
		n += *name == ' ';
	}
	a->killed_unclear = n > OAL_SETTING_MAX_KILLED_POLICIES;
	strcpy(a->killed, value);
}

void http_header_read(struct http_answer *a, const char *line, size_t len)
{
	static const char killed[] = "oal-killed:";
	char value[HTTP_POLICIES];

	if (header_is(line, len, "etag:", value, HTTP_ETAG)) {
		read_etag(a->etag, value);
	} else if (header_is(line, len, "oal-activate-at:", value, sizeof value)) {
		char *end;
		const long long at = strtoll(value, &end, 10);

		if (end != value && !*end && at > 0)
			a->activate_at_us = at;
	} else if (header_is(line, len, "oal-control:", value, sizeof value)) {
		if (!strcmp(value, "off"))
			a->control = HTTP_CONTROL_OFF;
		else if (!strcmp(value, "on"))
			a->control = HTTP_CONTROL_ON;
	} else if (len >= strlen(killed) && !strncasecmp(line, killed, strlen(killed))) {
		if (header_is(line, len, killed, value, sizeof value))
			http_header_killed(a, value);
		else
			a->killed_said = a->killed_unclear = true;
	} else if (header_is(line, len, "oal-policies:", value, sizeof value)) {
		read_policies(a, value);
	} else if (header_is(line, len, "oal-policy:", value, sizeof value)) {
		if (is_policy(value, strlen(value)))
			strcpy(a->policy, value);
	}
}
