/* Classic BPF program that lets TCP pass: IPv4 and IPv6, with up to two VLAN tags in the frame. */
#ifndef OAL_PACKET_FILTER_H
#define OAL_PACKET_FILTER_H

#include <stdint.h>

struct sock_filter;

#define PACKET_FILTER_MAX 48

/* Writes the program, of at most PACKET_FILTER_MAX instructions, which keeps `snaplen` bytes of a frame, and returns
 * its length. */
unsigned packet_filter_build(struct sock_filter *program, uint32_t snaplen);

#endif
