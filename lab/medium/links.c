// SPDX-License-Identifier: GPL-2.0
/*
 * links.c - what the link table says about a frame: its rate, its loss, its signal.
 */

static u32 medium_random(u32 below)
{
	return below ? (u32)(((u64)prandom_u32_state(&medium_rnd) * below) >> 32) : 0;
}

static const struct medium_link *medium_link_find(const u8 *addr)
{
	int i;

	for (i = 0; i < MEDIUM_LINKS; i++)
		if (READ_ONCE(medium_links[i].used) && ether_addr_equal(medium_links[i].addr, addr))
			return &medium_links[i];
	return NULL;
}

/* A link is filed under its station, whichever end transmits. */
static const struct medium_link *medium_link_of(const struct ieee80211_hdr *hdr)
{
	const struct medium_link *link = NULL;

	if (!is_multicast_ether_addr(hdr->addr1))
		link = medium_link_find(hdr->addr1);
	return link ?: medium_link_find(hdr->addr2);
}

/* Signal of this frame at its receiver, or fallback_dbm where no line was written for the link. */
static int medium_signal(const struct ieee80211_hdr *hdr, int fallback_dbm)
{
	const struct medium_link *link = medium_on ? medium_link_of(hdr) : NULL;
	int jitter = max(medium_jitter_db, 0);

	if (!link)
		return fallback_dbm;
	return link->signal_dbm + (int)medium_random(2 * jitter + 1) - jitter;
}

static unsigned int medium_width_mhz(struct mac80211_hwsim_data *data)
{
	switch (data->bw) {
	case NL80211_CHAN_WIDTH_80:
	case NL80211_CHAN_WIDTH_160:
		return 80;
	case NL80211_CHAN_WIDTH_40:
		return 40;
	default:
		return 20;
	}
}

/* PHY rate of a PPDU whose first frame is skb. Only data to one station goes faster than the basic rate. */
static struct medium_rate medium_rate_of(struct mac80211_hwsim_data *data, struct sk_buff *skb, u16 *per_permille)
{
	struct medium_rate basic = { .kbps = MEDIUM_BASIC_KBPS, .nss = 1, .width_mhz = 20, .legacy = true };
	struct ieee80211_hdr *hdr = (void *)skb->data;
	const struct medium_link *link = medium_link_of(hdr);
	unsigned int max_mcs = data->channel->band == NL80211_BAND_2GHZ ? 7 : 9;
	struct medium_rate rate;

	*per_permille = 0;
	if (!link || is_multicast_ether_addr(hdr->addr1))
		return basic;
	*per_permille = link->per_permille;
	if (!ieee80211_is_data_present(hdr->frame_control) || !link->rate_kbps ||
			skb->protocol == cpu_to_be16(ETH_P_PAE)) {
		*per_permille = link->per_permille * link->per_permille / 1000;	/* a robust rate loses less */
		return basic;
	}
	rate = medium_rate_for(link->rate_kbps, medium_width_mhz(data), max_mcs);
	if (rate.mcs && medium_random(1000) < medium_lower_permille) {
		rate.mcs--;
		rate.kbps = medium_mcs_kbps(rate.width_mhz, rate.nss, rate.mcs, rate.short_gi);
	}
	return rate;
}

/* Write rate and attempts where mac80211 (transmit status) and the receiving radio look for them. */
static void medium_stamp(struct mac80211_hwsim_data *data, struct sk_buff *skb, const struct medium_rate *rate,
		u8 attempts)
{
	struct ieee80211_tx_info *info = IEEE80211_SKB_CB(skb);
	struct ieee80211_tx_rate *r = &info->control.rates[0];

	r->count = attempts;
	r->flags = 0;
	info->control.rates[1].idx = -1;
	if (rate->legacy) {
		r->idx = data->channel->band == NL80211_BAND_2GHZ ? 4 : 0;	/* 6 Mbit/s */
		return;
	}
	if (data->channel->band == NL80211_BAND_2GHZ) {
		r->idx = rate->mcs + 8 * (rate->nss - 1);
		r->flags = IEEE80211_TX_RC_MCS;
	} else {
		ieee80211_rate_set_vht(r, rate->mcs, rate->nss);
		r->flags = IEEE80211_TX_RC_VHT_MCS;
	}
	if (rate->short_gi)
		r->flags |= IEEE80211_TX_RC_SHORT_GI;
	if (rate->width_mhz == 80)
		r->flags |= IEEE80211_TX_RC_80_MHZ_WIDTH;
	else if (rate->width_mhz == 40)
		r->flags |= IEEE80211_TX_RC_40_MHZ_WIDTH;
}
