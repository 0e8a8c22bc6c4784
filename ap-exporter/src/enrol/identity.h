/* identity.h: an AP's key and certificate (libcrypto). Only in builds with the agent. */
#ifndef OAL_IDENTITY_H
#define OAL_IDENTITY_H

#include <stddef.h>
#include <stdint.h>

/* The first certificate of a PEM text. Times are realtime microseconds. */
struct identity {
	char cn[65];
	int64_t not_before_us, not_after_us;
};

/* A new P-256 key, and a request for a certificate of O=oal, OU=ap, CN=ap_id, as PEM texts that the caller frees.
 * Negative errno with the reason in `err`. */
int identity_make(char **key, char **request, const char *ap_id, char *err, size_t err_size);
/* 0, or -EINVAL with the reason in `err`. */
int identity_read(struct identity *, const char *certificate, char *err, size_t err_size);
/* Is this the certificate of `ap_id` and of this key, and does it lead to this authority? Times are not looked at. 0,
 * or -EINVAL with what is wrong in `err`. */
int identity_check(const char *certificate, const char *key, const char *ca, const char *ap_id, char *err,
                   size_t err_size);
/* 2026-11-22 01:02:03 UTC */
void identity_time(char out[32], int64_t us);

#endif
