/* enrol.h: ap-exporter enrol: a one-time ticket becomes this AP's key, certificate and key files. */
#ifndef OAL_ENROL_H
#define OAL_ENROL_H

#include "base/config.h"

/* `ticket`: its text, or "-": from standard input. Exit status. */
int enrol(const struct config *, const char *path, const char *ticket);

#endif
