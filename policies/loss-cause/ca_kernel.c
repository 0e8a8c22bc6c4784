// SPDX-License-Identifier: GPL-2.0-only
/*
 * ca_kernel.c - oal_lc as part of a kernel, for the lab's guest, whose kernel has no struct_ops: CUBIC, but a loss that
 * the law of ca.h takes for one of the air does not lower the window. The same as ca.bpf.c, hook by hook.
 *
 * /proc/oal_lc_model takes a struct oal_lc_model, and is read as one; /proc/oal_lc_counts says why windows were kept
 * and lowered; /proc/oal_lc_check takes a history (ca_check.h) and is read as what is decided in it. `usable` of 2 is
 * no model but the truth, which only a lab knows: what decides then is where the first missing packet was lost.
 */
#include <linux/init.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/proc_fs.h>
#include <linux/seqlock.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <net/tcp.h>

#include "ca.h"
#include "ca_check.h"

/* CUBIC's own state is in the first 60 bytes of icsk_ca_priv; ours behind it. */
struct of_connection {
	u64 cubic[8];
	struct oal_lc_state state;
};

enum { TRUTH = 2 }; /* as `usable` of a model's centroids */

/* Was the packet that begins with this sequence number, on its way from this socket, dropped by a queue? */
bool (*oal_lc_dropped_by_queue)(const struct sock *sk, u32 seq);
EXPORT_SYMBOL_GPL(oal_lc_dropped_by_queue);

static const struct tcp_congestion_ops *cubic;
static struct oal_lc_model model;
static DEFINE_SEQLOCK(model_lock);
static atomic64_t counts[OAL_LC_N_REASONS];

static struct oal_lc_state *state_of(struct sock *sk)
{
	return &((struct of_connection *)inet_csk_ca(sk))->state;
}

static struct oal_lc_model model_in_force(void)
{
	struct oal_lc_model m;
	unsigned int seq;

	do {
		seq = read_seqbegin(&model_lock);
		m = model;
	} while (read_seqretry(&model_lock, seq));
	return m;
}

static void oal_lc_init(struct sock *sk)
{
	memset(state_of(sk), 0, sizeof(struct oal_lc_state));
	cubic->init(sk);
}

/* The truth's decision; a loss that no queue had is one of the air, or of the wire. */
static enum oal_lc_reason truth_decides(struct sock *sk, struct oal_lc_state *s)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	s->kept = tp->lost_out + tp->sacked_out && oal_lc_dropped_by_queue && !oal_lc_dropped_by_queue(sk, tp->snd_una);
	return s->kept ? OAL_LC_BY_KEPT : OAL_LC_BY_CONGESTION;
}

static u32 oal_lc_ssthresh(struct sock *sk)
{
	const struct oal_lc_model m = model_in_force();
	const struct tcp_sock *tp = tcp_sk(sk);
	const enum oal_lc_reason why = m.centroids.usable == TRUTH ? truth_decides(sk, state_of(sk)) :
		oal_lc_decide(state_of(sk), &m, ktime_get_ns(), tp->snd_una, tp->lost_out + tp->sacked_out);

	atomic64_inc(&counts[why]);
	return why == OAL_LC_BY_KEPT ? tcp_snd_cwnd(tp) : cubic->ssthresh(sk);
}

static void oal_lc_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	if (event == CA_EVENT_LOSS && oal_lc_timeout(state_of(sk)))
		tcp_sk(sk)->snd_ssthresh = cubic->ssthresh(sk);
	cubic->cwnd_event(sk, event);
}

static void oal_lc_in_ack_event(struct sock *sk, u32 flags)
{
	if (flags & CA_ACK_ECE)
		oal_lc_marked(state_of(sk), tcp_sk(sk)->snd_nxt);
}

static void oal_lc_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	if (sample->rtt_us >= 0)
		oal_lc_pair(state_of(sk), tcp_snd_cwnd(tcp_sk(sk)), sample->rtt_us);
	cubic->pkts_acked(sk, sample);
}

static void oal_lc_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	cubic->cong_avoid(sk, ack, acked);
}

static void oal_lc_set_state(struct sock *sk, u8 state)
{
	cubic->set_state(sk, state);
}

static struct tcp_congestion_ops oal_lc __read_mostly = {
	.init = oal_lc_init,
	.ssthresh = oal_lc_ssthresh,
	.cong_avoid = oal_lc_cong_avoid,
	.set_state = oal_lc_set_state,
	.cwnd_event = oal_lc_cwnd_event,
	.in_ack_event = oal_lc_in_ack_event,
	.pkts_acked = oal_lc_pkts_acked,
	.undo_cwnd = tcp_reno_undo_cwnd,
	.owner = THIS_MODULE,
	.name = "oal_lc",
};

static ssize_t model_write(struct file *file, const char __user *from, size_t n, loff_t *pos)
{
	struct oal_lc_model m;

	if (n != sizeof(m))
		return -EINVAL;
	if (copy_from_user(&m, from, sizeof(m)))
		return -EFAULT;
	write_seqlock_bh(&model_lock);
	model = m;
	write_sequnlock_bh(&model_lock);
	return n;
}

static ssize_t model_read(struct file *file, char __user *to, size_t n, loff_t *pos)
{
	const struct oal_lc_model m = model_in_force();

	return simple_read_from_buffer(to, n, pos, &m, sizeof(m));
}

static const struct proc_ops model_ops = { .proc_write = model_write, .proc_read = model_read };

static int counts_show(struct seq_file *file, void *unused)
{
#define NAME(NAME, name) #name,
	static const char *const names[] = { OAL_LC_REASONS(NAME) };
#undef NAME
	unsigned int i;

	for (i = 0; i < OAL_LC_N_REASONS; i++)
		seq_printf(file, "%s %lld\n", names[i], (long long)atomic64_read(&counts[i]));
	return 0;
}

/* One history at a time: what it is answered with is read before the next is written. */
static DEFINE_MUTEX(check_lock);
static u8 decided[OAL_LC_EVENTS];

static ssize_t check_write(struct file *file, const char __user *from, size_t n, loff_t *pos)
{
	struct oal_lc_history *h;

	if (n != sizeof(*h))
		return -EINVAL;
	h = memdup_user(from, n);
	if (IS_ERR(h))
		return PTR_ERR(h);
	mutex_lock(&check_lock);
	oal_lc_play(h, decided);
	mutex_unlock(&check_lock);
	kfree(h);
	return n;
}

static ssize_t check_read(struct file *file, char __user *to, size_t n, loff_t *pos)
{
	loff_t begin = 0;
	ssize_t ret;

	mutex_lock(&check_lock);
	ret = simple_read_from_buffer(to, n, &begin, decided, sizeof(decided));
	mutex_unlock(&check_lock);
	return ret;
}

static const struct proc_ops check_ops = { .proc_write = check_write, .proc_read = check_read };

static int __init oal_lc_register(void)
{
	BUILD_BUG_ON(sizeof(struct of_connection) > ICSK_CA_PRIV_SIZE);
	rcu_read_lock();
	cubic = tcp_ca_find("cubic");
	rcu_read_unlock();
	if (!cubic)
		return -ENOENT;
	if (!proc_create("oal_lc_model", 0600, NULL, &model_ops) ||
	    !proc_create_single("oal_lc_counts", 0400, NULL, counts_show) ||
	    !proc_create("oal_lc_check", 0600, NULL, &check_ops))
		return -ENOMEM;
	return tcp_register_congestion_control(&oal_lc);
}
late_initcall(oal_lc_register);
