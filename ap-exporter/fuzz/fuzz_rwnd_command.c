/* Lines of `ap-exporter rwnd`: whatever they are, a clamp that comes out may be, or rwnd_check_clamp() refuses it. */
#include "rewrite/rwnd_clamps.h"
#include "rewrite/rwnd_command.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *line = malloc(size + 1), err[512] = "";
	struct rwnd_command c;

	if (!line)
		return 0;
	memcpy(line, data, size);
	line[size] = '\0';
	if (rwnd_command_parse(&c, line, err, sizeof err) < 0) {
		if (!err[0])
			abort(); /* refused without a reason */
	} else if (c.verb == RWND_SET && rwnd_check_clamp(&c.flow, &c.bytes, c.ttl_ms) == 0) {
		const uint32_t floor = rwnd_floor_bytes(&c.flow);
		const uint8_t scale = c.flow.scale == RWND_SCALE_LEARNED ? 7 : c.flow.scale;
		const uint64_t window = (uint64_t)rwnd_raw(c.bytes, floor, scale) << scale;

		if (c.bytes < floor || (window < floor && window != (uint64_t)UINT16_MAX << scale))
			abort();
	}
	free(line);
	return 0;
}
