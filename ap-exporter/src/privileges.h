/* Gives up root once everything is open. */
#ifndef OAL_PRIVILEGES_H
#define OAL_PRIVILEGES_H

#include <stddef.h>

/*
 * Becomes `user` and keeps CAP_NET_RAW alone, so that a reload can open another packet socket; reading nl80211,
 * rtnetlink and an open packet ring needs no privilege. An empty `user` changes nothing but no_new_privs.
 * 0 or a negative errno with the reason in `err`.
 */
int privileges_drop(const char *user, char *err, size_t err_size);

#endif
