/* dump.h: what a file of batches holds, for people and for tests. Takes a capture (.oalcap), a container of golden
 * vectors (topic u8, length u32le, batch), or a single batch. */
#ifndef OAL_DUMP_H
#define OAL_DUMP_H

#include <stdio.h>

/* Every row as a JSON object, one a line; names, flows and MAC addresses spelled out, absent columns null. Refused
 * records become {"refused": reason, …}. 0, or a negative errno after a message on stderr. */
int dump_rows(const char *path, FILE *out);
/* One JSON object: batches per topic, rows per table, per AP and in all; bytes; refused and damaged records; the time
 * that the batches span. An independent count at the source. */
int dump_count(const char *path, FILE *out);

#endif
