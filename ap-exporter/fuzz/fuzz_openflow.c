/* fuzz_openflow.c: any bytes from a switch: as one message, from an exact copy on the heap, and as a stream through the
 * connection. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "openflow/openflow_link.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void one_message(const uint8_t *data, size_t size)
{
	struct openflow_message m;
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		return;
	memcpy(copy, data, size);
	if (openflow_parse(&m, copy, size) == 1 && (m.length < OPENFLOW_HEADER || m.length > size))
		abort();
	free(copy);
}

static void stream(const uint8_t *data, size_t size)
{
	static struct openflow_link l;
	struct openflow_message m;
	size_t messages = 0;
	int ends[2];

	if (openflow_link_init(&l, "/nonexistent", "br") || socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		abort();
	l.fd = ends[0];
	if (send(ends[1], data, size, MSG_DONTWAIT) < 0 && size)
		abort();
	while (openflow_link_poll(&l, 1, &m))
		messages += m.length;
	if (messages > size || l.in_len > sizeof l.in || (l.up && l.fd < 0))
		abort();
	openflow_link_close(&l);
	close(ends[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	one_message(data, size);
	stream(data, size);
	return 0;
}
