/* A unix stream socket that answers every connection with one JSON document and closes it. */
#ifndef OAL_STATUS_H
#define OAL_STATUS_H

#include <stddef.h>
#include <stdio.h>

struct status;

/* Writes the document; returns its length. */
typedef size_t (*status_fill)(void *ctx, char *buf, size_t size);

/* 0 or a negative errno with the reason in `err`. A socket left by a dead exporter is replaced, a living one is not. */
int status_open(struct status **, const char *path, status_fill fill, void *ctx, char *err, size_t err_size);
int status_fd(const struct status *);
/* Serves one connection; to be called when status_fd() is readable. */
void status_serve(void *status, int fd);
void status_close(struct status *);

/* The other side: copies what the socket at `path` answers to `out`. 0 or a negative errno. */
int status_read(const char *path, FILE *out);

#endif
