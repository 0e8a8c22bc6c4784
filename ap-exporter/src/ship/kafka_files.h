/* kafka_files.h: the files that a section `kafka` names: TLS and MAC keys. */
#ifndef OAL_KAFKA_FILES_H
#define OAL_KAFKA_FILES_H

#include "base/config.h"
#include "base/sha256.h"
#include "enrol/mac_keys.h"

#include <stddef.h>
#include <stdint.h>

/* The MAC keys, with one for every AP whose batches this process makes; NULL without `mac_keys`. 0, or a negative errno
 * with the reason in `err`. */
int kafka_files_keys(struct mac_keys **, const struct config *, char *err, size_t err_size);
/* Hash of what the TLS files hold; negative errno with the file in `err`. */
int kafka_files_hash(uint8_t hash[SHA256_BYTES], const struct config *, char *err, size_t err_size);

#endif
