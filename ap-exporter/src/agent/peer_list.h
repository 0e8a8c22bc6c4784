/* peer_list.h: what the push service says of the other APs on a channel, read and checked. Bytes from outside: nothing
 * is believed. */
#ifndef OAL_PEER_LIST_H
#define OAL_PEER_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "oal_schema.h"

enum {
	PEER_LIST_MAX = 32, /* rows: the busiest APs of a channel come first */
	PEER_LIST_BYTES = 8192, /* of an answer, at most: 256 a row */
};

struct peer_list {
	unsigned n;
	struct oal_neighbour_ap_row rows[PEER_LIST_MAX]; /* the busiest first; without a tick */
};

/* Reads the answer to a question about `site` and `frequency_mhz`. 0, or -EINVAL with the reason in `err` and the list
 * empty. `own_id` is left out. Members that are not known are passed over: a later service may say more. */
int peer_list_read(struct peer_list *, const void *json, size_t len, const char *own_id, const char *site,
		   uint16_t frequency_mhz, char *err, size_t err_size);
/* How rows name an ap_id: 64-bit FNV-1a without the highest bit. */
uint64_t peer_id(const char *ap_id);

#endif
