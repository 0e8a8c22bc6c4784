/* start.h: a start in two halves: what takes privileges, and their end. Between them the daemon opens the rest, as root
 * where it is to change its user (TLS keys are read then), and makes its threads. After the second half bytes from
 * outside are parsed with no capability and few system calls. */
#ifndef OAL_START_H
#define OAL_START_H

#include "base/config.h"
#include "base/loop.h"
#include "helper/rights.h"

#include <stddef.h>

/* Taps, tc programs and the helper that keeps them (served by `loop`), and who the user is. 0 or negative errno with
 * the reason in `err`. */
int start_with_rights(struct rights *rights, const struct config *config, struct loop *loop, char *err,
		      size_t err_size);
int start_without_rights(const struct rights *, char *err, size_t err_size);
/* Ends the helper. */
void start_end(void);

#endif
