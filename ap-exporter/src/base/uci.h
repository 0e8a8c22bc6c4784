/*
 * Reader of OpenWrt's UCI file format: `config TYPE ['NAME']`, `option NAME VALUE`, `list NAME VALUE`, `package NAME`,
 * '#' comments; words bare, in '…' (as it is) or in "…" (with \ escapes), and adjacent pieces join.
 * It does not need libuci, so that the daemon also runs where there is none.
 */
#ifndef OAL_UCI_H
#define OAL_UCI_H

#include <stdbool.h>
#include <stddef.h>

#define UCI_WORD_MAX 512 /* longest word, bytes with the final NUL */

struct uci_handler {
	/* Each returns 0, or a negative errno after writing what is wrong to `err` (the reader adds the line
	 * number). */
	int (*section)(void *ctx, const char *type, const char *name, char *err, size_t err_size);
	int (*option)(void *ctx, const char *name, const char *value, bool list, char *err, size_t err_size);
};

/* Reads `text`. Returns 0 or -EINVAL with "line N: …" in `err`. */
int uci_parse(const char *text, size_t len, const struct uci_handler *handler, void *ctx, char *err, size_t err_size);

#endif
