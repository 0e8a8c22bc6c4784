/* issued.h: what the push service answers to an enrolment and to a renewal: certificate, authority, MAC keys and the
 * keys that sign bundles. */
#ifndef OAL_ISSUED_H
#define OAL_ISSUED_H

#include <stddef.h>

enum { ISSUED_MAX_BYTES = 65536 };

struct issued {
	char ap_id[65], site[65];
	char *certificate, *ca, *mac_keys, *trusted_keys; /* file contents; the last two may be empty */
	char *text; /* holds them */
};

/* The texts are checked for being what they are to be, for this AP and site. 0, or negative errno with what is wrong in
 * `err`. */
int issued_read(struct issued *, const void *json, size_t len, const char *ap_id, const char *site, char *err,
                size_t err_size);
void issued_free(struct issued *);

#endif
