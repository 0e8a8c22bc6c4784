/* Part 1 of a step: rates, round trips, waits and the wait that is wanted. */
#include "control/control_state.h"

enum {
	RATE_TAU_US = 1000000, /* of rates that are shared out: they should not follow every burst */
	LINK_TAU_US = 100000, /* of PHY rates: rate control probes with single frames; what a link lost shows at once */
	LEAST_OWED = FOLLOW_ONE / 16, /* a fall by more is forgotten */
	AIR_TAU_US = 500000, /* of shares of the air and of stations' costs */
	BASE_US = 20000000, /* a smallest round trip is remembered for one to two of these: paths change */
	BINDS_PERMILLE = 800, /* a window binds if so much of it is under way: senders rarely fill all of it */
	EXCEEDS_PERMILLE = 1300, /* more than the window is under way: the clamp has yet to take effect */
	STARVED_DIVISOR = 8, /* a station starves if less than this part of a turn waits for it */
	SENDS_DIVISOR = 8, /* a station sends if more than this part of what it gets: ACKs are 2 to 7 % of it */
	MIN_SHARE_PERMILLE = 100, /* of the air: below, the driver's airtime figure says little */
};

static uint32_t smallest_of(const struct smallest *s)
{
	return !s->before || (s->now && s->now < s->before) ? s->now : s->before;
}

static void smallest_add(struct smallest *s, uint32_t value, uint64_t t_us)
{
	if (!value)
		return;
	if (t_us - s->since_us >= BASE_US) {
		s->before = s->now;
		s->now = 0;
		s->since_us = t_us;
	}
	if (!s->now || value < s->now)
		s->now = value;
}

/* By which factor, in FOLLOW_ONE, has what the link can carry changed since the step before? A change beyond half or
 * twice is taken in more than one step. */
static uint32_t follow_link(struct station_state *k, uint32_t link_kbps, uint32_t permille, uint64_t dt_us)
{
	const uint32_t before = k->link_kbps;
	uint32_t now;
	int64_t change;

	if (!permille || !before || !link_kbps) {
		k->link_kbps = permille ? (link_kbps ? link_kbps : before) : 0;
		return FOLLOW_ONE;
	}
	now = smooth(before, link_kbps, dt_us, LINK_TAU_US);
	if (now / 2 > before)
		now = before * 2;
	else if (now < before - before / 2)
		now = before - before / 2;
	k->link_kbps = now;
	change = ((int64_t)now - before) * FOLLOW_ONE / before;
	return (uint32_t)(FOLLOW_ONE + change * permille / UNIT);
}

static uint32_t followed(uint64_t value, uint32_t follow)
{
	return at_most((value * follow + FOLLOW_ONE / 2) / FOLLOW_ONE, UINT32_MAX);
}

/* A window follows its link before its queue tells. What was measured of the flow at the old rate is carried over to
 * the new one: its rate, and what is under way as far as the window moved. */
static void follow_flow(struct flow_state *s, uint32_t follow, uint32_t floor_bytes)
{
	uint32_t window = follow;

	s->rate_kbps = followed(s->rate_kbps, follow);
	s->recent_kbps = followed(s->recent_kbps, follow);
	if (follow > FOLLOW_ONE) {
		s->owed = window = followed(s->owed, follow);
		if (window <= FOLLOW_ONE)
			return;
		s->owed = FOLLOW_ONE;
	}
	s->exact_bytes = followed(s->exact_bytes, window);
	if (s->exact_bytes < floor_bytes) {
		s->owed = (uint32_t)(s->owed * s->exact_bytes / floor_bytes);
		if (s->owed < LEAST_OWED)
			s->owed = LEAST_OWED;
		s->exact_bytes = floor_bytes;
		return;
	}
	s->unacked_bytes = followed(s->unacked_bytes, window);
}

