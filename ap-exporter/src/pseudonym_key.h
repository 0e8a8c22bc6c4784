/* pseudonym_key.h: the key under which addresses leave the AP as hashes. */
#ifndef OAL_PSEUDONYM_KEY_H
#define OAL_PSEUDONYM_KEY_H

#include <stddef.h>
#include <stdint.h>

enum { PSEUDONYM_KEY_BYTES = 16 };

/* Negative errno with what to do in `err`. */
int pseudonym_key_read(const char *path, uint8_t key[PSEUDONYM_KEY_BYTES], char *err, size_t err_size);

#endif
