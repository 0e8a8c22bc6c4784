/* protobuf.h: reader of small Protobuf messages whose every length is doubted. No allocation; points into the bytes. */
#ifndef OAL_PROTOBUF_H
#define OAL_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a field may be. A list may be packed, not packed or both; text is printable ASCII. */
enum pb_kind { PB_NONE, PB_U32, PB_S32, PB_S64, PB_FIXED64, PB_BYTES, PB_TEXT, PB_MESSAGE };
#define PB_LIST 16 /* flag */

/* A field of a message, by its number: how often it was there (of a list of numbers: how many), and the last. */
struct pb_field {
	uint32_t n;
	int64_t value; /* numbers; FIXED64's bits */
	const uint8_t *at; /* bytes, text, messages */
	size_t len;
};

/* Reads a message whose field number i, 1 <= i < n, is of kinds[i]; others are skipped. `fields` has n elements. 0, or
 * -EBADMSG with what is wrong in `err`: a length or varint past the end, a wrong wire type, a number wider than its
 * field, a text over `max_text` bytes, a field that is there twice and is not a list. */
int pb_read(struct pb_field *fields, const uint8_t *kinds, unsigned n, const uint8_t *at, size_t len, size_t max_text,
            char *err, size_t err_size);

/* Position in a list of a message that pb_read() took. */
struct pb_list {
	const uint8_t *message, *message_end; /* where further pieces are looked for */
	const uint8_t *at, *end; /* of the packed piece */
	uint32_t number;
	uint8_t kind;
};

void pb_list_begin(struct pb_list *, const uint8_t *message, size_t len, uint32_t number, enum pb_kind);
/* The next number, or 0 at the end: what was counted before is there. */
int64_t pb_list_next(struct pb_list *);
/* The next element of a list of bytes; false at the end. */
bool pb_list_bytes(struct pb_list *, const uint8_t **at, size_t *len);

#endif
