/* credentials.h: which files an AP keeps what it was issued in: those that its configuration names. */
#ifndef OAL_CREDENTIALS_H
#define OAL_CREDENTIALS_H

#include "base/config.h"
#include "enrol/file_set.h"
#include "enrol/issued.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * The files of an AP, with these contents; all of them must live as long as the set. `mac_keys` is what the file of MAC
 * keys is to hold. `kafka`: the Kafka sink's certificate is this AP's too. Owned by the exporter's user, where this is
 * root. 0, or negative errno with what to do in `err`.
 */
int credentials_files(struct file_set *, const struct config *, const char *ap_id, bool kafka, const struct issued *,
                      const char *key, const char *mac_keys, char *err, size_t err_size);
/* Lines of the file of MAC keys at `path` that are other APs', then `issued`; the caller frees it. NULL: out of
 * memory. */
char *credentials_mac_keys(const char *path, const char *ap_id, const char *issued);

#endif
