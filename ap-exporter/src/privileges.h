/* Gives up root once everything is open. */
#ifndef OAL_PRIVILEGES_H
#define OAL_PRIVILEGES_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Becomes `user` and keeps CAP_NET_RAW alone, so that a reload can open another packet socket; reading nl80211,
 * rtnetlink and an open packet ring needs no privilege. With `programs` it keeps what tc programs take: CAP_NET_ADMIN
 * to put them on a port that came back, CAP_BPF to write their maps on kernels before 5.19, and it and CAP_PERFMON to
 * load them at a reload. An empty `user` changes nothing but no_new_privs. 0 or a negative errno with the reason in
 * `err`.
 */
int privileges_drop(const char *user, bool programs, char *err, size_t err_size);

#endif
