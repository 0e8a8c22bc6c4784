/* An interface that may go away and come back, under the same name and another index. */
#ifndef OAL_INTERFACE_H
#define OAL_INTERFACE_H

#include <stdbool.h>
#include <stdint.h>

#define INTERFACE_NAME 16

struct interface {
	char name[INTERFACE_NAME];
	unsigned index;        /* 0 while it is away */
	uint64_t losses;       /* times it went away */
	bool reported;         /* its absence was logged */
};

void interface_init(struct interface *, const char *name);
/* Reads the index, without allocating. True if it is another one than before (0 included). */
bool interface_update(struct interface *);
/* A request for it failed with `error`: true if that means that it is gone, and then it is marked as away. */
bool interface_failed(struct interface *, int error);
/* Logs, once, that it is away or that it came back. Called once a second. `who` is the collector. */
void interface_report(struct interface *, const char *who);

#endif
