/* words.h: a line of words apart by blanks; # begins a comment. The key files are made of such lines. */
#ifndef OAL_WORDS_H
#define OAL_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* Moves `*at` past the next word of a line that ends at `end`; its length, 0 at the end, at a comment, and at a byte
 * that is no text. */
size_t word_next(const char **at, const char *end);
/* Nothing but blanks or a comment follows. */
bool words_end(const char *at, const char *end);

#endif
