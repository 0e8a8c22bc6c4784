// SPDX-License-Identifier: GPL-2.0
/*
 * dcf.c - who transmits when: EDCA contention slot by slot among all radios of a channel (802.11-2020, 10.23.2). Each
 * access category with something to send counts down AIFS and a random backoff while the channel is idle. Those whose
 * countdowns end in the same slot collide. Time is the channel's own: an event that the host ran late does not push
 * later ones.
 */

static u64 medium_aifs_ns(struct medium_ac *c)
{
	return MEDIUM_SIFS_NS + (u64)c->aifsn * MEDIUM_SLOT_NS;
}

static void medium_draw(struct medium_ac *c)
{
	c->backoff = medium_random(c->cw + 1);
}

static void medium_foreign_next(struct medium *m, u64 after)
{
	u64 mean_ns = (u64)m->foreign_burst_us * NSEC_PER_USEC;
	u64 gap_ns = div_u64(mean_ns * (1000 - m->foreign_permille), max(m->foreign_permille, 1u));

	m->foreign_len_ns = div_u64(mean_ns * (500 + medium_random(1001)), 1000);
	m->foreign_at_ns = after + div_u64(gap_ns * (500 + medium_random(1001)), 1000);
}

static void medium_busy(struct medium *m, u64 at, u64 ns)
{
	m->state = MEDIUM_BUSY;
	m->busy_since_ns = at;
	m->due_ns = at + ns;
	hrtimer_start(&m->timer, ns_to_ktime(m->due_ns), HRTIMER_MODE_ABS_SOFT);
}

/* Whoever did not finish counting down goes on later from where it stood. */
static void medium_freeze(struct medium *m, u64 at)
{
	struct medium_ac *c;

	list_for_each_entry(c, &m->contend, node)
		if (c->ready_ns > at)
			c->backoff = min_t(u64, c->backoff, div_u64(c->ready_ns - at + MEDIUM_SLOT_NS - 1,
					MEDIUM_SLOT_NS));
		else
			c->backoff = 0;
}

/* The air that another BSS takes: it does not contend, it is simply there, foreign_permille of the time. */
static void medium_foreign(struct medium *m, u64 at)
{
	u64 ns = m->foreign_len_ns;

	m->foreign_ns += ns;
	m->ext_ns += div_u64(ns * m->foreign_ext_permille, 1000);
	medium_freeze(m, at);
	/* from when it was due, not from when it got the air: a busy channel does not thin it out; at most 50 ms are
	 * owed */
	medium_foreign_next(m, max(m->foreign_at_ns + ns, at < 50 * NSEC_PER_MSEC ? 0 : at - 50 * NSEC_PER_MSEC));
	medium_busy(m, at, ns);
}

/* Set the timer to the first event of this idle period. */
static void medium_arm(struct medium *m)
{
	struct medium_ac *c;
	u64 first = U64_MAX;

	list_for_each_entry(c, &m->contend, node)
		first = min(first, c->ready_ns);
	if (first == U64_MAX) {
		m->state = MEDIUM_IDLE;
		return;
	}
	if (m->foreign_permille)
		first = min(first, max(m->foreign_at_ns, m->idle_since_ns));
	m->state = MEDIUM_BACKOFF;
	m->due_ns = first;
	hrtimer_start(&m->timer, ns_to_ktime(first), HRTIMER_MODE_ABS_SOFT);
}

static void medium_idle(struct medium *m, u64 at)
{
	struct medium_ac *c;

	m->idle_since_ns = at;
	list_for_each_entry(c, &m->contend, node)
		c->ready_ns = at + medium_aifs_ns(c) + (u64)c->backoff * MEDIUM_SLOT_NS;
	medium_arm(m);
}

