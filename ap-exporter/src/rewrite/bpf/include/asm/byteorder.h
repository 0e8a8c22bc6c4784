/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* asm/byteorder.h for a BPF target: the order is the target's (bpfel, bpfeb), not that of the machine whose kernel
 * headers are read. The bit fields of struct iphdr and struct tcphdr depend on it. */
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#include <linux/byteorder/big_endian.h>
#else
#include <linux/byteorder/little_endian.h>
#endif
