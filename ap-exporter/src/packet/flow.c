#include "packet/flow.h"

#include "packet/flow_table.h"

#include <string.h>

/* A jump in sequence space larger than any window is not one: the flow was lost sight of and starts afresh. */
enum { MAX_JUMP = 1 << 30 };
/* Largest shift of RFC 7323. */
enum { MAX_SCALE = 14 };
/* A measurement that takes longer has lost its ACK. */
#define MAX_RTT_US UINT64_C(10000000)
/* Timestamps are used when data and ACK gave no sample for this long. */
#define RTT_STALE_US UINT64_C(1000000)

static inline int32_t after(uint32_t a, uint32_t b) /* how far a is behind b, around the wrap */
{
	return (int32_t)(a - b);
}

/* --- round trip */

static void rtt_sample(struct flow_direction *d, uint64_t us)
{
	if (us > MAX_RTT_US)
		return;
	if (!us)
		us = 1; /* 0 means that there is no sample */
	if (!d->srtt_us)
		d->srtt_us = (uint32_t)us;
	else /* RFC 6298's 1/8, rounded so that it does not stop short of the value */
		d->srtt_us = (uint32_t)((d->srtt_us * UINT64_C(7) + us + 4) / 8);
}

static void start_timing(struct flow_direction *d, uint32_t end, uint64_t t_us)
{
	if (d->timing && t_us - d->timed_us <= MAX_RTT_US)
		return;
	d->timing = true;
	d->timed_end = end;
	d->timed_us = t_us;
}

/* Timestamps: `d` is the direction of the sender of the packet, `other` that of the data which it acknowledges. The
 * first packet that carries a value is timed until the value comes back. */
static void timestamps(struct flow_direction *d, struct flow_direction *other, const struct packet *p)
{
	if (p->flags & PACKET_ACK && other->ts_timing && after(p->ts_ecr, other->ts_val) >= 0) {
		other->ts_timing = false;
		if (p->t_us - other->rtt_at_us > RTT_STALE_US)
			rtt_sample(other, p->t_us - other->ts_us);
	}
	if (!d->ts_timing || p->t_us - d->ts_us > MAX_RTT_US) {
		if (d->ts_us && after(p->ts_val, d->ts_val) <= 0) /* a value that was timed before */
			return;
		d->ts_timing = true;
		d->ts_val = p->ts_val;
		d->ts_us = p->t_us;
	}
}

/* --- holes */

static void remove_hole(struct flow_direction *d, unsigned i)
{
	memmove(&d->holes[i], &d->holes[i + 1], (--d->n_holes - i) * sizeof *d->holes);
}

static void add_hole(struct flow_table *t, struct flow_direction *d, unsigned at, uint32_t start, uint32_t end)
{
	if (d->n_holes == FLOW_HOLES) {
		/* The oldest is the lowest; what is acknowledged was dropped already, so it is the likeliest to be
		 * filled soon, but the ones above it will be needed for longer. */
		remove_hole(d, 0);
		t->holes_forgotten++;
		at -= at > 0;
	}
	memmove(&d->holes[at + 1], &d->holes[at], (d->n_holes++ - at) * sizeof *d->holes);
	d->holes[at] = (struct flow_range){start, end};
}

/* Takes [start, end) out of the holes; returns how much of it was in them. */
static uint32_t fill_holes(struct flow_table *t, struct flow_direction *d, uint32_t start, uint32_t end)
{
	uint32_t filled = 0;
	unsigned i = 0;

	while (i < d->n_holes) {
		struct flow_range *h = &d->holes[i];
		const uint32_t lo = after(start, h->start) > 0 ? start : h->start;
		const uint32_t hi = after(end, h->end) < 0 ? end : h->end;
		const uint32_t old_end = h->end;

		if (after(hi, lo) <= 0) {
			i++;
			continue;
		}
		filled += hi - lo;
		if (lo == h->start && hi == h->end) {
			remove_hole(d, i);
		} else if (lo == h->start) {
			h->start = hi;
			i++;
		} else {
			h->end = lo;
			i++;
			if (hi != old_end) {
				add_hole(t, d, i, hi, old_end);
				break; /* the segment ended inside this hole */
			}
		}
	}
	return filled;
}

