/* mark.h: an instruction without effect that tells count.so (../count) to write down its counts. */
#ifndef OAL_MARK_H
#define OAL_MARK_H

#if defined(__mips__)
#define MARK(number) __asm__ volatile("lui $0, 0x4f00 + %0" ::"n"(number) : "memory")
#elif defined(__x86_64__)
#define MARK(number) __asm__ volatile("nopl 0x4f414c00 + %c0(%%rax)" ::"n"(number) : "memory")
#endif

enum { MARK_BEGIN = 1, MARK_END = 2 };

#endif
