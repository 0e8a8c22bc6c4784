// SPDX-License-Identifier: GPL-2.0-only
/* ca.bpf.c: oal_lc as struct_ops, for hosts: CUBIC, but a loss that the law of ca.h takes for one of the air does not
 * lower the window.
 *
 * Needs a kernel with BTF, JIT and CUBIC's functions as kfuncs (6.1 on x86-64, later elsewhere). It is registered while
 * whoever loaded it lives: after that new connections have the system's congestion control, and those that run go on
 * with CUBIC's law once the model's deadline has passed. */
#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "ca.h"

/* What is read of the kernel's structures; where it is in them the kernel's BTF says. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct in6_addr {
	union {
		__be32 u6_addr32[4];
	} in6_u;
};
struct sock_common {
	__be32 skc_daddr;
	struct in6_addr skc_v6_daddr;
	unsigned short skc_family;
};
struct sock {
	struct sock_common __sk_common;
};
struct inet_connection_sock {
	__u64 icsk_ca_priv[13];
};
struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u32 snd_una, snd_nxt, snd_cwnd, snd_ssthresh, lost_out, sacked_out;
};
struct ack_sample {
	__s32 rtt_us;
};
#pragma clang attribute pop

enum tcp_ca_event { CA_EVENT_TX_START, CA_EVENT_CWND_RESTART, CA_EVENT_COMPLETE_CWR, CA_EVENT_LOSS };
enum { CA_ACK_ECE = 4 };
enum { AF_INET = 2 };
struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	void (*set_state)(struct sock *sk, __u8 state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	void (*in_ack_event)(struct sock *sk, __u32 flags);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	void (*init)(struct sock *sk);
	__u32 (*undo_cwnd)(struct sock *sk);
	char name[16];
};

extern void cubictcp_init(struct sock *sk) __ksym;
extern __u32 cubictcp_recalc_ssthresh(struct sock *sk) __ksym;
extern void cubictcp_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern void cubictcp_state(struct sock *sk, __u8 state) __ksym;
extern void cubictcp_cwnd_event(struct sock *sk, enum tcp_ca_event event) __ksym;
extern void cubictcp_acked(struct sock *sk, const struct ack_sample *sample) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

/* Models by where connections go to: the longest prefix counts. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, OAL_LC_MOST_PREFIXES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct oal_lc_prefix);
	__type(value, struct oal_lc_model);
} models SEC(".maps");

struct counts {
	__u64 n[OAL_LC_N_REASONS];
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counts);
} counters SEC(".maps");

/* CUBIC's own state is in the first 60 bytes of icsk_ca_priv; ours behind it. */
enum { CUBIC_WORDS = 8 };
struct of_connection {
	__u64 cubic[CUBIC_WORDS];
	struct oal_lc_state state;
};
_Static_assert(sizeof(struct of_connection) <= 104, "both fit into icsk_ca_priv");

static __always_inline struct oal_lc_state *state_of(struct sock *sk)
{
	return &((struct of_connection *)((struct tcp_sock *)sk)->inet_conn.icsk_ca_priv)->state;
}

static __always_inline void count(enum oal_lc_reason why)
{
	const __u32 zero = 0;
	struct counts *c = bpf_map_lookup_elem(&counters, &zero);

	if (c && why < OAL_LC_N_REASONS)
		__sync_fetch_and_add(&c->n[why], 1);
}

/* The model for the path of a connection; all zero where there is none. */
static __always_inline void find_model(const struct sock *sk, struct oal_lc_model *copy)
{
	static const struct oal_lc_model none;
	const struct sock_common *to = &sk->__sk_common;
	struct oal_lc_prefix key = { .bits = 128 };
	const struct oal_lc_model *m;

	if (to->skc_family == AF_INET) {
		key.address[2] = bpf_htonl(0xffff);
		key.address[3] = to->skc_daddr;
	} else {
		key.address[0] = to->skc_v6_daddr.in6_u.u6_addr32[0];
		key.address[1] = to->skc_v6_daddr.in6_u.u6_addr32[1];
		key.address[2] = to->skc_v6_daddr.in6_u.u6_addr32[2];
		key.address[3] = to->skc_v6_daddr.in6_u.u6_addr32[3];
	}
	m = bpf_map_lookup_elem(&models, &key);
	*copy = m ? *m : none;
}

SEC("struct_ops/oal_lc_init")
void BPF_PROG(oal_lc_init, struct sock *sk)
{
	static const struct oal_lc_state begin;

	*state_of(sk) = begin;
	cubictcp_init(sk);
}

SEC("struct_ops/oal_lc_ssthresh")
__u32 BPF_PROG(oal_lc_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct oal_lc_model m;
	enum oal_lc_reason why;

	find_model(sk, &m);
	why = oal_lc_decide(state_of(sk), &m, bpf_ktime_get_ns(), tp->snd_una, tp->lost_out + tp->sacked_out);
	count(why);
	return why == OAL_LC_BY_KEPT ? tp->snd_cwnd : cubictcp_recalc_ssthresh(sk);
}

SEC("struct_ops/oal_lc_cwnd_event")
void BPF_PROG(oal_lc_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	if (event == CA_EVENT_LOSS && oal_lc_timeout(state_of(sk)))
		((struct tcp_sock *)sk)->snd_ssthresh = cubictcp_recalc_ssthresh(sk);
	cubictcp_cwnd_event(sk, event);
}

SEC("struct_ops/oal_lc_in_ack_event")
void BPF_PROG(oal_lc_in_ack_event, struct sock *sk, __u32 flags)
{
	if (flags & CA_ACK_ECE)
		oal_lc_marked(state_of(sk), ((struct tcp_sock *)sk)->snd_nxt);
}

SEC("struct_ops/oal_lc_pkts_acked")
void BPF_PROG(oal_lc_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	if (sample->rtt_us >= 0)
		oal_lc_pair(state_of(sk), ((struct tcp_sock *)sk)->snd_cwnd, sample->rtt_us);
	cubictcp_acked(sk, sample);
}

SEC("struct_ops/oal_lc_cong_avoid")
void BPF_PROG(oal_lc_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	cubictcp_cong_avoid(sk, ack, acked);
}

SEC("struct_ops/oal_lc_set_state")
void BPF_PROG(oal_lc_set_state, struct sock *sk, __u8 state)
{
	cubictcp_state(sk, state);
}

SEC("struct_ops/oal_lc_undo_cwnd")
__u32 BPF_PROG(oal_lc_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops")
struct tcp_congestion_ops oal_lc = {
	.init = (void *)oal_lc_init,
	.ssthresh = (void *)oal_lc_ssthresh,
	.cong_avoid = (void *)oal_lc_cong_avoid,
	.set_state = (void *)oal_lc_set_state,
	.cwnd_event = (void *)oal_lc_cwnd_event,
	.in_ack_event = (void *)oal_lc_in_ack_event,
	.pkts_acked = (void *)oal_lc_pkts_acked,
	.undo_cwnd = (void *)oal_lc_undo_cwnd,
	.name = "oal_lc",
};

char _license[] SEC("license") = "GPL";
