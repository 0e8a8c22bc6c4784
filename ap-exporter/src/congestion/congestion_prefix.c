#include "congestion/congestion.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { V4_AT = 12, V4_BITS = 96 };

/* No bit is set beyond the prefix's length. */
static bool clean(const struct congestion_prefix *p)
{
	for (uint32_t bit = p->bits; bit < 128; bit++)
		if (p->address[bit / 8] & 0x80 >> bit % 8)
			return false;
	return true;
}

int congestion_prefix_parse(struct congestion_prefix *p, const char *text)
{
	static const uint8_t mapped[V4_AT] = { [10] = 0xff, [11] = 0xff };
	char address[INET6_ADDRSTRLEN];
	const char *const slash = strchr(text, '/');
	const size_t len = slash ? (size_t)(slash - text) : strlen(text);
	unsigned long bits, most = 128;
	char *end;

	if (len >= sizeof address)
		return -EINVAL;
	memcpy(address, text, len);
	address[len] = '\0';
	if (inet_pton(AF_INET, address, p->address + V4_AT) == 1) {
		memcpy(p->address, mapped, sizeof mapped);
		most = 32;
	} else if (inet_pton(AF_INET6, address, p->address) != 1) {
		return -EINVAL;
	}
	bits = most;
	if (slash) {
		bits = strtoul(slash + 1, &end, 10);
		if (slash[1] < '0' || slash[1] > '9' || *end || bits > most)
			return -EINVAL;
	}
	p->bits = (uint32_t)(bits + (most == 32 ? V4_BITS : 0));
	return clean(p) ? 0 : -EINVAL;
}
