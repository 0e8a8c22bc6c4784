// SPDX-License-Identifier: GPL-2.0-only
/* bench_mark.bpf.c: gives a packet its IP header's first bytes back before the program in slot 0 of `next` runs. A
 * packet that got CE once would be left as it is from then on, and no mark would be measured. */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} next SEC(".maps");

struct restore {
	__u32 at;
	__u8 bytes[12]; /* ECN field, and IPv4's checksum */
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct restore);
} restores SEC(".maps");

SEC("tc")
int restore(struct __sk_buff *skb)
{
	const __u32 zero = 0;
	const struct restore *r = bpf_map_lookup_elem(&restores, &zero);

	if (r)
		bpf_skb_store_bytes(skb, r->at, r->bytes, sizeof r->bytes, 0);
	bpf_tail_call(skb, &next, 0);
	return TC_ACT_SHOT;
}

SEC("tc")
int nothing(struct __sk_buff *skb)
{
	return TC_ACT_UNSPEC;
}

char _license[] SEC("license") = "GPL";