static void drop_holes_before(struct flow_direction *d, uint32_t seq)
{
	while (d->n_holes && after(d->holes[0].end, seq) <= 0)
		remove_hole(d, 0);
	if (d->n_holes && after(d->holes[0].start, seq) < 0)
		d->holes[0].start = seq;
}

/* --- sequence space */

static void restart(struct flow_direction *d, uint32_t seq)
{
	d->known = true;
	d->syn = d->fin = d->timing = d->ts_timing = false;
	d->ts_us = 0;
	d->n_holes = 0;
	d->base = d->nxt = d->una = seq;
}

/* A new connection on the same addresses and ports: sequence space starts over, totals go on. */
static void reopen(struct flow *f)
{
	unsigned i;

	for (i = 0; i < 2; i++) {
		struct flow_direction *d = &f->dir[i];

		d->known = d->syn = d->fin = d->timing = d->ts_timing = d->has_window = false;
		d->ts_us = 0;
		d->n_holes = 0;
		f->scale_state[i] = FLOW_SCALE_UNKNOWN;
	}
	f->closing = false;
}

void flow_learn_syn(struct flow *f, const struct packet *p)
{
	const unsigned me = p->direction, peer = !me;
	const bool offers = p->syn_options & PACKET_SYN_WSCALE;

	f->mss_bytes[me] = p->syn_options & PACKET_SYN_MSS ? p->mss_bytes : 0;
	f->scale[me] = p->wscale > MAX_SCALE ? MAX_SCALE : p->wscale;
	if (!offers && p->options_unread) { /* nobody knows whether it offers */
		f->scale_state[me] = FLOW_SCALE_UNKNOWN;
		if (p->flags & PACKET_ACK)
			f->scale_state[peer] = FLOW_SCALE_UNKNOWN;
	} else if (!offers) { /* both must offer: then neither scales */
		f->scale[0] = f->scale[1] = 0;
		f->scale_state[0] = f->scale_state[1] = FLOW_SCALE_KNOWN;
	} else if (p->flags & PACKET_ACK) {
		f->scale_state[me] = FLOW_SCALE_KNOWN;
		if (f->scale_state[peer] == FLOW_SCALE_OFFERED)
			f->scale_state[peer] = FLOW_SCALE_KNOWN;
	} else {
		f->scale_state[me] = FLOW_SCALE_OFFERED;
	}
}

static void syn(struct flow *f, const struct packet *p)
{
	const unsigned me = p->direction, peer = !me;
	struct flow_direction *d = &f->dir[me];

	if (d->syn && d->isn == p->seq) { /* sent again: whose ACK it is that comes cannot be told (Karn) */
		d->timing = false;
	} else {
		/* A new connection; but a SYN-ACK, whose sender was not heard yet, belongs to that which its SYN
		 * opened. */
		if (d->known || (!(p->flags & PACKET_ACK) && f->dir[peer].known))
			reopen(f);
		restart(d, p->seq + 1);
		d->syn = true;
		d->isn = p->seq;
		start_timing(d, p->seq + 1, p->t_us);
	}
	flow_learn_syn(f, p);
}

static void payload(struct flow_table *t, struct flow_direction *d, const struct packet *p)
{
	const uint32_t start = p->seq + !!(p->flags & PACKET_SYN), len = p->payload_bytes, end = start + len;
	int32_t jump;

	if (!d->known || after(start, d->nxt) > MAX_JUMP || after(start, d->nxt) < -MAX_JUMP) {
		t->resyncs += d->known;
		restart(d, start);
	}
	jump = after(start, d->nxt);
	/* A keep-alive repeats the last byte when nothing is outstanding: no loss is behind it. */
	if (len == 1 && jump == -1 && d->una == d->nxt)
		return;
	d->sent_bytes += len;
	d->sent_pkts++;
	d->payload_us = p->t_us;
	if (jump >= 0) {
		if (jump > 0)
			add_hole(t, d, d->n_holes, d->nxt, start);
		d->nxt = end;
		start_timing(d, end, p->t_us);
	} else {
		/* End of the part that is not above nxt. */
		const uint32_t below = after(end, d->nxt) < 0 ? end : d->nxt;
		const uint32_t from = after(start, d->base) < 0 ? d->base : start;
		uint32_t again = after(below, from) > 0 ? below - from : 0;

		if (again)
			again -= fill_holes(t, d, from, below);
		if (after(start, d->base) < 0)
			d->base = start;
		if (again) {
			d->retrans_bytes += again;
			d->retrans_pkts++;
			if (d->timing && after(d->timed_end, start) > 0)
				d->timing = false;
		}
		if (after(end, d->nxt) > 0)
			d->nxt = end;
	}
	if (after(d->nxt, d->base) > MAX_JUMP / 2) /* stay within what 32 bits can compare */
		d->base = d->nxt - MAX_JUMP / 4;
}

