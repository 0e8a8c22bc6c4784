/* bundle_law.h: what a bundle says is done with its models' answers (schema/README.md, "Bundles"). */
#ifndef OAL_BUNDLE_LAW_H
#define OAL_BUNDLE_LAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/bundle_parts.h"

enum { BUNDLE_LAW_VALUES = 4 };

/* The names are of the contract's lists, and live for ever. */
struct bundle_law {
	const char *name; /* fair_window, direct, mark, backlog_cap */
	const char *subject; /* flow, station, ap, destination */
	const char *action; /* rwnd, mark, cc */
	bool needs_class; /* it goes by the class, and there must be a model of this role */
	unsigned n_values;
	/* direct: one a class; 0: nothing is done; of cc enum oal_congestion_control */
	int64_t values[BUNDLE_LAW_VALUES];
};

/* Is it about destinations: what its program sees is a row by itself? Only hosts have these. */
bool bundle_law_of_rows(const struct bundle_law *);
/* What a bundle of format 1 does. */
extern const struct bundle_law bundle_law_fair_window;

/* 0, or -EINVAL with what is wrong in `err`: a law, a subject or an action that is unknown here or does not go with the
 * others, values that are not as many as it has, or one out of range. */
int bundle_law_read(struct bundle_law *, const struct part *, char *err, size_t err_size);

#endif
