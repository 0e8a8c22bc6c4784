#ifdef HAVE_BPF
#include "tc/tc_error.h"

#include <bpf/libbpf.h>
#include <stdio.h>
#include <string.h>

enum { TEXT = 256 }; /* bytes: a line of libbpf is rarely longer, and its beginning names the cause */

static char first[TEXT];

static int keep_first(enum libbpf_print_level level, const char *format, va_list args)
{
	if (level == LIBBPF_WARN && !first[0]) {
		vsnprintf(first, sizeof first, format, args);
		first[strcspn(first, "\n")] = '\0';
	}
	return 0;
}

void tc_error_begin(void)
{
	first[0] = '\0';
	libbpf_set_print(keep_first);
}

const char *tc_error_text(void)
{
	return first;
}
#endif
