/* A ticket that somebody typed, and the answer of a hostile enrolment service: what is taken is of the AP that was
 * asked for. */
#include "enrol/issued.h"
#include "enrol/ticket.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ticket t;
	struct issued i;
	char err[600] = "";

	if (!ticket_parse(&t, (const char *)data, size, err, sizeof err)) {
		if (strncmp(t.url, "https://", 8) || !t.ap_id[0] || !t.token[0] || !t.ca[0])
			abort();
	} else if (!err[0] || t.token[0]) {
		abort();
	}
	if (!issued_read(&i, data, size, "ap-1", "lab", err, sizeof err)) {
		if (strcmp(i.ap_id, "ap-1") || strcmp(i.site, "lab") || !i.certificate[0] || !i.ca[0])
			abort();
	} else if (i.text) {
		abort();
	}
	issued_free(&i);
	return 0;
}
