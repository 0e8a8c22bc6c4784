/* choices.h: the networks that have a choice now, found by their prefix. A table of fixed size. */
#ifndef OAL_CHOICES_H
#define OAL_CHOICES_H

#include <stdbool.h>
#include <stdint.h>

#include "congestion/congestion.h"

struct choice {
	struct congestion_prefix prefix;
	uint64_t network; /* as rows name it */
	uint64_t until_us, set_us; /* monotonic: when it is forgotten; when the kernel was told last */
	uint16_t chain; /* of a bucket, or of the free places; place + 1 */
	uint8_t slot; /* of the policy that chose */
	uint8_t value; /* enum oal_congestion_control; none: a free place */
	bool explores;
};

struct choices {
	struct choice *places;
	uint16_t *buckets;
	unsigned max, used, touched, at;
	uint32_t bucket_mask;
	uint16_t unused;
	uint64_t multiplier; /* odd and random: nobody can choose networks that share a bucket */
	uint64_t refused; /* networks that found no room */
};

/* -ENOMEM */
int choices_new(struct choices *, unsigned max, uint64_t seed);
void choices_free(struct choices *);
/* NULL: it has none. */
struct choice *choices_find(const struct choices *, const struct congestion_prefix *);
/* A place for one that is not there, to be given a value; NULL without room, which is counted. */
struct choice *choices_add(struct choices *, const struct congestion_prefix *);
void choices_remove(struct choices *, struct choice *);
/* One place after the other, round and round; `touched` is not 0. Its value says if it is used. */
struct choice *choices_next(struct choices *);

#endif
