/* SPDX-License-Identifier: GPL-2.0 */
/*
 * loss.h - where this kernel loses a packet on its way to the air it says so. The pointer is in net/core/dev.c, since
 * queues are built in and hwsim may be a module; losses.c listens.
 */
#ifndef MEDIUM_LOSS_H
#define MEDIUM_LOSS_H
#include <linux/netdevice.h>
#include <linux/skbuff.h>

enum medium_cause {
	MEDIUM_LOST_QUEUE = 1,	/* dropped by a queue: no room, or CoDel */
	MEDIUM_LOST_AIR = 2,	/* given up after the last retry */
	MEDIUM_LOST_FILTER = 3,	/* an acknowledgement that a later one made needless: CAKE's ack-filter */
};

struct medium_loss_ops {
	void (*enters)(struct sk_buff *skb, struct net_device *dev);	/* mac80211, readable for the last time */
	void (*entered)(struct sk_buff *skb, enum medium_cause cause);	/* lost after that */
	void (*before)(struct sk_buff *skb, struct net_device *dev, enum medium_cause cause); /* lost in a qdisc */
};

extern const struct medium_loss_ops *medium_losses;

static inline void medium_enters(struct sk_buff *skb, struct net_device *dev)
{
	if (medium_losses)
		medium_losses->enters(skb, dev);
}

static inline void medium_lost(struct sk_buff *skb, enum medium_cause cause)
{
	if (medium_losses)
		medium_losses->entered(skb, cause);
}

static inline void medium_lost_before(struct sk_buff *skb, struct net_device *dev, enum medium_cause cause)
{
	if (medium_losses && dev->ieee80211_ptr)
		medium_losses->before(skb, dev, cause);
}

#endif
