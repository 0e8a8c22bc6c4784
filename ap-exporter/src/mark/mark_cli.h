/* mark_cli.h: `ap-exporter mark`: marks as commands on standard input say, one JSON line an answer. */
#ifndef OAL_MARK_CLI_H
#define OAL_MARK_CLI_H

#include <stdio.h>

#include "base/config.h"

/* Until the end of `in`, `quit` or a signal; then everything is released. Exit status. */
int mark_cli(const struct config_mark *, FILE *in, FILE *out);

#endif
