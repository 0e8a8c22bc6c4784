// SPDX-License-Identifier: GPL-2.0
/*
 * txop.c - fill a PPDU from what is queued when the transmission starts; hand its MPDUs over when it ends.
 * All of it runs in softirq context, from the channel's timer, without the channel's lock: mac80211 may call back.
 */

static u16 medium_seq(struct sk_buff *skb)
{
	return le16_to_cpu(((struct ieee80211_hdr *)skb->data)->seq_ctrl) >> 4;
}

static bool medium_aggregates(struct sk_buff *skb)
{
	struct ieee80211_hdr *hdr = (void *)skb->data;

	return (IEEE80211_SKB_CB(skb)->flags & IEEE80211_TX_CTL_AMPDU) && ieee80211_is_data_qos(hdr->frame_control) &&
	       !is_multicast_ether_addr(hdr->addr1);
}

static unsigned int medium_mpdu_bytes(struct sk_buff *skb)
{
	return ALIGN(skb->len + MEDIUM_FCS_BYTES, 4) + MEDIUM_DELIMITER_BYTES;
}

/* May skb join the PPDU? The first frame always may. */
static bool medium_fits(struct medium_ac *c, struct sk_buff *skb)
{
	struct sk_buff *first = skb_peek(&c->air);
	unsigned int bytes = c->bytes + medium_mpdu_bytes(skb);

	if (!first)
		return true;
	return medium_aggregates(first) && medium_aggregates(skb) && c->frames < medium_ampdu_frames &&
	       bytes <= medium_ampdu_bytes && ((medium_seq(skb) - medium_seq(first)) & 0xfff) < 64 &&
	       medium_ppdu_ns(&c->rate, bytes) <= (u64)medium_ampdu_us * NSEC_PER_USEC;
}

static void medium_add(struct medium_ac *c, struct sk_buff *skb)
{
	if (skb_queue_empty(&c->air))
		c->rate = medium_rate_of(c->data, skb, &c->per_permille);
	__skb_queue_tail(&c->air, skb);
	c->frames++;
	c->bytes += medium_mpdu_bytes(skb);
}

/* Ask for a block-ACK session on the first data frame of a TID, as a driver with its own rate control has to. */
static void medium_start_ba(struct ieee80211_sta *sta, struct sk_buff *skb)
{
	struct ieee80211_hdr *hdr = (void *)skb->data;
	struct hwsim_sta_priv *sp;
	u8 tid;

	if (!sta || !ieee80211_is_data_qos(hdr->frame_control) || is_multicast_ether_addr(hdr->addr1) ||
	    skb->protocol == cpu_to_be16(ETH_P_PAE) || (IEEE80211_SKB_CB(skb)->flags & IEEE80211_TX_CTL_AMPDU))
		return;
	sp = (void *)sta->drv_priv;
	tid = ieee80211_get_tid(hdr);
	if (tid < 8 && !(sp->ba_asked & BIT(tid)) && !ieee80211_start_tx_ba_session(sta, tid, 0))
		sp->ba_asked |= BIT(tid);
}

/* From the radio's own FIFO: one frame, or with it all that go to the same station and TID. */
static void medium_fill_fifo(struct medium_ac *c)
{
	struct ieee80211_hw *hw = c->data->hw;
	struct ieee80211_hdr *head, *hdr;
	struct sk_buff *first, *skb, *next;
	unsigned long flags;
	bool wake;

	spin_lock_irqsave(&c->fifo.lock, flags);
	first = __skb_dequeue(&c->fifo);
	if (first) {
		head = (void *)first->data;
		medium_add(c, first);
		if (medium_aggregates(first))
			skb_queue_walk_safe(&c->fifo, skb, next) {
				hdr = (void *)skb->data;
				if (!medium_aggregates(skb) || !ether_addr_equal(hdr->addr1, head->addr1) ||
				    ieee80211_get_tid(hdr) != ieee80211_get_tid(head))
					continue;
				if (!medium_fits(c, skb))
					break;
				__skb_unlink(skb, &c->fifo);
				medium_add(c, skb);
			}
	}
	wake = c->stopped && skb_queue_len(&c->fifo) <= medium_fifo / 2;
	if (wake)
		c->stopped = false;
	spin_unlock_irqrestore(&c->fifo.lock, flags);
	if (first)
		medium_start_ba(ieee80211_find_sta_by_ifaddr(hw, head->addr1, head->addr2), first);
	if (wake)
		ieee80211_wake_queue(hw, c->ac);
}

