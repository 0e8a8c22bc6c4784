/* state_file.h: what an AP must still know after a power cut, on flash: FOLDER/AP_ID.KIND, where KIND is `bundle` (the
 * last good one, as it came) or `control` (on or off, by the kill switch). Bundles of further policies are
 * FOLDER/AP_ID@POLICY.bundle: no AP's id has an @. A file is written beside and renamed, so that a power cut leaves the
 * old one or the new one, whole. */
#ifndef OAL_STATE_FILE_H
#define OAL_STATE_FILE_H

#include <stddef.h>
#include <stdint.h>

/* Is the folder there and writable? 0, or a negative errno with what to do in `err`. */
int state_file_check(const char *folder, char *err, size_t err_size);
/* 0 with the file's bytes, which the caller frees; -ENOENT without a file; -EFBIG for one of more than `most` bytes. */
int state_file_read(const char *folder, const char *ap_id, const char *kind, size_t most, uint8_t **bytes, size_t *len);
/* 0, or a negative errno: the old file is still there then, unless only syncing the folder failed. */
int state_file_write(const char *folder, const char *ap_id, const char *kind, const void *bytes, size_t len);
/* 0 also if there was none. */
int state_file_remove(const char *folder, const char *ap_id, const char *kind);
/* What stands between FIRST and .KIND in the folder's file names of that form, at most `most` of them of less than
 * `size` bytes each, one after the other in `names`. Returns how many; in no order. */
unsigned state_file_list(const char *folder, const char *first, const char *kind, char *names, size_t size,
                         unsigned most);

#endif
