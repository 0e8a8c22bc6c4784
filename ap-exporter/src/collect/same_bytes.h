/* same_bytes.h: are these bytes the same? By words where they are aligned: musl, which OpenWrt has, compares in memcmp()
 * byte by byte, and what the kernel answers is mostly compared with what it answered a tick before. */
#ifndef OAL_SAME_BYTES_H
#define OAL_SAME_BYTES_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __mips16 /* whose short instructions are a third more here */
__attribute__((nomips16))
#endif
bool same_bytes(const void *a, const void *b, size_t n);

#endif
