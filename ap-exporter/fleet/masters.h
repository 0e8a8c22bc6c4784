/* masters.h: the platform's master MAC keys. In a simulation alone: no AP ever sees one. */
#ifndef OAL_MASTERS_H
#define OAL_MASTERS_H

#include "enrol/mac.h"

struct master {
	uint8_t id;
	uint8_t key[MAC_KEY_BYTES];
};

/* The newest of a file of lines `KEY_ID BASE64-OF-32-BYTES`. 0, or negative errno with file and line in `err`. */
int master_read(struct master *, const char *path, char *err, size_t err_size);

#endif
