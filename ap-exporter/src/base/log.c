#include "base/log.h"

#include "base/version.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

/* One write(2) a line, so that lines of threads do not mix. */
static void line(const char *level, const char *fmt, va_list ap)
{
	char buf[1024];
	int n = snprintf(buf, sizeof buf, OAL_PROGRAM ": %s", level);
	int m = vsnprintf(buf + n, sizeof buf - (size_t)n - 1, fmt, ap);

	if (m < 0)
		return;
	n += m;
	if (n > (int)sizeof buf - 2)
		n = (int)sizeof buf - 2;
	buf[n++] = '\n';
	if (write(STDERR_FILENO, buf, (size_t)n) < 0)
		return; /* nobody left to tell */
}

#define LEVEL(name, prefix)              \
	void name(const char *fmt, ...)  \
	{                                \
		va_list ap;              \
		va_start(ap, fmt);       \
		line(prefix, fmt, ap);   \
		va_end(ap);              \
	}

LEVEL(log_info, "")
LEVEL(log_warn, "warning: ")
LEVEL(log_error, "error: ")
