/* fuzz_capture.c: any bytes as a capture file. Records lie within the file, in order, and every byte is accounted
 * for. */
#include <stdlib.h>

#include "wire/capture_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct capture_reader r;
	struct capture_record record;
	uint64_t good = 0;

	if (capture_open(&r, data, size))
		return 0;
	while (capture_next(&r, &record)) {
		if (record.bytes < data || record.bytes + record.len > data + size)
			abort();
		good += CAPTURE_HEADER_BYTES + record.len;
	}
	if (good + r.skipped_bytes + CAPTURE_MAGIC_BYTES != size)
		abort();
	return 0;
}
