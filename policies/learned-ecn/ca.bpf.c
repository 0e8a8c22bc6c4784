// SPDX-License-Identifier: GPL-2.0-only
/* ca.bpf.c: oal_ecn as struct_ops, for hosts: DCTCP's law by the marks that ca.h makes of round trips. The same as
 * ca_kernel.c, hook by hook.
 *
 * Needs a kernel with BTF, JIT and Reno's functions as kfuncs. It is registered while whoever loaded it lives; without
 * a model, or after its deadline, it is Reno. */
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
	__u32 snd_una, snd_nxt, snd_cwnd, snd_ssthresh;
	__u64 tcp_mstamp;
};
struct ack_sample {
	__u32 pkts_acked;
	__s32 rtt_us;
};
#pragma clang attribute pop

enum { AF_INET = 2 };
struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	void (*init)(struct sock *sk);
	__u32 (*undo_cwnd)(struct sock *sk);
	char name[16];
};

extern __u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

/* Models by where connections go to, IPv4 as ::ffff:a.b.c.d: the longest prefix counts. */
struct oal_ecn_prefix {
	__u32 bits;
	__be32 address[4];
};
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 4096);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct oal_ecn_prefix);
	__type(value, struct oal_ecn_model);
} models SEC(".maps");

/* Packets by why they counted as marked or not. */
struct counts {
	__u64 n[OAL_ECN_N_REASONS];
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counts);
} counters SEC(".maps");

_Static_assert(sizeof(struct oal_ecn_state) <= 104, "it fits into icsk_ca_priv");

static __always_inline struct oal_ecn_state *state_of(struct sock *sk)
{
	return (struct oal_ecn_state *)((struct tcp_sock *)sk)->inet_conn.icsk_ca_priv;
}

static __always_inline void count(enum oal_ecn_reason why, __u32 packets)
{
	const __u32 zero = 0;
	struct counts *c = bpf_map_lookup_elem(&counters, &zero);

	if (c && why < OAL_ECN_N_REASONS)
		__sync_fetch_and_add(&c->n[why], packets);
}

/* The model for the path of a connection; all zero where there is none. */
static __always_inline void find_model(const struct sock *sk, struct oal_ecn_model *copy)
{
	static const struct oal_ecn_model none;
	const struct sock_common *to = &sk->__sk_common;
	struct oal_ecn_prefix key = { .bits = 128 };
	const struct oal_ecn_model *m;

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

SEC("struct_ops/oal_ecn_init")
void BPF_PROG(oal_ecn_init, struct sock *sk)
{
	oal_ecn_begin(state_of(sk));
}

SEC("struct_ops/oal_ecn_ssthresh")
__u32 BPF_PROG(oal_ecn_ssthresh, struct sock *sk)
{
	return tcp_reno_ssthresh(sk);
}

SEC("struct_ops/oal_ecn_pkts_acked")
void BPF_PROG(oal_ecn_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	const struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct oal_ecn_state *s = state_of(sk);
	enum oal_ecn_reason why = OAL_ECN_BY_UNKNOWN;
	__u32 steep = 0;

	if (sample->rtt_us >= 0) {
		struct oal_ecn_model m;

		find_model(sk, &m);
		oal_ecn_told(s, tp->tcp_mstamp, sample->rtt_us);
		why = oal_ecn_mark(s, &m, bpf_ktime_get_ns());
		steep = m.steep;
	}
	count(why, sample->pkts_acked);
	oal_ecn_acked(s, why == OAL_ECN_BY_MARKED, sample->pkts_acked, tp->snd_una, tp->snd_nxt);
	s->times = oal_ecn_times(s, steep, tp->snd_cwnd);
}

SEC("struct_ops/oal_ecn_cong_avoid")
void BPF_PROG(oal_ecn_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct oal_ecn_state *s = state_of(sk);
	const __u8 action = s->action;

	s->action = OAL_ECN_HOLD;
	if (action == OAL_ECN_CUT) {
		const __u32 left = oal_ecn_window(s, tp->snd_cwnd);

		tp->snd_ssthresh = left;
		tp->snd_cwnd = left;
	} else if (action == OAL_ECN_GROW) {
		const int slow_start = tp->snd_cwnd < tp->snd_ssthresh;

		tcp_reno_cong_avoid(sk, ack, slow_start ? acked : acked * s->times);
	}
}

SEC("struct_ops/oal_ecn_undo_cwnd")
__u32 BPF_PROG(oal_ecn_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops")
struct tcp_congestion_ops oal_ecn = {
	.init = (void *)oal_ecn_init,
	.ssthresh = (void *)oal_ecn_ssthresh,
	.cong_avoid = (void *)oal_ecn_cong_avoid,
	.pkts_acked = (void *)oal_ecn_pkts_acked,
	.undo_cwnd = (void *)oal_ecn_undo_cwnd,
	.name = "oal_ecn",
};

char _license[] SEC("license") = "GPL";
