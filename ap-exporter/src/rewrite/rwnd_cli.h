/* rwnd_cli.h: the command `ap-exporter rwnd`: the rewrite by hand. For people, the conformance suite and the lab's
 * bounds. */
#ifndef OAL_RWND_CLI_H
#define OAL_RWND_CLI_H

#include "rewrite/rwnd.h"

#include <stdio.h>

/* Opens the backend and carries out the commands of `in` until its end, `quit`, SIGINT or SIGTERM; one JSON line on
 * `out` for each. Everything is released at the end. The exit status. */
int rwnd_cli(const struct config_rwnd *, FILE *in, FILE *out);

#endif
