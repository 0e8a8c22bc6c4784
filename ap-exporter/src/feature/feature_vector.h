/* feature_vector.h: what a feature program says of one decision instant. */
#ifndef OAL_FEATURE_VECTOR_H
#define OAL_FEATURE_VECTOR_H

#include <stdint.h>

/* Valid during the call that hands it over. */
struct feature_vector {
	uint64_t instant_us; /* a multiple of the program's decision interval, realtime */
	uint64_t program_id; /* first 8 bytes of the program's hash */
	const int64_t *values; /* OAL_MISSING where there is none */
	unsigned n;
	uint32_t took_ns; /* time of the evaluation; 0 where nobody took it */
};

#endif