/* Foreign bursts that came and went while nobody here wanted the channel; one that is still on holds it. */
static void medium_foreign_catch_up(struct medium *m, u64 now)
{
	if (!m->foreign_permille || m->state != MEDIUM_IDLE)
		return;
	if (m->foreign_at_ns + NSEC_PER_SEC < now && m->foreign_at_ns + 60ull * NSEC_PER_SEC < now)
		medium_foreign_next(m, now);	/* first use, or asleep for a minute */
	while (m->foreign_at_ns <= now) {
		u64 end = m->foreign_at_ns + m->foreign_len_ns;

		if (end > now) {
			medium_foreign(m, m->foreign_at_ns);
			return;
		}
		m->busy_ns += m->foreign_len_ns;
		m->foreign_ns += m->foreign_len_ns;
		m->ext_ns += div_u64(m->foreign_len_ns * m->foreign_ext_permille, 1000);
		medium_foreign_next(m, end);
	}
}

static struct medium *medium_of(struct ieee80211_channel *channel)
{
	int i;

	for (i = 0; i < MEDIUM_CHANNELS; i++) {
		if (!media[i].freq_mhz)
			media[i].freq_mhz = channel->center_freq;
		if (media[i].freq_mhz == channel->center_freq)
			return &media[i];
	}
	return NULL;
}

/* There is something to send in this access category. */
static void medium_kick(struct medium_ac *c)
{
	struct medium *m = c->data->channel ? medium_of(c->data->channel) : NULL;
	u64 now = ktime_get_ns();

	if (!m)
		return;
	spin_lock_bh(&m->lock);
	if (c->active || c->on_air)
		goto out;	/* looked at again when its transmission ends */
	c->m = m;
	c->active = true;
	medium_draw(c);
	list_add_tail(&c->node, &m->contend);
	medium_foreign_catch_up(m, now);
	if (m->state == MEDIUM_IDLE) {
		m->idle_since_ns = now;
		c->ready_ns = now + medium_aifs_ns(c) + (u64)c->backoff * MEDIUM_SLOT_NS;
		medium_arm(m);
	} else if (m->state == MEDIUM_BACKOFF) {
		c->ready_ns = max(now, m->idle_since_ns) + medium_aifs_ns(c) + (u64)c->backoff * MEDIUM_SLOT_NS;
		if (c->ready_ns < m->due_ns)
			medium_arm(m);
	} else {
		c->ready_ns = U64_MAX;	/* set when the channel falls idle */
	}
out:
	spin_unlock_bh(&m->lock);
}

/* A beacon: sent at its time by the radio, here it only takes its share of the air. */
static void medium_beacon(struct mac80211_hwsim_data *data, unsigned int bytes)
{
	struct medium *m = data->channel ? medium_of(data->channel) : NULL;
	u64 ns = medium_legacy_ns(MEDIUM_BASIC_KBPS, bytes + MEDIUM_FCS_BYTES) + MEDIUM_SIFS_NS + 2 * MEDIUM_SLOT_NS;
	u64 now = ktime_get_ns();

	if (!medium_on || !m)
		return;
	data->medium.tx_ns += ns;
	spin_lock_bh(&m->lock);
	m->beacon_ns += ns;
	medium_foreign_catch_up(m, now);
	if (m->state == MEDIUM_BUSY || m->state == MEDIUM_BUILD) {
		m->extra_ns += ns;
	} else {
		medium_freeze(m, now);
		medium_busy(m, now, ns);
	}
	spin_unlock_bh(&m->lock);
}

static void medium_widen(struct medium_ac *c)
{
	c->cw = min_t(u16, 2 * c->cw + 1, c->cw_max);
}

/* Of two categories of one radio that won the same slot the lower one yields, as after a collision (10.23.2.2). */
static bool medium_yields(struct medium_ac *c, struct list_head *winners)
{
	struct medium_ac *other;

	list_for_each_entry(other, winners, node)
		if (other->data == c->data && other->ac < c->ac)
			return true;
	return false;
}