/* `o`: the direction of the data that is acknowledged. */
static void acknowledge(struct flow_table *t, struct flow *f, struct flow_direction *o, const struct packet *p)
{
	const bool is_syn = p->flags & PACKET_SYN;
	const uint32_t ack = p->ack;
	const uint8_t scale = is_syn ? 0 : f->scale[p->direction];
	int32_t advance;

	if (!o->known)
		restart(o, ack);
	advance = after(ack, o->una);
	if (advance > MAX_JUMP || advance < -MAX_JUMP) {
		t->resyncs++;
		restart(o, ack);
		advance = 0;
	}
	if (advance < 0)
		return; /* older than what is known: its window is too */
	if (o->timing && after(ack, o->timed_end) >= 0) {
		o->timing = false;
		rtt_sample(o, p->t_us - o->timed_us);
		o->rtt_at_us = p->t_us;
	}
	if (advance > 0) {
		int32_t beyond = after(ack, o->nxt);

		if (beyond == 1 && o->fin) { /* the FIN's number, no payload */
			advance--;
			beyond = 0;
			o->una = o->nxt;
		} else {
			if (beyond > 0) /* payload that the capture missed */
				o->nxt = ack;
			o->una = ack;
		}
		o->delivered_bytes += (uint32_t)advance;
		drop_holes_before(o, o->una);
	} else if (!p->payload_bytes && !(p->flags & (PACKET_SYN | PACKET_FIN | PACKET_RST)) && o->nxt != o->una &&
	           o->has_window && o->window_raw == p->window_raw) {
		o->dup_acks++;
	}
	o->has_window = true;
	o->window_raw = p->window_raw;
	o->rwnd_bytes = (uint32_t)p->window_raw << scale;
}

void flow_packet(struct flow_table *t, uint16_t i, const struct packet *p)
{
	struct flow *f = &t->flows[i];
	struct flow_direction *d = &f->dir[p->direction], *other = &f->dir[!p->direction];

	f->last_us = p->t_us;
	if (t->newest != i)
		flow_move_newest(t, i);
	if (p->flags & PACKET_SYN)
		syn(f, p);
	if (p->payload_bytes && !(p->flags & PACKET_RST))
		payload(t, d, p);
	if (p->flags & PACKET_FIN) {
		if (!d->known)
			restart(d, p->seq + p->payload_bytes);
		if (p->seq + p->payload_bytes == d->nxt)
			d->fin = true;
	}
	if (p->flags & PACKET_ACK && !(p->flags & PACKET_RST))
		acknowledge(t, f, other, p);
	if (p->has_ts)
		timestamps(d, other, p);
	if (!f->closing && (p->flags & PACKET_RST || (d->fin && other->fin))) {
		f->closing = true;
		f->closing_us = p->t_us;
	}
}

uint32_t flow_delivery_kbps(struct flow *f, unsigned direction, uint32_t interval_us)
{
	struct flow_direction *d = &f->dir[direction];
	const uint32_t rtt_us = f->dir[0].srtt_us + f->dir[1].srtt_us;
	unsigned back = rtt_us <= interval_us ? 1 : (rtt_us + interval_us - 1) / interval_us;
	const uint32_t now = (uint32_t)d->delivered_bytes;
	uint64_t kbps = 0;

	/* Only as far back as there is history: a young flow's rate is over its age. */
	if (back > d->history_n)
		back = d->history_n;
	if (back) {
		const uint32_t then = d->history[(d->history_at + FLOW_HISTORY - back) % FLOW_HISTORY];

		kbps = (uint64_t)(now - then) * 8000 / ((uint64_t)back * interval_us);
	}
	d->history[d->history_at] = now;
	d->history_at = (uint8_t)((d->history_at + 1) % FLOW_HISTORY);
	if (d->history_n < FLOW_HISTORY)
		d->history_n++;
	return kbps > UINT32_MAX ? UINT32_MAX : (uint32_t)kbps;
}
