// SPDX-License-Identifier: GPL-2.0
/*
 * losses.c - the cause of each lost packet: /sys/kernel/debug/hwsim_medium/losses, records that a read takes out.
 *
 * Frames on the air may be encrypted, so that a packet's header is kept when it enters mac80211, under a number that
 * the frame carries in skb->mark, which nobody reads after that.
 */
#include <linux/ip.h>
#include <linux/tcp.h>
#include <net/inet_sock.h>

#define MEDIUM_HEADERS	(1 << 16)	/* more than all queues together hold */
#define MEDIUM_LOSSES	(1 << 15)	/* between two reads */

/* lab/guest/losses.py reads it by the same layout */
struct medium_loss {
	u64 t_ns;			/* realtime */
	u32 source, destination, seq;	/* addresses as on the wire; seq in the host's order; 0 where it is no TCP */
	u32 number;			/* the frame's; 0: lost before it had one */
	u16 source_port, destination_port, ip_id, payload_bytes;
	char device[IFNAMSIZ];
	u8 protocol, cause;		/* protocol 0: no IPv4 */
	u16 unused;
	u32 let_go;			/* records that were lost before this one, for want of room */
};

static struct medium_loss medium_headers[MEDIUM_HEADERS];
static struct medium_loss medium_loss_log[MEDIUM_LOSSES];
static u32 medium_number, medium_loss_head, medium_loss_tail, medium_loss_let_go;
static DEFINE_SPINLOCK(medium_loss_lock);

/* The latest drops of queues, by ports and sequence number: for a sender that knows the truth
 * (policies/loss-cause/ca_kernel.c).
 */
#define MEDIUM_DROPPED	(1 << 14)
static u64 medium_dropped[MEDIUM_DROPPED];
/* Where that is part of the kernel: the sampler's guests go without. */
extern bool (*oal_lc_dropped_by_queue)(const struct sock *sk, u32 seq) __attribute__((weak));

static u64 medium_dropped_name(u16 source_port, u16 destination_port, u32 seq)
{
	return (u64)source_port << 48 | (u64)destination_port << 32 | seq;
}

static u64 *medium_dropped_at(u64 name)
{
	return &medium_dropped[hash_64(name, 14)];
}

static bool medium_dropped_by_queue(const struct sock *sk, u32 seq)
{
	const u64 name = medium_dropped_name(inet_sk(sk)->inet_num, ntohs(inet_sk(sk)->inet_dport), seq);

	return READ_ONCE(*medium_dropped_at(name)) == name;
}

/* Of a packet that still begins with its Ethernet header. */
static void medium_loss_describe(struct medium_loss *l, struct sk_buff *skb, struct net_device *dev)
{
	struct iphdr ip, *iph;
	struct tcphdr tcp, *th;

	memset(l, 0, sizeof(*l));
	strscpy(l->device, dev->name, sizeof(l->device));
	if (skb->protocol != htons(ETH_P_IP))
		return;
	iph = skb_header_pointer(skb, ETH_HLEN, sizeof(ip), &ip);
	if (!iph)
		return;
	l->protocol = iph->protocol;
	l->source = iph->saddr;
	l->destination = iph->daddr;
	l->ip_id = ntohs(iph->id);
	l->payload_bytes = ntohs(iph->tot_len) - iph->ihl * 4;
	th = iph->protocol == IPPROTO_TCP && !(iph->frag_off & htons(IP_OFFSET)) ?
	     skb_header_pointer(skb, ETH_HLEN + iph->ihl * 4, sizeof(tcp), &tcp) : NULL;
	if (!th)
		return;
	l->source_port = ntohs(th->source);
	l->destination_port = ntohs(th->dest);
	l->seq = ntohl(th->seq);
	l->payload_bytes -= th->doff * 4;
}

/* With the lock held. */
static void medium_loss_add(const struct medium_loss *from, enum medium_cause cause)
{
	const u64 name = medium_dropped_name(from->source_port, from->destination_port, from->seq);
	struct medium_loss *l;

	if (cause == MEDIUM_LOST_QUEUE && from->protocol == IPPROTO_TCP)
		WRITE_ONCE(*medium_dropped_at(name), name);
	if (medium_loss_head - medium_loss_tail >= MEDIUM_LOSSES) {
		medium_loss_let_go++;
		return;
	}
	l = &medium_loss_log[medium_loss_head++ % MEDIUM_LOSSES];
	*l = *from;
	l->t_ns = ktime_get_real_ns();
	l->cause = cause;
	l->let_go = medium_loss_let_go;
}

static void medium_loss_enters(struct sk_buff *skb, struct net_device *dev)
{
	struct medium_loss *l;
	unsigned long flags;

	spin_lock_irqsave(&medium_loss_lock, flags);
	if (!++medium_number)
		medium_number = 1;
	l = &medium_headers[medium_number % MEDIUM_HEADERS];
	medium_loss_describe(l, skb, dev);
	l->number = medium_number;
	skb->mark = medium_number;
	spin_unlock_irqrestore(&medium_loss_lock, flags);
}

/* Frames without a number are the station's own business: management, null frames, block-ACK requests. */
static void medium_loss_entered(struct sk_buff *skb, enum medium_cause cause)
{
	struct medium_loss *l = &medium_headers[skb->mark % MEDIUM_HEADERS];
	unsigned long flags;

	if (!skb->mark)
		return;
	spin_lock_irqsave(&medium_loss_lock, flags);
	if (l->number == skb->mark)
		medium_loss_add(l, cause);
	else
		medium_loss_let_go++;	/* its header was overwritten */
	spin_unlock_irqrestore(&medium_loss_lock, flags);
}

static void medium_loss_before(struct sk_buff *skb, struct net_device *dev, enum medium_cause cause)
{
	struct medium_loss l;
	unsigned long flags;

	medium_loss_describe(&l, skb, dev);
	spin_lock_irqsave(&medium_loss_lock, flags);
	medium_loss_add(&l, cause);
	spin_unlock_irqrestore(&medium_loss_lock, flags);
}

/* As many whole records as there are and fit; 0 where there is none. */
static ssize_t medium_losses_read(struct file *file, char __user *to, size_t n, loff_t *pos)
{
	struct medium_loss l;
	size_t done = 0;
	bool any;

	while (n - done >= sizeof(l)) {
		spin_lock_irq(&medium_loss_lock);
		any = medium_loss_head != medium_loss_tail;
		if (any)
			l = medium_loss_log[medium_loss_tail++ % MEDIUM_LOSSES];
		spin_unlock_irq(&medium_loss_lock);
		if (!any)
			break;
		if (copy_to_user(to + done, &l, sizeof(l)))
			return -EFAULT;
		done += sizeof(l);
	}
	return done;
}

static const struct file_operations medium_losses_fops = {
	.open = simple_open, .read = medium_losses_read, .llseek = noop_llseek,
};

static const struct medium_loss_ops medium_loss_listener = {
	.enters = medium_loss_enters, .entered = medium_loss_entered, .before = medium_loss_before,
};

static void medium_losses_init(struct dentry *dir)
{
	BUILD_BUG_ON(sizeof(struct medium_loss) != 56);
	debugfs_create_file("losses", 0400, dir, NULL, &medium_losses_fops);
	medium_losses = &medium_loss_listener;
	if (&oal_lc_dropped_by_queue)
		oal_lc_dropped_by_queue = medium_dropped_by_queue;
}