/* The countdown of at least one contender ends now. */
static void medium_begin(struct medium *m, u64 at)
{
	struct medium_ac *c, *next;
	LIST_HEAD(winners);
	int transmitters = 0;
	u64 ns = 0;

	list_for_each_entry_safe(c, next, &m->contend, node)
		if (c->ready_ns < at + MEDIUM_SLOT_NS)
			list_move_tail(&c->node, &winners);
	list_for_each_entry_safe(c, next, &winners, node) {
		if (medium_yields(c, &winners)) {
			m->internal_collisions++;
			medium_widen(c);
			medium_draw(c);
			c->ready_ns = at + medium_aifs_ns(c) + (u64)c->backoff * MEDIUM_SLOT_NS;
			list_move_tail(&c->node, &m->contend);
		} else {
			c->active = false;	/* from here on a kick counts again */
			c->on_air = true;
		}
	}
	m->state = MEDIUM_BUILD;
	spin_unlock(&m->lock);
	list_for_each_entry_safe(c, next, &winners, node)
		if (!medium_build(c)) {
			list_del_init(&c->node);
			c->on_air = false;
			if (!skb_queue_empty(&c->fifo))
				medium_kick(c);
		} else {
			transmitters++;
		}
	spin_lock(&m->lock);
	if (!transmitters) {	/* no air was used: the countdown of the others just goes on */
		list_for_each_entry(c, &m->contend, node)
			if (c->ready_ns == U64_MAX)
				c->ready_ns = at + medium_aifs_ns(c) + (u64)c->backoff * MEDIUM_SLOT_NS;
		if (m->extra_ns) {
			ns = m->extra_ns;
			m->extra_ns = 0;
			medium_freeze(m, at);
			medium_busy(m, at, ns);
			return;
		}
		medium_arm(m);
		return;
	}
	medium_freeze(m, at);
	list_for_each_entry(c, &winners, node) {
		u64 one = c->exchange_ns;

		c->collided = transmitters > 1;
		if (c->collided)	/* heard as noise for as long as it lasts, then no answer comes */
			one = (c->rts ? medium_legacy_ns(MEDIUM_CONTROL_KBPS, MEDIUM_RTS_BYTES) : c->ppdu_ns) +
			      medium_response_ns(false);
		ns = max(ns, one);
	}
	m->txops += transmitters;
	if (transmitters > 1) {
		m->collisions++;
		m->collision_ns += ns;
	} else {
		m->success_ns += ns;
	}
	list_splice_tail(&winners, &m->on_air);
	medium_busy(m, at, ns);
}

/* The air falls silent. */
static void medium_end(struct medium *m, u64 at)
{
	struct medium_ac *c, *next;
	LIST_HEAD(done);
	bool widen;
	u64 ns;

	m->busy_ns += at - m->busy_since_ns;
	list_splice_init(&m->on_air, &done);
	m->state = MEDIUM_BUILD;
	spin_unlock(&m->lock);
	list_for_each_entry_safe(c, next, &done, node) {
		list_del_init(&c->node);
		widen = medium_finish(c);
		if (widen)
			medium_widen(c);
		else
			c->cw = c->cw_min;
		spin_lock(&m->lock);
		c->on_air = false;
		spin_unlock(&m->lock);
		if (!c->data->medium.qdisc || !skb_queue_empty(&c->fifo))
			medium_kick(c);	/* a TXQ radio finds out when it builds whether there is more */
	}
	spin_lock(&m->lock);
	if (m->extra_ns) {
		ns = m->extra_ns;
		m->extra_ns = 0;
		medium_busy(m, at, ns);
		return;
	}
	medium_idle(m, at);
}

static enum hrtimer_restart medium_timer(struct hrtimer *timer)
{
	struct medium *m = container_of(timer, struct medium, timer);
	u64 now = ktime_get_ns(), at;

	rcu_read_lock();
	spin_lock(&m->lock);
	at = m->due_ns;
	if (at > now)	/* rearmed meanwhile */
		goto out;
	if (at + 20 * NSEC_PER_MSEC < now)	/* the host stalled: do not make up for more than this */
		at = now - 20 * NSEC_PER_MSEC;
	if (m->state == MEDIUM_BUSY)
		medium_end(m, at);
	else if (m->state == MEDIUM_BACKOFF && m->foreign_permille && max(m->foreign_at_ns, m->idle_since_ns) <= at)
		medium_foreign(m, at);
	else if (m->state == MEDIUM_BACKOFF)
		medium_begin(m, at);
out:
	spin_unlock(&m->lock);
	rcu_read_unlock();
	return HRTIMER_NORESTART;
}