static void measure_stations(struct control *c, const struct control_input *in, uint64_t dt_us)
{
	const uint32_t permille = c->law->follows_links && !c->shadow ? c->policy.link_follow_permille : 0;
	uint32_t share = 0;
	unsigned i;

	c->tx_kbps = 0;
	for (i = 0; i < in->n_stations; i++) {
		const struct control_station *s = &in->stations[i];
		struct station_state *k = &c->stations[s->place];

		if (k->mac != s->mac) {
			control_release_station(c, k, OAL_REWRITE_REASON_RELEASED);
			*k = (struct station_state){
				.mac = s->mac, .airtime_us = s->airtime_us, .rx_bytes = s->rx_bytes,
				.tx_bytes = s->tx_bytes, .place = s->place,
			};
		} else if (dt_us) {
			/* A counter that went back is that of a station that came back. */
			if (s->airtime_us >= k->airtime_us)
				k->airtime = smooth(k->airtime,
						    (s->airtime_us - k->airtime_us) * UNIT * AIR_FRACTION / dt_us,
						    dt_us, AIR_TAU_US);
			if (s->rx_bytes >= k->rx_bytes)
				k->sent_kbps = smooth(k->sent_kbps, (s->rx_bytes - k->rx_bytes) * 8000 / dt_us, dt_us,
						      QUEUE_TAU_US);
			if (s->tx_bytes >= k->tx_bytes)
				k->tx_kbps = smooth(k->tx_kbps, (s->tx_bytes - k->tx_bytes) * 8000 / dt_us, dt_us,
						    QUEUE_TAU_US);
			k->airtime_us = s->airtime_us;
			k->rx_bytes = s->rx_bytes;
			k->tx_bytes = s->tx_bytes;
		}
		k->step = c->step;
		k->backlog_bytes = smooth(k->backlog_bytes, s->backlog_bytes, dt_us, QUEUE_TAU_US);
		k->own_queues = s->own_queues;
		k->follow = follow_link(k, s->link_kbps, permille, dt_us);
		k->rate_kbps = k->recent_kbps = 0;
		share += k->airtime;
		c->tx_kbps += k->tx_kbps;
	}
	c->share_permille = share / AIR_FRACTION;
}

static struct flow_state *measure_flow(struct control *c, const struct control_flow *f, const struct station_state *k,
				       uint64_t t_us, uint64_t dt_us)
{
	struct flow_state *s = &c->flows[f->place];

	if (s->id != f->id || f->delivered_bytes < s->delivered_bytes) {
		*s = (struct flow_state){ .id = f->id, .place = f->place, .first_us = t_us };
	} else if (dt_us) {
		const uint64_t age_us = t_us - s->first_us;
		const uint64_t kbps = (f->delivered_bytes - s->delivered_bytes) * 8000 / dt_us;
		const uint32_t queue_tau_us = at_most(age_us, QUEUE_TAU_US);

		if (!s->window_bytes)
			s->owed = FOLLOW_ONE;
		else if (k && k->follow != FOLLOW_ONE)
			follow_flow(s, k->follow, c->policy.floor_mss * f->mss_bytes);
		s->rate_kbps = smooth(s->rate_kbps, kbps, dt_us, at_most(age_us, RATE_TAU_US));
		s->recent_kbps = smooth(s->recent_kbps, kbps, dt_us, queue_tau_us);
		s->unacked_bytes = smooth(s->unacked_bytes, f->unacked_bytes, dt_us, queue_tau_us);
	}
	s->delivered_bytes = f->delivered_bytes;
	s->step = c->step;
	s->mac = k ? k->mac : 0;
	return s;
}

static unsigned measure_flows(struct control *c, const struct control_input *in, uint64_t dt_us)
{
	unsigned n = 0, i;

	c->rate_kbps = 0;
	for (i = 0; i < in->n_flows && n < FAIR_MAX; i++) {
		struct station_state *k = station_of(c, in, in->flows[i].station);
		struct active *a = &c->active[n];

		a->in = &in->flows[i];
		a->s = measure_flow(c, a->in, k, in->t_us, dt_us);
		if (k) {
			k->rate_kbps += a->s->rate_kbps;
			k->recent_kbps += a->s->recent_kbps;
		}
		smallest_add(&c->base_down, a->in->rtt_down_us, in->t_us);
		c->rate_kbps += a->s->rate_kbps;
		if (a->s->rate_kbps || a->s->window_bytes)
			n++;
	}
	return n;
}

/* Time that what stands in a station's own queues takes. To a law of uploads these are ACKs and what else goes down. */
static uint32_t own_queue_us(const struct control *c, const struct station_state *k)
{
	return k ? time_of(k->backlog_bytes, c->law->uplink ? k->tx_kbps : k->recent_kbps) : 0;
}

/* What goes down, of all stations. */
static uint32_t down_kbps(const struct control *c)
{
	return c->law->uplink ? c->tx_kbps : c->rate_kbps;
}

/* Round trip between access point and client: by what is under way (Little's law). What is under way of an upload was
 * not seen yet: there its timestamps tell, from an ACK that goes down to the data that answers it. */
static uint32_t client_rtt_us(const struct control *c, const struct control_flow *f, const struct flow_state *s)
{
	return c->law->uplink ? f->rtt_down_us : time_of(s->unacked_bytes, s->recent_kbps);
}

static bool sends(const struct station_state *k)
{
	return k && k->sent_kbps > k->recent_kbps / SENDS_DIVISOR;
}

