/* rights.h: what the exporter's processes may, given up in two steps: what only the start needs before any thread is
 * there, and the rest with the user, for all threads at once. */
#ifndef OAL_RIGHTS_H
#define OAL_RIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct rights {
	bool change; /* become another user */
	uid_t uid;
	gid_t gid;
};

/* Who `user` is; empty: the user who started it. 0 or negative errno with the reason in `err`. */
int rights_read(struct rights *, const char *user, char *err, size_t err_size);
/* Before the first thread: no new privileges, an empty bounding and ambient set. As root that is to change its user it
 * keeps what opening files and sockets takes until rights_give_up(); else no capability is left. Threads made from now
 * on may raise their priority as far as a tick's. */
int rights_begin(const struct rights *, char *err, size_t err_size);
/* Becomes the user. No thread has a capability afterwards. */
int rights_give_up(const struct rights *, char *err, size_t err_size);
/* The helper's: the user, and CAP_NET_ADMIN (tc) and CAP_BPF (maps, on kernels before 5.19) alone. */
int rights_of_helper(const struct rights *, char *err, size_t err_size);

#endif
