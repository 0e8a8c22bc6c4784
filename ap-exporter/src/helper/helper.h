/* helper.h: the one process that keeps privileges once the exporter runs. It is forked at the start, holds what tc
 * programs take (CAP_NET_ADMIN, CAP_BPF) and does what records (record.h) say; the daemon, which reads packets, answers
 * of servers and of the kernel, keeps nothing.
 *
 * Until helper_start() this process does itself what is asked, at once: while an exporter starts, in the command
 * `rwnd`, in tests. From then on nothing is waited for: sets are sent, answers come by helper_read(). All functions are
 * called by one thread. */
#ifndef OAL_HELPER_H
#define OAL_HELPER_H

#include "helper/serve.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An answer, or what befell the slot. */
typedef void (*helper_owner)(void *owner, const struct helper_answer *);

#ifdef HAVE_BPF
/* Hands programs over: the number of their slot; -ENOSPC; -EPERM after helper_start(). */
int helper_slot_new(const struct helper_slot *, helper_owner, void *owner);
/* Takes them off their ports. Without a helper the slot is free afterwards. */
void helper_slot_end(int slot);
/* Has the helper been started, so that no more programs can be loaded? */
bool helper_started(void);
/* Sends a command; head and number are filled in. 0 or negative errno: -ENOTCONN if the helper is gone, -EAGAIN if it
 * does not keep up, -EINVAL if it would refuse the record and end. */
int helper_send(int slot, enum helper_command, struct helper_record *);

struct rights;
/* Forks the helper if there is a slot; owners are notified (HELPER_STARTED) and close the programs' descriptors. 0 or
 * negative errno with the reason in `err`. */
int helper_start(const struct rights *, char *err, size_t err_size);
/* Readable when there is something to helper_read(); -1: no helper. */
int helper_fd(void);
/* Hands answers to the owners. When the helper has gone its descriptor is closed, and owners hear that. */
void helper_read(void *ctx, int fd);
/* Is it gone, though it had been started? */
bool helper_lost(void);
/* Ends it and waits until it has taken all programs off their ports. */
void helper_stop(void);
#else
static inline bool helper_lost(void) { return false; }
#endif

#endif
