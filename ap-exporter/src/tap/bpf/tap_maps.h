/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* tap_maps.h: what the tap's tc programs (tap.bpf.c) and their reader (../tap_bpf.c) share. */
#ifndef OAL_TAP_MAPS_H
#define OAL_TAP_MAPS_H

#include <linux/types.h>

/* Ethernet, two tags, IPv6 with 32 bytes of extension headers, TCP with all options: 154. */
#define TAP_FRAME_BYTES 160

/* A TCP packet, or one that may turn out to be one behind IPv6 extension headers: its headers as they are in the
 * frame, nothing after them. */
struct tap_record {
	__u64 monotonic_ns;
	__u32 wire_bytes; /* of the whole frame */
	__u16 bytes; /* of `frame` that hold */
	__u8 up; /* 1: from a station */
	__u8 unused;
	__u8 frame[TAP_FRAME_BYTES];
};

/* Of one processor; read through a mapping, so that no system call is needed. 32 bits, which every processor reads
 * whole; they wrap. A cache line each. */
struct tap_counts {
	__u32 frames; /* that went by, of any kind */
	__u32 overruns; /* TCP packets that found the ring full */
	__u32 unused[14];
};

/* Bytes of all frames of a station, of one processor. */
struct tap_bytes {
	__u64 down, up;
};

#endif
