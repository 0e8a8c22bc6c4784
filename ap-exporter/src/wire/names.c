#include "wire/names.h"

#include <string.h>

static uint16_t add(struct names *n, const char *name)
{
	memcpy(n->bytes[n->n], name, NAMES_BYTES);
	n->text[n->n] = n->bytes[n->n];
	return (uint16_t)n->n++;
}

uint16_t names_intern(struct names *n, const char *name, uint64_t *refused)
{
	static const char unknown[NAMES_BYTES] = "?";
	char clean[NAMES_BYTES] = {0};
	unsigned i;

	/* The kernel takes any byte in a device's name; the contract wants UTF-8. */
	for (i = 0; i < NAMES_BYTES - 1 && name[i]; i++)
		clean[i] = name[i] >= 0x20 && name[i] < 0x7f ? name[i] : '?';
	for (i = 0; i < n->n; i++)
		if (!memcmp(n->bytes[i], clean, NAMES_BYTES))
			return (uint16_t)i;
	if (n->n < NAMES_MAX)
		return add(n, clean);
	++*refused;
	return n->n == NAMES_MAX ? add(n, unknown) : NAMES_MAX;
}

const char *names_get(const struct names *n, unsigned i)
{
	return i < n->n ? n->bytes[i] : "?";
}
