/* bundle_store.h: the last good bundle of an AP on flash, FOLDER/AP_ID.bundle: the signed bundle as it came.
 * A file is written beside and renamed, so that a power cut leaves the old one or the new one, whole. */
#ifndef OAL_BUNDLE_STORE_H
#define OAL_BUNDLE_STORE_H

#include <stddef.h>
#include <stdint.h>

/* Is the folder there and writable? 0, or a negative errno with what to do in `err`. */
int bundle_store_check(const char *folder, char *err, size_t err_size);
/* 0 with the file's bytes, which the caller frees; -ENOENT without a file; -EFBIG for one larger than a bundle may be. */
int bundle_store_read(const char *folder, const char *ap_id, uint8_t **bytes, size_t *len);
int bundle_store_write(const char *folder, const char *ap_id, const uint8_t *bytes, size_t len);

#endif
