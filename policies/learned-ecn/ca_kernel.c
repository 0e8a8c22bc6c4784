// SPDX-License-Identifier: GPL-2.0-only
/*
 * ca_kernel.c - oal_ecn as part of a kernel, for the lab's guest, whose kernel has no struct_ops: DCTCP's law by the
 * marks that ca.h makes of round trips. The same as ca.bpf.c, hook by hook.
 *
 * /proc/oal_ecn_model takes a struct oal_ecn_model, and is read as one; /proc/oal_ecn_counts says why packets counted
 * as marked and as free; /proc/oal_ecn_check takes a history (ca_check.h) and is read as what is decided in it.
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

static struct oal_ecn_model model;
static DEFINE_SEQLOCK(model_lock);
static atomic64_t counts[OAL_ECN_N_REASONS];

static struct oal_ecn_state *state_of(struct sock *sk)
{
	return inet_csk_ca(sk);
}

static struct oal_ecn_model model_in_force(void)
{
	struct oal_ecn_model m;
	unsigned int seq;

	do {
		seq = read_seqbegin(&model_lock);
		m = model;
	} while (read_seqretry(&model_lock, seq));
	return m;
}

static void oal_ecn_init(struct sock *sk)
{
	oal_ecn_begin(state_of(sk));
}

static void oal_ecn_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct oal_ecn_state *s = state_of(sk);
	enum oal_ecn_reason why = OAL_ECN_BY_UNKNOWN;
	__u32 steep = 0;

	if (sample->rtt_us >= 0) {
		const struct oal_ecn_model m = model_in_force();

		oal_ecn_told(s, tp->tcp_mstamp, sample->rtt_us);
		why = oal_ecn_mark(s, &m, ktime_get_ns());
		steep = m.steep;
	}
	atomic64_add(sample->pkts_acked, &counts[why]);
	oal_ecn_acked(s, why == OAL_ECN_BY_MARKED, sample->pkts_acked, tp->snd_una, tp->snd_nxt);
	s->times = oal_ecn_times(s, steep, tcp_snd_cwnd(tp));
}

static void oal_ecn_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct oal_ecn_state *s = state_of(sk);
	const u8 action = s->action;

	s->action = OAL_ECN_HOLD;
	if (action == OAL_ECN_CUT) {
		tp->snd_ssthresh = oal_ecn_window(s, tcp_snd_cwnd(tp));
		tcp_snd_cwnd_set(tp, tp->snd_ssthresh);
	} else if (action == OAL_ECN_GROW) {
		const int slow_start = tcp_snd_cwnd(tp) < tp->snd_ssthresh;

		tcp_reno_cong_avoid(sk, ack, slow_start ? acked : acked * s->times);
	}
}

static struct tcp_congestion_ops oal_ecn __read_mostly = {
	.init = oal_ecn_init,
	.ssthresh = tcp_reno_ssthresh,
	.cong_avoid = oal_ecn_cong_avoid,
	.pkts_acked = oal_ecn_pkts_acked,
	.undo_cwnd = tcp_reno_undo_cwnd,
	.owner = THIS_MODULE,
	.name = "oal_ecn",
};

static ssize_t model_write(struct file *file, const char __user *from, size_t n, loff_t *pos)
{
	struct oal_ecn_model m;

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
	const struct oal_ecn_model m = model_in_force();

	return simple_read_from_buffer(to, n, pos, &m, sizeof(m));
}

static const struct proc_ops model_ops = { .proc_write = model_write, .proc_read = model_read };

static int counts_show(struct seq_file *file, void *unused)
{
#define NAME(NAME, name) #name,
	static const char *const names[] = { OAL_ECN_REASONS(NAME) };
#undef NAME
	unsigned int i;

	for (i = 0; i < OAL_ECN_N_REASONS; i++)
		seq_printf(file, "%s %lld\n", names[i], (long long)atomic64_read(&counts[i]));
	return 0;
}

/* One history at a time: what it is answered with is read before the next is written. */
static DEFINE_MUTEX(check_lock);
static struct oal_ecn_decision decided[OAL_ECN_EVENTS];

static ssize_t check_write(struct file *file, const char __user *from, size_t n, loff_t *pos)
{
	struct oal_ecn_history *h;

	if (n != sizeof(*h))
		return -EINVAL;
	h = memdup_user(from, n);
	if (IS_ERR(h))
		return PTR_ERR(h);
	mutex_lock(&check_lock);
	oal_ecn_play(h, decided);
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

static int __init oal_ecn_register(void)
{
	BUILD_BUG_ON(sizeof(struct oal_ecn_state) > ICSK_CA_PRIV_SIZE);
	if (!proc_create("oal_ecn_model", 0600, NULL, &model_ops) ||
	    !proc_create_single("oal_ecn_counts", 0400, NULL, counts_show) ||
	    !proc_create("oal_ecn_check", 0600, NULL, &check_ops))
		return -ENOMEM;
	return tcp_register_congestion_control(&oal_ecn);
}
late_initcall(oal_ecn_register);
