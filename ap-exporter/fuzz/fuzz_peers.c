/* Statistics of peers from a hostile push service. What is taken is bounded and whole; what is refused leaves
 * nothing. */
#include "base/json_read.h"
#include "agent/peer_list.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct peer_list list;
	struct json_reader r;
	char err[160] = "";
	unsigned i, k;

	json_read_begin(&r, data, size);
	json_read_skip(&r);
	if (peer_list_read(&list, data, size, "me", "lab", 5180, err, sizeof err)) {
		if (list.n || !err[0])
			abort();
		return 0;
	}
	if (!json_read_end(&r) || size > PEER_LIST_BYTES || list.n > PEER_LIST_MAX)
		abort(); /* what was taken is JSON */
	for (i = 0; i < list.n; i++) {
		if (list.rows[i].frequency_mhz != 5180 || list.rows[i].neighbour == peer_id("me"))
			abort();
		for (k = 0; k < i; k++)
			if (list.rows[i].neighbour == list.rows[k].neighbour)
				abort();
	}
	return 0;
}
