/* confine.h: the system calls that a process may make from here on, for all its threads: a seccomp filter of our own,
 * built for the processor that it runs on. Any other call fails with EPERM, and where the kernel audits it is logged
 * with its number (audit type 1326). */
#ifndef OAL_CONFINE_H
#define OAL_CONFINE_H

#include <linux/filter.h>
#include <stddef.h>

enum confine_role {
	/* Files, sockets (unix, inet, netlink), threads; no program, no process, no bpf() but, on a host, what reads
	 * and writes maps that are open. */
	CONFINE_DAEMON,
	CONFINE_HELPER, /* bpf(), netlink, its channel */
};
enum { CONFINE_MOST = 256 }; /* instructions */

/* 0, also where the kernel has no such filters (it is logged); else a negative errno with the reason in `err`. */
int confine(enum confine_role, char *err, size_t err_size);
/* The filter itself: how many instructions it has; 0 on a processor that it does not know. */
unsigned confine_build(struct sock_filter[CONFINE_MOST], enum confine_role);

#endif
