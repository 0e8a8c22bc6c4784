/* json_read.h: reads JSON from outside, in one pass and without memory of its own. Strict (RFC 8259), no deeper than
 * JSON_READ_DEPTH.
 *
 * The caller says what it expects; what is not that makes the reader bad, and from then on every function returns
 * false:
 *     if (json_read_object(&r))
 *             while (json_read_member(&r, name, sizeof name))
 *                     …one of json_read_text, _number, _object, _array, _skip…
 *     good = json_read_end(&r); */
#ifndef OAL_JSON_READ_H
#define OAL_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JSON_READ_DEPTH = 16 };

struct json_reader {
	const uint8_t *at, *end;
	unsigned depth;
	bool first; /* in an object or array just entered: no comma yet */
	bool bad;
};

void json_read_begin(struct json_reader *, const void *text, size_t len);
bool json_read_object(struct json_reader *);
/* The next member's name; its value is to be read. False: that was the last one. A name that does not fit is given as
 * empty. */
bool json_read_member(struct json_reader *, char *name, size_t size);
bool json_read_array(struct json_reader *);
/* There is one more element, to be read. */
bool json_read_element(struct json_reader *);
/* A string that fits with its final zero, and holds none. */
bool json_read_text(struct json_reader *, char *out, size_t size);
/* A whole number from 0 to `most`, written as digits. */
bool json_read_number(struct json_reader *, uint64_t most, uint64_t *out);
/* A value of any kind. */
bool json_read_skip(struct json_reader *);
/* Nothing was bad, and nothing follows. */
bool json_read_end(struct json_reader *);

#endif