/* From mac80211's TXQs: the station whose turn it is by airtime fairness, as many MPDUs as are there and fit. */
static void medium_fill_txq(struct medium_ac *c)
{
	struct ieee80211_hw *hw = c->data->hw;
	struct ieee80211_txq *txq;
	struct medium_txq *mt;
	struct sk_buff *skb;

	ieee80211_txq_schedule_start(hw, c->ac);
	while (skb_queue_empty(&c->air) && (txq = ieee80211_next_txq(hw, c->ac))) {
		mt = (void *)txq->drv_priv;
		if (!mt->ready) {
			__skb_queue_head_init(&mt->again);
			mt->ready = true;
		}
		for (;;) {
			skb = __skb_dequeue(&mt->again);
			if (!skb) {
				skb = ieee80211_tx_dequeue(hw, txq);
				if (!skb)
					break;
				IEEE80211_SKB_CB(skb)->control.rates[0].count = 0;
			}
			if (!medium_fits(c, skb)) {
				__skb_queue_head(&mt->again, skb);
				break;
			}
			medium_add(c, skb);
			medium_start_ba(txq->sta, skb);
			if (!medium_aggregates(skb))
				break;
		}
		ieee80211_return_txq(hw, txq, !skb_queue_empty(&mt->again));
	}
	ieee80211_txq_schedule_end(hw, c->ac);
}

/* Fill the PPDU and time it; false where nothing was queued after all. */
static bool medium_build(struct medium_ac *c)
{
	struct sk_buff *first;

	c->frames = 0;
	c->bytes = 0;
	c->collided = false;
	medium_fill_fifo(c);
	if (skb_queue_empty(&c->air) && !c->data->medium.qdisc)
		medium_fill_txq(c);
	first = skb_peek(&c->air);
	if (!first)
		return false;
	c->block_ack = medium_aggregates(first);
	c->ppdu_ns = medium_ppdu_ns(&c->rate, c->block_ack ? c->bytes : first->len + MEDIUM_FCS_BYTES);
	c->rts = c->ppdu_ns > (u64)medium_rts_us * NSEC_PER_USEC && !c->rate.legacy;
	c->exchange_ns = c->ppdu_ns + (c->rts ? medium_rts_cts_ns() : 0);
	if (!is_multicast_ether_addr(((struct ieee80211_hdr *)first->data)->addr1))
		c->exchange_ns += medium_response_ns(c->block_ack);
	return true;
}

/* Tell mac80211 how the frame fared. Each MPDU reports for itself, so that retries and failures are exact per TID. */
static void medium_status(struct medium_ac *c, struct sk_buff *skb, u8 attempts, bool acked)
{
	struct ieee80211_tx_info *info = IEEE80211_SKB_CB(skb);
	struct ieee80211_hdr *hdr = (void *)skb->data;
	int signal = medium_signal(hdr, 0);

	medium_stamp(c->data, skb, &c->rate, attempts);
	ieee80211_tx_info_clear_status(info);
	info->status.rates[0].count = attempts;
	info->status.rates[1].idx = -1;
	if (info->flags & IEEE80211_TX_CTL_AMPDU) {
		info->flags |= IEEE80211_TX_STAT_AMPDU;
		info->status.ampdu_len = 1;
		info->status.ampdu_ack_len = acked;
		if (!acked)	/* mac80211 then sends the block-ACK request that moves the receiver's window on */
			info->flags |= IEEE80211_TX_STAT_AMPDU_NO_BACK;
	}
	if (acked && !(info->flags & IEEE80211_TX_CTL_NO_ACK)) {
		info->flags |= IEEE80211_TX_STAT_ACK;
		if (signal) {
			info->status.ack_signal = signal;
			info->status.flags |= IEEE80211_TX_STATUS_ACK_SIGNAL_VALID;
		}
	}
	ieee80211_tx_status(c->data->hw, skb);
}

