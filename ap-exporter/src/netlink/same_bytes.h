/* same_bytes.h: are these bytes the same? By words where they are aligned: musl, which OpenWrt has, compares in
 * memcmp() byte by byte, and what the kernel answers is mostly compared with what it answered a tick before. */
#ifndef OAL_SAME_BYTES_H
#define OAL_SAME_BYTES_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __mips16 /* whose short instructions are a third more here */
#define SAME_BYTES_CODE __attribute__((nomips16))
#else
#define SAME_BYTES_CODE
#endif
SAME_BYTES_CODE bool same_bytes(const void *a, const void *b, size_t n);

#endif
