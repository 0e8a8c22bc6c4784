// SPDX-License-Identifier: GPL-2.0
/*
 * radio.c - what mac80211 calls: frames in, TXQ wake-ups, EDCA parameters, survey; and set-up and purge of a radio's
 * queues.
 */

static void medium_radio_init(struct mac80211_hwsim_data *data, bool qdisc)
{
	static const struct { u8 aifsn; u16 cw_min, cw_max; } edca[IEEE80211_NUM_ACS] = { /* 802.11-2020, table 9-155 */
		{ 2, 3, 7 }, { 2, 7, 15 }, { 3, 15, 1023 }, { 7, 15, 1023 },
	};
	int i;

	data->medium.qdisc = qdisc;
	for (i = 0; i < IEEE80211_NUM_ACS; i++) {
		struct medium_ac *c = &data->medium.ac[i];

		c->data = data;
		c->ac = i;
		c->aifsn = edca[i].aifsn;
		c->cw = c->cw_min = edca[i].cw_min;
		c->cw_max = edca[i].cw_max;
		INIT_LIST_HEAD(&c->node);
		skb_queue_head_init(&c->fifo);
		__skb_queue_head_init(&c->air);
	}
}

/* The radio went down: nobody may find its frames any more. */
static void medium_radio_stop(struct mac80211_hwsim_data *data)
{
	struct sk_buff *skb;
	int i;

	if (!medium_on)
		return;
	for (i = 0; i < IEEE80211_NUM_ACS; i++) {
		struct medium_ac *c = &data->medium.ac[i];

		if (c->m) {
			spin_lock_bh(&c->m->lock);
			if (c->active || c->on_air)
				list_del_init(&c->node);
			c->active = false;
			c->on_air = false;
			spin_unlock_bh(&c->m->lock);
		}
		while ((skb = __skb_dequeue(&c->air)))
			ieee80211_free_txskb(data->hw, skb);
		while ((skb = skb_dequeue(&c->fifo)))
			ieee80211_free_txskb(data->hw, skb);
		c->stopped = false;
	}
}

static void medium_sta_remove(struct mac80211_hwsim_data *data, struct ieee80211_sta *sta)
{
	struct medium_txq *mt;
	struct sk_buff *skb;
	int i;

	if (!medium_on || data->medium.qdisc)
		return;
	for (i = 0; i < ARRAY_SIZE(sta->txq); i++) {
		if (!sta->txq[i])
			continue;
		mt = (void *)sta->txq[i]->drv_priv;
		local_bh_disable();
		while (mt->ready && (skb = __skb_dequeue(&mt->again)))
			ieee80211_free_txskb(data->hw, skb);
		local_bh_enable();
	}
}

/* Take a frame from .tx; false where it is not for the channel the radio shares (off-channel, scanning elsewhere). */
static bool medium_tx(struct ieee80211_hw *hw, struct sk_buff *skb, struct ieee80211_channel *channel)
{
	struct mac80211_hwsim_data *data = hw->priv;
	struct ieee80211_tx_info *info = IEEE80211_SKB_CB(skb);
	u8 ac = info->hw_queue < IEEE80211_NUM_ACS ? info->hw_queue : IEEE80211_AC_VO;
	struct medium_ac *c = &data->medium.ac[ac];
	unsigned long flags;
	bool stop;

	if (!medium_on || !data->channel || channel != data->channel || info->hw_queue == hw->offchannel_tx_hw_queue)
		return false;
	info->control.rates[0].count = 0;
	spin_lock_irqsave(&c->fifo.lock, flags);
	__skb_queue_tail(&c->fifo, skb);
	stop = data->medium.qdisc && !c->stopped && skb_queue_len(&c->fifo) >= medium_fifo;
	if (stop)
		c->stopped = true;
	spin_unlock_irqrestore(&c->fifo.lock, flags);
	if (stop)
		ieee80211_stop_queue(hw, ac);
	medium_kick(c);
	return true;
}

static void medium_wake_tx_queue(struct ieee80211_hw *hw, struct ieee80211_txq *txq)
{
	struct mac80211_hwsim_data *data = hw->priv;

	ieee80211_schedule_txq(hw, txq);
	medium_kick(&data->medium.ac[txq->ac]);
}

static void medium_conf_tx(struct mac80211_hwsim_data *data, u16 ac, const struct ieee80211_tx_queue_params *params)
{
	struct medium_ac *c;

	if (ac >= IEEE80211_NUM_ACS)
		return;
	c = &data->medium.ac[ac];
	c->aifsn = params->aifs;
	c->cw_min = params->cw_min;
	c->cw_max = params->cw_max;
	c->cw = c->cw_min;
}

/* The channel the radio is on, since the radio started. Receive time is this radio's own BSS; the rest of busy is
 * others. */
static int medium_survey(struct mac80211_hwsim_data *data, int idx, struct survey_info *survey)
{
	struct medium *m = data->channel ? medium_of(data->channel) : NULL;
	u64 now = ktime_get_ns(), busy;

	if (idx || !m)
		return -ENOENT;
	spin_lock_bh(&m->lock);
	medium_foreign_catch_up(m, now);
	busy = m->busy_ns;
	if (m->state == MEDIUM_BUSY && now > m->busy_since_ns)
		busy += min(now, m->due_ns) - m->busy_since_ns;
	survey->channel = data->channel;
	survey->filled = SURVEY_INFO_NOISE_DBM | SURVEY_INFO_IN_USE | SURVEY_INFO_TIME | SURVEY_INFO_TIME_BUSY |
			 SURVEY_INFO_TIME_EXT_BUSY | SURVEY_INFO_TIME_RX | SURVEY_INFO_TIME_TX |
			 SURVEY_INFO_TIME_BSS_RX;
	survey->noise = m->noise_dbm;
	survey->time = div_u64(now - data->medium.since_ns, NSEC_PER_MSEC);
	survey->time_busy = div_u64(busy, NSEC_PER_MSEC);
	survey->time_ext_busy = medium_width_mhz(data) > 20 ? div_u64(m->ext_ns, NSEC_PER_MSEC) : 0;
	survey->time_tx = div_u64(data->medium.tx_ns, NSEC_PER_MSEC);
	survey->time_rx = div_u64(data->medium.rx_ns, NSEC_PER_MSEC);
	survey->time_bss_rx = survey->time_rx;
	spin_unlock_bh(&m->lock);
	return 0;
}

/* What rate control would promise: the PHY rate, less loss, less about a third for the MAC. */
static u32 medium_expected_throughput(struct ieee80211_hw *hw, struct ieee80211_sta *sta)
{
	const struct medium_link *link = medium_link_find(sta->addr);

	return link ? link->rate_kbps / 1000 * (1000 - link->per_permille) * 2 / 3 : 0;
}

static void medium_init(void)
{
	int i;

	prandom_seed_state(&medium_rnd, medium_seed);
	for (i = 0; i < MEDIUM_CHANNELS; i++) {
		struct medium *m = &media[i];

		spin_lock_init(&m->lock);
		INIT_LIST_HEAD(&m->contend);
		INIT_LIST_HEAD(&m->on_air);
		m->foreign_burst_us = 1500;
		m->noise_dbm = -92;
		hrtimer_init(&m->timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
		m->timer.function = medium_timer;
	}
}
