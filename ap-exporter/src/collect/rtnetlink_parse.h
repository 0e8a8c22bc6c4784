/* rtnetlink's answers about queueing disciplines as rows, and about addresses (ARP, NDP). Pure: buffers in, rows out.
 */
#ifndef OAL_RTNETLINK_PARSE_H
#define OAL_RTNETLINK_PARSE_H

#include "oal_schema.h"

#include <stdbool.h>
#include <stdint.h>

enum { QDISC_KIND = 16 }; /* bytes of a discipline's name, its end included: the kernel's IFNAMSIZ */

/*
 * The bytes after nlmsghdr of an RTM_NEWQDISC. False: not one, or cut off. `row->device` and `row->kind` are the
 * caller's, from *ifindex and kind.
 */
bool qdisc_parse(const uint8_t *msg, uint32_t len, struct oal_queue_row *row, int *ifindex, char kind[QDISC_KIND]);

struct address_entry {
	int ifindex;
	uint8_t ip[16];
	uint8_t ip_len; /* 4 or 16 */
	uint64_t mac;   /* 0: it has none, or is not reachable */
};

/* The bytes after nlmsghdr of an RTM_NEWNEIGH. False: not one of IPv4 or IPv6, or cut off. */
bool address_entry_parse(const uint8_t *msg, uint32_t len, struct address_entry *e);

#endif
