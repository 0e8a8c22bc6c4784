/* Part 5 of a step, of a law about stations: which of them have marks, renewed in time, and told in a row when a
 * station begins to have some and once it had none for hold_us. What a station waits is measured here too: it need not
 * be TCP that waits, so that neither flows nor their round trips say it all. */
#include "control/control_state.h"

enum { MARK_TAU_US = 40000 }; /* of the wait that marks at once: a turn or two of a few stations */

/* What is sent to stations is what their flows get, and more. */
void control_measure_stations(struct control *c, const struct control_input *in, uint64_t dt_us)
{
	unsigned i;

	c->rate_kbps = 0;
	c->shared_bytes = smooth(c->shared_bytes, in->backlog_bytes, dt_us, QUEUE_TAU_US);
	c->shared_fast_bytes = smooth(c->shared_fast_bytes, in->backlog_bytes, dt_us, MARK_TAU_US);
	for (i = 0; i < in->n_stations; i++) {
		const struct control_station *s = &in->stations[i];
		struct station_state *k = &c->stations[s->place];

		k->fast_bytes = smooth(k->fast_bytes, s->backlog_bytes, dt_us, MARK_TAU_US);
		if (k->rate_kbps < k->tx_kbps)
			k->rate_kbps = k->tx_kbps;
		if (k->recent_kbps < k->tx_kbps)
			k->recent_kbps = k->tx_kbps;
		c->rate_kbps += k->rate_kbps;
	}
}

static uint32_t longest(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* Of queues that the kernel shows. Of a station whose driver shows none of its own, the flows' round trips tell. */
static void measure_waits(struct control *c, const struct control_input *in, unsigned n)
{
	const uint32_t shared_us = time_of(c->shared_bytes, c->rate_kbps),
		       shared_fast_us = time_of(c->shared_fast_bytes, c->rate_kbps);
	unsigned i;

	for (i = 0; i < in->n_stations; i++) {
		struct station_state *k = &c->stations[in->stations[i].place];

		k->wait_us = longest(time_of(k->backlog_bytes, k->recent_kbps), shared_us);
		k->fast_us = longest(time_of(k->fast_bytes, k->recent_kbps), shared_fast_us);
	}
	for (i = 0; i < n; i++) {
		struct station_state *k = station_of(c, in, c->active[i].in->station);

		if (!k || k->own_queues)
			continue;
		k->wait_us = longest(k->wait_us, c->active[i].s->queue_us);
		k->fast_us = longest(k->fast_us, c->active[i].s->queue_us);
	}
}

static struct control_action *act(struct control *c, const struct station_state *k, uint8_t reason)
{
	struct control_action *a = &c->actions[c->n_actions++];

	*a = (struct control_action){
		.id = k->mac,
		.mac = k->mac,
		.place = k->place,
		.reason = reason,
		.marks = k->marks,
		.rate_kbps = k->rate_kbps,
		.queue_us = k->wait_us,
	};
	return a;
}

void control_release_station(struct control *c, struct station_state *k, uint8_t reason)
{
	struct control_action *a;
	const bool marked = k->marks;

	if (!marked && !k->told)
		return;
	k->marks = 0;
	a = act(c, k, reason);
	a->row_only = !marked;
	a->report = k->told;
	k->told = false;
}

void control_release_stations(struct control *c, uint8_t reason)
{
	unsigned i;

	for (i = 0; i < c->max_stations; i++)
		control_release_station(c, &c->stations[i], reason);
}

bool control_any_marked(const struct control *c)
{
	unsigned i;

	for (i = 0; i < c->max_stations; i++)
		if (c->stations[i].told)
			return true;
	return false;
}

static void mark(struct control *c, struct station_state *k, uint64_t t_us, uint8_t marks, uint8_t reason)
{
	k->marked_us = t_us;
	if (k->marks == marks && t_us - k->set_us < c->policy.ttl_us / RENEW)
		return;
	k->marks = marks;
	k->set_us = t_us;
	act(c, k, reason)->report = !k->told;
	k->told = true;
}

/* It waits no longer: that is carried out at once, and told when it has been so for a while. A wait swings about what
 * is wanted, and a row for each time would say no more. */
static void unmark(struct control *c, struct station_state *k, uint64_t t_us)
{
	if (k->told && t_us - k->marked_us >= c->policy.hold_us) {
		control_release_station(c, k, OAL_REWRITE_REASON_RELEASED);
	} else if (k->marks) {
		k->marks = 0;
		act(c, k, OAL_REWRITE_REASON_RELEASED);
	}
}

void control_marks(struct control *c, const struct control_input *in, unsigned n)
{
	const bool held = guard_holds(&c->guard, in->t_us);
	unsigned i, marked = 0;

	measure_waits(c, in, n);
	for (i = 0; i < in->n_stations; i++) {
		const struct control_station *s = &in->stations[i];
		struct station_state *k = &c->stations[s->place];
		uint8_t reason = OAL_REWRITE_REASON_NONE, marks = 0;

		if (!held && !s->bypassed && marked < c->policy.max_flows && k->rate_kbps &&
		    k->rate_kbps >= c->policy.min_flow_kbps)
			marks = c->law->marks(c, in, k, &reason);
		if (marks)
			mark(c, k, in->t_us, marks, reason);
		else if (held || s->bypassed)
			control_release_station(c, k,
						held ? OAL_REWRITE_REASON_GUARD : OAL_REWRITE_REASON_RELEASED);
		else
			unmark(c, k, in->t_us);
		marked += k->told;
	}
	c->stats.clamps = marked;
}
