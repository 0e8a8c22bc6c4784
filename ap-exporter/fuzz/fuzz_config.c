/* The configuration file as an attacker, or a broken flash, would write it. */
#include "base/config.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct config c;
	char err[1024] = "";
	int ret = config_parse(&c, (const char *)data, size, err, sizeof err);

	if (ret && !err[0])
		abort(); /* a refusal must say why */
	if (!ret && !c.n_kafka && !c.n_file)
		abort(); /* a good configuration has a sink */
	return 0;
}
