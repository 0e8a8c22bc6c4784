/* rpcd.h: OpenWrt's ubus object `ap-exporter`, by rpcd: it runs files/ap-exporter.rpcd with `list`, or with `call
 * METHOD` and arguments as JSON on its standard input. The answers are parts of the exporter's own status. */
#ifndef OAL_RPCD_H
#define OAL_RPCD_H

#include "base/config.h"

#include <stdio.h>

/* The methods and their arguments. */
int rpcd_list(FILE *out);
/* Exit status: 0, or 1 with the reason in the log: no such method, no exporter, arguments that are none. */
int rpcd_call(const struct config *, const char *method, FILE *in, FILE *out);

#endif
