#include "sender/connections.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "oal_policy.h"

enum {
	PARTS = 4, /* buckets of an octave of round trips: the middle of one is within 11 percent of what is in it */
	FIRST_OCTAVE = 6, /* below 64 µs is one bucket */
	OCTAVES = 17, /* to 8 s */
	ENDED = 4096, /* connections that ended last, by number; a power of two */
	BUCKETS = PARTS * OCTAVES,
	PERCENTILE = 95,
};

struct connection {
	struct sender_look last; /* cookie 0: a free place */
	uint64_t first_us, last_us, rtt_sum_us;
	uint32_t round, looks, rtt_min_us, rtt_max_us;
	uint16_t chain; /* of a bucket, or of the free places; place + 1 */
	uint16_t rtt[BUCKETS]; /* looks with such a round trip */
};

struct connections {
	struct connection *places;
	uint16_t *buckets;
	unsigned max, used, touched, bucket_mask;
	uint16_t unused;
	/* Of ended connections, each at a place of its own number. A look that was under way at the end comes after it.
	 */
	uint64_t ended[ENDED];
};

int connections_new(struct connections **out, unsigned max)
{
	struct connections *c = calloc(1, sizeof *c);
	unsigned buckets = 16;

	if (!c)
		return -ENOMEM;
	while (buckets < 2 * max)
		buckets *= 2;
	c->max = max;
	c->bucket_mask = buckets - 1;
	c->places = calloc(max, sizeof *c->places); /* resident as far as it was ever used */
	c->buckets = calloc(buckets, sizeof *c->buckets);
	if (!c->places || !c->buckets) {
		connections_free(c);
		return -ENOMEM;
	}
	*out = c;
	return 0;
}

void connections_free(struct connections *c)
{
	if (!c)
		return;
	free(c->places);
	free(c->buckets);
	free(c);
}

unsigned connections_count(const struct connections *c)
{
	return c->used;
}

/* --- places */

static uint16_t *bucket_of(const struct connections *c, uint64_t cookie)
{
	return &c->buckets[(cookie * UINT64_C(0x9e3779b97f4a7c15) >> 40) & c->bucket_mask];
}

static struct connection *find(const struct connections *c, uint64_t cookie)
{
	uint16_t i = *bucket_of(c, cookie);

	while (i && c->places[i - 1].last.cookie != cookie)
		i = c->places[i - 1].chain;
	return i ? &c->places[i - 1] : NULL;
}

static struct connection *add(struct connections *c, uint64_t cookie)
{
	uint16_t *bucket = bucket_of(c, cookie), i;

	if (c->unused) {
		i = c->unused;
		c->unused = c->places[i - 1].chain;
	} else if (c->touched < c->max) {
		i = (uint16_t)++c->touched;
	} else {
		return NULL;
	}
	c->places[i - 1] = (struct connection){ .chain = *bucket, .rtt_min_us = UINT32_MAX };
	*bucket = i;
	c->used++;
	return &c->places[i - 1];
}

static uint64_t *ended_place(struct connections *c, uint64_t cookie)
{
	return &c->ended[cookie % ENDED];
}

static void forget(struct connections *c, struct connection *of)
{
	const uint16_t i = (uint16_t)(of - c->places + 1);
	uint16_t *at = bucket_of(c, of->last.cookie);

	while (*at != i)
		at = &c->places[*at - 1].chain;
	*at = of->chain;
	of->last.cookie = 0;
	of->chain = c->unused;
	c->unused = i;
	c->used--;
}

/* --- round trips */

static unsigned rtt_bucket(uint32_t us)
{
	unsigned octave;

	if (us < 1u << FIRST_OCTAVE)
		return 0;
	octave = 31 - (unsigned)__builtin_clz(us);
	if (octave >= FIRST_OCTAVE + OCTAVES)
		return BUCKETS - 1;
	return (octave - FIRST_OCTAVE) * PARTS + (us >> (octave - 2) & (PARTS - 1));
}

/* The middle of a bucket. */
static uint32_t rtt_of(unsigned bucket)
{
	const unsigned shift = FIRST_OCTAVE + bucket / PARTS - 2;

	return ((PARTS + bucket % PARTS) << shift) + (1u << shift) / 2;
}

static void note_rtt(struct connection *c, uint32_t us)
{
	uint16_t *const n = &c->rtt[rtt_bucket(us)];

	if (!us)
		return;
	if (*n == UINT16_MAX) /* their shares stay */
		for (unsigned i = 0; i < BUCKETS; i++)
			c->rtt[i] /= 2;
	++*n;
	c->looks++;
	c->rtt_sum_us += us;
	c->rtt_min_us = us < c->rtt_min_us ? us : c->rtt_min_us;
	c->rtt_max_us = us > c->rtt_max_us ? us : c->rtt_max_us;
}

static uint32_t rtt_percentile(const struct connection *c)
{
	uint32_t sum = 0, so_far = 0, us;
	unsigned i;

	for (i = 0; i < BUCKETS; i++)
		sum += c->rtt[i];
	for (i = 0; i < BUCKETS - 1; i++) {
		so_far += c->rtt[i];
		if ((uint64_t)so_far * 100 >= (uint64_t)sum * PERCENTILE)
			break;
	}
	us = rtt_of(i);
	return us < c->rtt_min_us ? c->rtt_min_us : us > c->rtt_max_us ? c->rtt_max_us : us;
}

