/* inspect.h: commands that show a signed bundle and evaluate its models, for people and for tests of parity. */
#ifndef OAL_INSPECT_H
#define OAL_INSPECT_H

#include <stdio.h>

struct inspect_terms {
	const char *keys; /* trusted-keys file; NULL: the signature is not checked */
	const char *ap_id, *site; /* NULL: any target */
};

/* Writes as one JSON document what a bundle holds and whether it would be taken. 0: it would; 1: it would not; 2: a
 * file could not be read, which the log says. */
int inspect_bundle(const char *path, const struct inspect_terms *, FILE *out);

/* For each line of `in`, integers separated by commas (empty or "-": missing): the features, then for a window model
 * the flow columns among its inputs in their order. Writes LEAF,CLASS,CONGESTED_PERMILLE[,WINDOW_BYTES]. A first line
 * that begins with a letter is a heading. 0, or 1 with the reason in the log. The signature is not checked. */
int inspect_predict(const char *path, FILE *in, FILE *out);

#endif
