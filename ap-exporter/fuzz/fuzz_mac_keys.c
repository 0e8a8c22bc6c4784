/* A file of MAC keys with anything in it: what is taken has names and ids within bounds, and is found again. */
#include "enrol/mac_keys.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mac_keys *k = NULL;
	char err[600] = "";
	size_t len = 0;

	if (mac_keys_parse(&k, (const char *)data, size, "keys", err, sizeof err)) {
		if (k || !strstr(err, "AP_ID SITE KEY_ID"))
			abort();
		return 0;
	}
	/* A line at the start that begins without blanks names an AP that has a key. */
	while (len < size && data[len] > ' ' && data[len] != '#')
		len++;
	if (len && !mac_keys_find(k, (const char *)data, len))
		abort();
	mac_keys_free(k);
	return 0;
}
