/* congestion_cli.h: `oal-host congestion [CGROUP]`, congestion controls by hand. Commands are lines of standard input,
 * each is answered by a line of JSON:
 *
 *   choose PREFIX NAME TTL_MS     connections to PREFIX that begin have the congestion control NAME
 *   model PREFIX HEX TTL_MS       those with oal_lc keep their window by this model (struct oal_lc_model, 304 digits)
 *   release PREFIX|all            neither of these any more
 *   stats                         what was counted
 *   quit                          as the end of the input: everything ends
 */
#ifndef OAL_CONGESTION_CLI_H
#define OAL_CONGESTION_CLI_H

#include <stdio.h>

/* The program's exit status. */
int congestion_cli(const char *cgroup, FILE *in, FILE *out);

#endif
