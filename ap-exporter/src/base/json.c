#include "base/json.h"

#include <stdarg.h>
#include <stdio.h>

void json_add(struct json *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (t->len >= t->size)
		return;
	va_start(ap, fmt);
	n = vsnprintf(t->buf + t->len, t->size - t->len, fmt, ap);
	va_end(ap);
	t->len += n > 0 ? (size_t)n : 0;
}

void json_string(struct json *t, const char *s)
{
	json_add(t, "\"");
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			json_add(t, "\\%c", *s);
		else if ((unsigned char)*s < 0x20)
			json_add(t, "\\u%04x", (unsigned char)*s);
		else
			json_add(t, "%c", *s);
	}
	json_add(t, "\"");
}

void json_count(struct json *t, const char *name, uint64_t v)
{
	json_add(t, ", \"%s\": %llu", name, (unsigned long long)v);
}

size_t json_len(const struct json *t)
{
	return t->len < t->size ? t->len : t->size - 1;
}
