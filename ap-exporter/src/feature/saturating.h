/* saturating.h: integer arithmetic that stops at the bounds of 64 bits, as the contract wants of feature programs. */
#ifndef OAL_SATURATING_H
#define OAL_SATURATING_H

#include <stdint.h>

static inline int64_t sat_add(int64_t a, int64_t b)
{
	int64_t r;

	return __builtin_add_overflow(a, b, &r) ? (a < 0 ? INT64_MIN : INT64_MAX) : r;
}

static inline int64_t sat_sub(int64_t a, int64_t b)
{
	int64_t r;

	return __builtin_sub_overflow(a, b, &r) ? (a < 0 ? INT64_MIN : INT64_MAX) : r;
}

static inline int64_t sat_mul(int64_t a, int64_t b)
{
	int64_t r;

	return __builtin_mul_overflow(a, b, &r) ? ((a < 0) == (b < 0) ? INT64_MAX : INT64_MIN) : r;
}

static inline int64_t sat_divide(int64_t a, int64_t b)
{
	return b == -1 ? (a == INT64_MIN ? INT64_MAX : -a) : a / b;
}

#endif
