/* names.h: the dictionary of device, kind and version names of one exporter: it only grows, so that an index means the
 * same in every batch. */
#ifndef OAL_NAMES_H
#define OAL_NAMES_H

#include <stdint.h>

enum { NAMES_MAX = 64, NAMES_BYTES = 32 };

struct names {
	char bytes[NAMES_MAX + 1][NAMES_BYTES];
	const char *text[NAMES_MAX + 1]; /* bytes[i], as batch_header wants it */
	unsigned n;
};

/* Index of `name`, cut to 31 bytes, what is not printable ASCII replaced by "?"; when all places are taken, of "?", and
 * `*refused` grows. */
uint16_t names_intern(struct names *, const char *name, uint64_t *refused);
/* "?" for an index that is not in use. */
const char *names_get(const struct names *, unsigned index);

#endif