/* Time that a flow's data, or an upload's ACKs, wait at the AP and on the air beyond the least that it ever took. A
 * backlog that the kernel shows is the least of it: a driver may hide more, and round trips tell. Not those of a
 * download to a station that sends: its ACKs wait behind its own data, and windows made smaller for that would leave
 * the air to uploads. */
static uint32_t queue_of(const struct control *c, const struct control_input *in, const struct active *a,
			 const struct station_state *k)
{
	const uint32_t rtt_us = client_rtt_us(c, a->in, a->s), base_us = smallest_of(&c->base_down);
	const uint32_t own_us = own_queue_us(c, k), shared_us = time_of(in->backlog_bytes, down_kbps(c));
	const uint32_t seen_us = own_us > shared_us ? own_us : shared_us;
	const uint32_t by_rtt_us = rtt_us > base_us && (c->law->uplink || !sends(k)) ? rtt_us - base_us : 0;

	return seen_us > by_rtt_us ? seen_us : by_rtt_us;
}

/* Is so much of its window under way? */
static bool fills(const struct active *a, uint32_t permille)
{
	return a->s->window_bytes && (uint64_t)a->flight_bytes * UNIT >= (uint64_t)a->s->window_bytes * permille;
}

static void measure_queues(struct control *c, const struct control_input *in, unsigned n, uint64_t dt_us)
{
	uint64_t weighted = 0, weight = 0, backlog = in->backlog_bytes;
	unsigned i;

	for (i = 0; i < n; i++) {
		struct active *a = &c->active[i];
		const struct station_state *k = station_of(c, in, a->in->station);

		a->base_us = smallest_of(&c->base_down) + a->in->rtt_up_us;
		a->eligible = a->in->can_clamp && a->base_us && a->s->rate_kbps >= c->policy.min_flow_kbps &&
			      a->in->delivered_bytes >= c->policy.min_flow_bytes;
		/* What the AP does not see of it is on the other side: of a download between server and AP. */
		a->flight_bytes = a->s->unacked_bytes + bytes_of(a->s->recent_kbps, c->law->uplink ? a->in->rtt_down_us
												   : a->in->rtt_up_us);
		a->binds = fills(a, BINDS_PERMILLE);
		a->exceeds = fills(a, EXCEEDS_PERMILLE);
		a->starves = a->binds && a->s->rate_kbps && k && k->own_queues && !c->law->uplink &&
			     own_queue_us(c, k) < c->turn_us / STARVED_DIVISOR;
		a->s->queue_us = a->s->rate_kbps ? queue_of(c, in, a, k) : 0;
		weighted += (uint64_t)a->s->queue_us * a->s->rate_kbps;
		weight += a->s->rate_kbps;
	}
	c->queue_us = weight ? (uint32_t)(weighted / weight) : 0;
	for (i = 0; i < in->n_stations; i++)
		backlog += in->stations[i].backlog_bytes;
	c->backlog_us = smooth(c->backlog_us, time_of(backlog, down_kbps(c)), dt_us, QUEUE_TAU_US);
}

bool control_any_binds(const struct control *c, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++)
		if (c->active[i].binds)
			return true;
	return false;
}

/* The wait that windows leave: enough for each station to have data when its turn comes. A turn is the time in which
 * every active station is served once, in the share of the air that the AP gets; where the driver does not say how much
 * that is, all of it. */
static void set_target(struct control *c, const struct control_input *in)
{
	const uint32_t least = c->share_permille < MIN_SHARE_PERMILLE ? MIN_SHARE_PERMILLE : c->share_permille;
	const uint32_t share = c->share_permille ? at_most(least, UNIT) : UNIT;
	uint64_t stations = 0, us;
	unsigned i;

	for (i = 0; i < in->n_stations; i++)
		stations += c->stations[in->stations[i].place].rate_kbps >= c->policy.min_flow_kbps;
	c->turn_us = at_most(stations * c->policy.txop_us * UNIT / share, MAX_RTT_US);
	us = (uint64_t)c->turn_us * c->policy.target_txop_permille / UNIT;
	c->target_us = us > c->policy.target_us ? at_most(us, MAX_RTT_US) : c->policy.target_us;
}

unsigned control_measure(struct control *c, const struct control_input *in, uint64_t dt_us)
{
	unsigned n;

	measure_stations(c, in, dt_us);
	n = measure_flows(c, in, dt_us);
	if (c->law->marks)
		control_measure_stations(c, in, dt_us);
	set_target(c, in);
	measure_queues(c, in, n, dt_us);
	return n;
}
