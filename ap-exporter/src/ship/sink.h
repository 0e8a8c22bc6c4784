/* Where batches go. Every sink that is configured gets every batch. */
#ifndef OAL_SINK_H
#define OAL_SINK_H

#include "base/config.h"

#include <stddef.h>
#include <stdint.h>

struct sink_batch {
	const char *ap_id; /* the record's key */
	int topic;         /* OAL_TOPIC_… */
	const uint8_t *bytes;
	size_t len;
	uint64_t t0_us;
};

/* Since the sink was opened. In the end, batches sent = delivered + let_go. */
struct sink_stats {
	uint64_t delivered;
	uint64_t let_go;       /* given up: pushed out by newer ones, refused, or left when the sink was closed */
	uint64_t errors;       /* that the other side, or the disk, reported */
	uint64_t queued_bytes; /* waiting now */
	uint64_t throttled_ms; /* that the other side made it wait, for it sent more than its quota */
	char last_error[192];  /* text of the latest error, empty if there was none */
};

struct sink_ops {
	const char *name;
	/* Is it configured? */
	int (*wanted)(const struct config *);
	/* Is what the configuration names there? 0, or a negative errno with the reason in `err`. Touches nothing. */
	int (*check)(const struct config *, char *err, size_t err_size);
	int (*open)(void **self, const struct config *, char *err, size_t err_size);
	/* Neither blocks nor allocates: what the other side or a disk takes its time for is a thread's. */
	void (*send)(void *self, const struct sink_batch *);
	/* Called once a second. */
	void (*second)(void *self);
	void (*stats)(void *self, struct sink_stats *);
	/* Sends what is on its way, for a bounded time; then adds what was left to let_go, in *last if it is not
	 * NULL. */
	void (*close)(void *self, struct sink_stats *last);
	/* Would `other` open the same sink? Then a reload keeps this one open. */
	int (*same)(const struct config *, const struct config *other);
	/* The same sink goes on: takes up files of its configuration that have changed, certificates and keys. Nothing
	 * is lost by it. NULL: there are none. 0, or a negative errno with the reason in `err`: then it goes on with
	 * what it had. */
	int (*reread)(void *self, const struct config *, char *err, size_t err_size);
};

extern const struct sink_ops sink_kafka, sink_file;

/* All sinks of this build; ends with NULL. */
extern const struct sink_ops *const sink_all[];

#endif
