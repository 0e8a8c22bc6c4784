// SPDX-License-Identifier: GPL-2.0-only
/* cc.bpf.c: gives a connection the congestion control that was chosen for where it goes to, as it begins: before the
 * SYN of one that connects, before the first data of one that is accepted.
 *
 * A program on a cgroup (sockops). It changes nothing of connections that run, nor of those without a choice; and what
 * it is attached by ends with the process that attached it. */
#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "cc_maps.h"

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, CC_MOST_PREFIXES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct cc_prefix);
	__type(value, struct cc_choice);
} choices SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cc_counts);
} counters SEC(".maps");

enum { AF_INET = 2, AF_INET6 = 10, SOL_TCP = 6, TCP_CONGESTION = 13 };

static __always_inline void count(enum cc_counter i)
{
	const __u32 zero = 0;
	struct cc_counts *c = bpf_map_lookup_elem(&counters, &zero);

	if (c) {
		__sync_fetch_and_add(&c->n[i], 1);
		/* Else the compiler makes one addition of two counters', at an offset that is worked out: without
		 * CAP_PERFMON the verifier refuses that. */
		asm volatile("" ::"i"(i));
	}
}

SEC("sockops")
int choose(struct bpf_sock_ops *ops)
{
	struct cc_prefix to = { .bits = 128 };
	const struct cc_choice *choice;
	char name[CC_NAME_BYTES];

	if (ops->op != BPF_SOCK_OPS_TCP_CONNECT_CB && ops->op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		return 1;
	if (ops->family == AF_INET) {
		to.address[2] = bpf_htonl(0xffff);
		to.address[3] = ops->remote_ip4;
		/* Else the compiler makes one load of this and the one below, at an offset that the verifier refuses.
		 */
		asm volatile("" ::: "memory");
	} else if (ops->family == AF_INET6) {
		to.address[0] = ops->remote_ip6[0];
		to.address[1] = ops->remote_ip6[1];
		to.address[2] = ops->remote_ip6[2];
		to.address[3] = ops->remote_ip6[3];
	} else {
		return 1;
	}
	choice = bpf_map_lookup_elem(&choices, &to);
	if (!choice)
		return 1;
	if (bpf_ktime_get_ns() >= choice->deadline_ns) {
		count(CC_N_EXPIRED);
		return 1;
	}
	__builtin_memcpy(name, choice->name, sizeof name);
	name[CC_NAME_BYTES - 1] = '\0';
	if (bpf_setsockopt(ops, SOL_TCP, TCP_CONGESTION, name, sizeof name))
		count(CC_N_FAILED);
	else
		count(CC_N_SET);
	return 1;
}

char _license[] SEC("license") = "GPL";
