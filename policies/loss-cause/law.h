/* law.h: which of two centres a sender's congestion window and round trip are nearer to, and so whether a loss is
 * congestion: the C of schema/src/oal_schema/centroids.py. Integers alone, no division, no loop over data: a kernel
 * runs it, by struct_ops or built in (ca.h). */
#ifndef OAL_LOSS_CAUSE_LAW_H
#define OAL_LOSS_CAUSE_LAW_H

enum { LAW_FRACTION = 16, LAW_MAX_INPUTS = 4, LAW_AIR = 0, LAW_QUEUE = 1 };
/* As Centroids has them: so that no product leaves 64 bits. */
enum { LAW_MAX_SCALE = 1 << 22, LAW_MAX_SHIFT = 1 << 22, LAW_MAX_CENTRE = 1 << 28 };

/* What `compiled` makes: limits as Centroids checks them, so that no product leaves 64 bits. */
struct law_centroids {
	long long shift[LAW_MAX_INPUTS], scale[LAW_MAX_INPUTS];
	long long centre[2][LAW_MAX_INPUTS]; /* LAW_AIR, LAW_QUEUE */
	unsigned int inputs;
	int usable; /* 0: each loss is congestion */
};

static inline int law_within(long long x, long long most)
{
	return x >= -most && x <= most;
}

/* Are these numbers that law_nearest() may be asked with? */
static inline int law_allowed(const struct law_centroids *c)
{
	unsigned int i;

	if (!c->inputs || c->inputs > LAW_MAX_INPUTS)
		return 0;
	for (i = 0; i < LAW_MAX_INPUTS && i < c->inputs; i++)
		if (c->scale[i] < 1 || c->scale[i] > LAW_MAX_SCALE || !law_within(c->shift[i], LAW_MAX_SHIFT) ||
		    !law_within(c->centre[LAW_AIR][i], LAW_MAX_CENTRE) ||
		    !law_within(c->centre[LAW_QUEUE][i], LAW_MAX_CENTRE))
			return 0;
	return 1;
}

/* log2(1 + x) of 0 <= x < 2^63, 16 bits of fraction, rounded down. */
static inline long long law_log2(long long x)
{
	unsigned long long v = (unsigned long long)x + 1, mantissa;
	long long out;
	int whole = 0, i;

	for (i = 32; i; i >>= 1) /* halves, so that a kernel's verifier has six steps to look at */
		if (v >> (whole + i))
			whole += i;
	mantissa = whole <= 31 ? v << (31 - whole) : v >> (whole - 31);
	out = whole;
	for (i = 0; i < LAW_FRACTION; i++) {
		unsigned long long over;

		mantissa = mantissa * mantissa >> 31;
		over = mantissa >> 32;
		mantissa >>= over;
		out = out << 1 | (long long)over;
	}
	return out;
}

/* LAW_AIR or LAW_QUEUE. What is not known is negative, and then congestion; so is what is equally near. */
static inline int law_nearest(const struct law_centroids *c, const long long *x)
{
	long long distance[2] = { 0, 0 };
	unsigned int i;
	int k;

	if (!c->usable || c->inputs > LAW_MAX_INPUTS)
		return LAW_QUEUE;
	for (i = 0; i < LAW_MAX_INPUTS; i++) {
		long long z;

		if (i >= c->inputs)
			break;
		if (x[i] < 0)
			return LAW_QUEUE;
		z = (law_log2(x[i]) - c->shift[i]) * c->scale[i] >> LAW_FRACTION;
		for (k = 0; k < 2; k++)
			distance[k] += (z - c->centre[k][i]) * (z - c->centre[k][i]);
	}
	return distance[LAW_AIR] < distance[LAW_QUEUE] ? LAW_AIR : LAW_QUEUE;
}

#endif
