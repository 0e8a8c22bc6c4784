/* json.h: writes JSON into a buffer of fixed size. What does not fit is left out, and `len` then is not less than
 * `size`. */
#ifndef OAL_JSON_H
#define OAL_JSON_H

#include <stddef.h>
#include <stdint.h>

struct json {
	char *buf;
	size_t size, len;
};

void json_add(struct json *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void json_string(struct json *, const char *);
/* `, "name": v` */
void json_count(struct json *, const char *name, uint64_t v);
/* Bytes in the buffer, without the final zero. */
size_t json_len(const struct json *);

#endif