/* --- looks and ends */

/* In more than segs_out: who only receives sends ACKs. */
static bool changed(const struct sender_look *a, const struct sender_look *b)
{
	enum { FROM = offsetof(struct oal_sender_tcp_row, segs_out),
	       TO = FROM + sizeof a->row.segs_out };
	const uint8_t *x = (const uint8_t *)&a->row, *y = (const uint8_t *)&b->row;

	return memcmp(x, y, FROM) || memcmp(x + TO, y + TO, sizeof a->row - TO) ||
	       memcmp(a->control, b->control, sizeof a->control);
}

enum connections_news connections_look(struct connections *c, const struct sender_look *look, uint64_t now_us,
				       uint32_t round)
{
	struct connection *of = find(c, look->cookie);
	bool news;

	if (!of) {
		if (*ended_place(c, look->cookie) == look->cookie)
			return CONNECTIONS_SAME;
		of = add(c, look->cookie);
		if (!of)
			return CONNECTIONS_FULL;
		of->first_us = now_us;
		news = true;
	} else {
		news = changed(&of->last, look);
	}
	of->last = *look;
	of->round = round;
	of->last_us = now_us;
	note_rtt(of, look->row.rtt_us);
	return news ? CONNECTIONS_CHANGED : CONNECTIONS_SAME;
}

static uint64_t counted(uint64_t value)
{
	return value > INT64_MAX ? INT64_MAX : value;
}

/* enum oal_congestion_control; none: the contract has no such. */
static uint8_t number_of(const char control[SENDER_CONTROL])
{
	static const char *const names[] = OAL_CONGESTION_CONTROLS;
	uint8_t i;

	for (i = OAL_N_CONGESTION_CONTROLS - 1; i > OAL_CONGESTION_CONTROL_NONE && strcmp(names[i], control); i--)
		;
	return i;
}

/* `of`: what its looks amount to; NULL: there were none. */
static void sum_up(const struct sender_look *l, const struct connection *of, uint64_t now_us, uint8_t how,
		   struct sender_end *out)
{
	const struct oal_sender_tcp_row *r = &l->row;
	struct oal_sender_session_row *s = &out->row;

	out->flow = l->flow;
	memcpy(out->control, of ? of->last.control : l->control, sizeof out->control);
	*s = (struct oal_sender_session_row){
		.end_known = how,
		.rtt_us = r->rtt_us,
		.rttvar_us = r->rttvar_us,
		.min_rtt_us = r->min_rtt_us,
		.bytes_acked = r->bytes_acked,
		.segs_out = r->segs_out,
		.data_segs_out = r->data_segs_out,
		.retrans_pkts = r->retrans_pkts,
		.delivered_pkts = r->delivered_pkts,
		.delivered_ce_pkts = r->delivered_ce_pkts,
		.reorderings = l->reorderings,
		.reordering_pkts = l->reordering_pkts,
		.delivery_rate_bps = r->delivery_rate_bps,
		.app_limited = r->app_limited,
		.busy_us = counted(l->busy_us),
		.rwnd_limited_us = counted(l->rwnd_limited_us),
		.sndbuf_limited_us = counted(l->sndbuf_limited_us),
		.cwnd_bytes = r->cwnd_bytes,
		.mss_bytes = r->mss_bytes,
		.cc = number_of(out->control),
	};
	if (r->absent)
		s->absent |= OAL_SENDER_SESSION_ABSENT_DELIVERED_PKTS | OAL_SENDER_SESSION_ABSENT_DELIVERED_CE_PKTS;
	if (!l->has_reorderings)
		s->absent |= OAL_SENDER_SESSION_ABSENT_REORDERINGS;
	if (of)
		s->seen_us = now_us - of->first_us;
	else
		s->absent |= OAL_SENDER_SESSION_ABSENT_SEEN_US;
	if (of && of->looks) {
		s->rtt_looks = of->looks;
		s->rtt_min_us = of->rtt_min_us;
		s->rtt_mean_us = (uint32_t)(of->rtt_sum_us / of->looks);
		s->rtt_p95_us = rtt_percentile(of);
	} else {
		s->absent |= OAL_SENDER_SESSION_ABSENT_RTT_MIN_US | OAL_SENDER_SESSION_ABSENT_RTT_MEAN_US |
			     OAL_SENDER_SESSION_ABSENT_RTT_P95_US;
	}
}

bool connections_end(struct connections *c, const struct sender_look *look, uint64_t now_us, struct sender_end *out)
{
	struct connection *of = find(c, look->cookie);

	if (!of && !look->segs_in) /* nobody ever answered */
		return false;
	sum_up(look, of, now_us, SENDER_END_TOLD, out);
	*ended_place(c, look->cookie) = look->cookie;
	if (of)
		forget(c, of);
	return true;
}

bool connections_missed(struct connections *c, unsigned *at, uint32_t round, struct sender_end *out)
{
	for (; *at < c->touched; ++*at) {
		struct connection *of = &c->places[*at];

		if (!of->last.cookie || round - of->round < 2)
			continue;
		sum_up(&of->last, of, of->last_us, SENDER_END_MISSED, out);
		forget(c, of);
		++*at;
		return true;
	}
	return false;
}
