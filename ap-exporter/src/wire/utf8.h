/* utf8.h: whether bytes are UTF-8. */
#ifndef OAL_UTF8_H
#define OAL_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* By Unicode's table 3-7: no overlong forms, no surrogates. */
bool utf8_is_valid(const uint8_t *, size_t len);

#endif
