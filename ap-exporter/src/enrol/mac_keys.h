/* mac_keys.h: the MAC keys of the APs of this process. A text file: lines `AP_ID SITE KEY_ID BASE64`, # begins a
 * comment; site - is none. Of several keys of an AP that with the highest KEY_ID counts. */
#ifndef OAL_MAC_KEYS_H
#define OAL_MAC_KEYS_H

#include <stddef.h>

#include "enrol/mac.h"

enum { MAC_NAME = 64, MAC_KEYS_MAX_BYTES = 1 << 20 };

struct mac_keys;

/* 0, or negative errno with file and line in `err`: -EINVAL for a line that is not a key, or a file without any. */
int mac_keys_read(struct mac_keys **, const char *path, char *err, size_t err_size);
/* The same from a text; `path` is for the message. */
int mac_keys_parse(struct mac_keys **, const char *text, size_t len, const char *path, char *err, size_t err_size);
void mac_keys_free(struct mac_keys *);
/* Key of an AP; NULL: it has none here. */
const struct mac_key *mac_keys_find(const struct mac_keys *, const char *ap_id, size_t len);
/* Is there a key for this AP at this site? 0, or -ENOENT with what to do in `err`. */
int mac_keys_check(const struct mac_keys *, const char *path, const char *ap_id, const char *site, char *err,
                   size_t err_size);

#endif