static void medium_again(struct medium_ac *c, struct sk_buff_head *again)
{
	struct sk_buff *first = skb_peek(again);
	struct ieee80211_hdr *hdr;
	struct ieee80211_sta *sta;
	struct medium_txq *mt;
	unsigned long flags;
	u8 tid;

	if (!first)
		return;
	hdr = (void *)first->data;
	sta = ieee80211_find_sta_by_ifaddr(c->data->hw, hdr->addr1, hdr->addr2);
	if (sta && !c->data->medium.qdisc && ieee80211_is_data_qos(hdr->frame_control)) {
		tid = ieee80211_get_tid(hdr);
		mt = (void *)sta->txq[tid]->drv_priv;
		if (mt->ready) {
			skb_queue_splice(again, &mt->again);
			ieee80211_schedule_txq(c->data->hw, sta->txq[tid]);
			return;
		}
	}
	spin_lock_irqsave(&c->fifo.lock, flags);
	skb_queue_splice(again, &c->fifo);
	spin_unlock_irqrestore(&c->fifo.lock, flags);
}

/* Airtime of the PPDU, to the transmitter's and to the receiver's station entry. */
static void medium_airtime(struct medium_ac *c, const u8 *receiver, const u8 *transmitter, u8 tid)
{
	u32 us = (u32)div_u64(c->exchange_ns, NSEC_PER_USEC);
	struct mac80211_hwsim_data *other;
	struct ieee80211_sta *sta;

	c->data->medium.tx_ns += c->exchange_ns;
	if (is_multicast_ether_addr(receiver))
		return;
	sta = ieee80211_find_sta_by_ifaddr(c->data->hw, receiver, transmitter);
	if (sta)
		ieee80211_sta_register_airtime(sta, tid, us, 0);
	spin_lock(&hwsim_radio_lock);
	list_for_each_entry(other, &hwsim_radios, list) {
		if (other == c->data || !other->started || !hwsim_chans_compat(c->data->channel, other->channel))
			continue;
		sta = ieee80211_find_sta_by_ifaddr(other->hw, transmitter, receiver);
		if (!sta)
			continue;
		other->medium.rx_ns += c->exchange_ns;
		ieee80211_sta_register_airtime(sta, tid, 0, us);
		break;
	}
	spin_unlock(&hwsim_radio_lock);
}

/* The PPDU is over: deliver, retry or give up each MPDU. True where all of them were lost, so the window doubles. */
static bool medium_finish(struct medium_ac *c)
{
	struct sk_buff *skb = skb_peek(&c->air);
	struct ieee80211_hdr *hdr = (void *)skb->data;
	u8 tid = ieee80211_is_data_qos(hdr->frame_control) ? ieee80211_get_tid(hdr) : 0;
	struct sk_buff_head again;
	bool any = false;

	__skb_queue_head_init(&again);
	if (!c->collided)
		medium_airtime(c, hdr->addr1, hdr->addr2, tid);
	while ((skb = __skb_dequeue(&c->air))) {
		struct ieee80211_tx_info *info = IEEE80211_SKB_CB(skb);
		u8 attempts = info->control.rates[0].count;
		bool acked = false, group;
		u32 number;

		hdr = (void *)skb->data;
		group = is_multicast_ether_addr(hdr->addr1);
		if (c->collided && c->rts) {	/* the RTS was lost, not the MPDU */
			__skb_queue_tail(&again, skb);
			continue;
		}
		attempts++;
		c->m->mpdus++;
		medium_stamp(c->data, skb, &c->rate, attempts);
		if (!c->collided && (group || medium_random(1000) >= c->per_permille)) {
			if (attempts > 1)
				hdr->frame_control |= cpu_to_le16(IEEE80211_FCTL_RETRY);
			mac80211_hwsim_monitor_rx(c->data->hw, skb, c->data->channel);
			c->data->tx_pkts++;
			c->data->tx_bytes += skb->len;
			c->m->bytes += skb->len;
			number = skb->mark;	/* which the radio forgets, so that the receiver has none */
			acked = mac80211_hwsim_tx_frame_no_nl(c->data->hw, skb, c->data->channel);
			skb->mark = number;
		}
		any |= acked | group;
		if (group || acked) {
			medium_status(c, skb, attempts, acked);
			continue;
		}
		c->m->mpdus_lost++;
		if (attempts <= min(medium_retries, 30) && !(info->flags & IEEE80211_TX_CTL_NO_ACK)) {
			__skb_queue_tail(&again, skb);
			continue;
		}
		c->m->mpdus_failed++;
		c->data->tx_failed++;
		medium_lost(skb, MEDIUM_LOST_AIR);
		medium_status(c, skb, attempts, false);
	}
	medium_again(c, &again);
	return !any;
}
