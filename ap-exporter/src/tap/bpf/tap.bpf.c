// SPDX-License-Identifier: GPL-2.0-only
/* tap.bpf.c: copies the headers of TCP packets from the port behind which the Wi-Fi clients are into a ring.
 *
 * Two tc programs on the port's clsact hooks: at ingress come packets from stations, at egress go those to them. Here
 * they have the addresses that the stations know, before NAT, and the station's Ethernet address. Both always end with
 * TC_ACT_UNSPEC and change nothing: whatever filters come after them still run. Nobody is woken: the reader looks once
 * a tick. Bytes are counted for stations that the reader put into the map, whatever the frames hold, so that what
 * passes this port by can be told.
 *
 * Only the packet and __sk_buff are read, so neither CO-RE nor the kernel's BTF is needed; 5.8 or later. */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <linux/tcp.h>
#include <stdbool.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "tap_maps.h"

/* Sizes are set at load time. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 262144);
} ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32); /* a processor */
	__type(value, struct tap_counts);
} counts SEC(".maps");

/* Filled by the reader alone. The key is the station's Ethernet address, first octet lowest, as it lies in a frame. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 64);
	__type(key, __u64);
	__type(value, struct tap_bytes);
} stations SEC(".maps");

enum {
	MAX_TAGS = 2, /* in the packet; the hardware's is not in it at this point */
	LOOK_BYTES = 96, /* so much must be linear to see what a packet is: Ethernet, 2 tags, IPv4 with options, TCP */
};

static __always_inline __u32 shorter(__u32 a, __u32 b)
{
	return a < b ? a : b;
}

/* Bytes of this frame that are headers; 0: not TCP. Behind IPv6 extension headers all that a record can take: the
 * reader follows them. */
static __always_inline __u32 header_bytes(const struct __sk_buff *skb)
{
	const void *const data = (void *)(long)skb->data, *const end = (void *)(long)skb->data_end;
	const struct ethhdr *eth = data;
	const void *p = data + sizeof *eth;
	const struct tcphdr *tcp;
	__be16 type;
	int i;

	if (p > end)
		return 0;
	type = eth->h_proto;
#pragma unroll
	for (i = 0; i < MAX_TAGS; i++) {
		const __be16 *tag = p; /* tag, then the type of what follows */

		if (type != bpf_htons(ETH_P_8021Q) && type != bpf_htons(ETH_P_8021AD))
			break;
		if ((const void *)(tag + 2) > end)
			return 0;
		type = tag[1];
		p = tag + 2;
	}
	if (type == bpf_htons(ETH_P_IP)) {
		const struct iphdr *ip = p;

		if ((const void *)(ip + 1) > end || ip->protocol != IPPROTO_TCP)
			return 0;
		tcp = p + ip->ihl * 4u;
	} else if (type == bpf_htons(ETH_P_IPV6)) {
		const struct ipv6hdr *ip = p;

		if ((const void *)(ip + 1) > end)
			return 0;
		if (ip->nexthdr == IPPROTO_HOPOPTS || ip->nexthdr == IPPROTO_ROUTING || ip->nexthdr == IPPROTO_DSTOPTS)
			return TAP_FRAME_BYTES;
		if (ip->nexthdr != IPPROTO_TCP)
			return 0;
		tcp = p + sizeof *ip;
	} else {
		return 0;
	}
	if ((const void *)(tcp + 1) > end)
		return TAP_FRAME_BYTES; /* a fragment, or malformed: the reader says which */
	return (const void *)tcp - data + tcp->doff * 4u;
}

static __always_inline void count_station(const struct __sk_buff *skb, bool up)
{
	const void *const data = (void *)(long)skb->data, *const end = (void *)(long)skb->data_end;
	const struct ethhdr *eth = data;
	struct tap_bytes *bytes;
	__u64 mac = 0;

	if ((const void *)(eth + 1) > end)
		return;
	__builtin_memcpy(&mac, up ? eth->h_source : eth->h_dest, ETH_ALEN);
	bytes = bpf_map_lookup_elem(&stations, &mac);
	if (bytes && up)
		bytes->up += skb->len;
	else if (bytes)
		bytes->down += skb->len;
}

/* `bytes` has 64 bits: of fewer the compiler compares a copy, and verifiers learn nothing of what is then used. */
static __always_inline void copy(struct __sk_buff *skb, __u64 bytes, bool up, struct tap_counts *c)
{
	struct tap_record *r = bpf_ringbuf_reserve(&ring, sizeof *r, 0);

	if (!r) {
		if (c)
			c->overruns++; /* of this processor, and tc programs are not interrupted by each other */
		return;
	}
	r->monotonic_ns = bpf_ktime_get_ns();
	r->wire_bytes = skb->len;
	r->up = up;
	r->unused = 0;
	r->bytes = 0; /* the reader counts it as cut */
	if (bytes > TAP_FRAME_BYTES)
		bytes = TAP_FRAME_BYTES;
	asm volatile("" : "+r"(bytes)); /* or one comparison is made of both, which verifiers do not grasp */
	if (bytes >= sizeof(struct ethhdr) && bpf_skb_load_bytes(skb, 0, r->frame, bytes) == 0)
		r->bytes = bytes;
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
}

static __always_inline void tap(struct __sk_buff *skb, bool up)
{
	const __u32 cpu = bpf_get_smp_processor_id();
	struct tap_counts *c = bpf_map_lookup_elem(&counts, &cpu);
	__u32 look = shorter(skb->len, LOOK_BYTES), bytes;

	if (c)
		c->frames++;
	if ((__u32)(skb->data_end - skb->data) < look)
		bpf_skb_pull_data(skb, look); /* without memory for it the packet is taken for another kind */
	count_station(skb, up);
	bytes = header_bytes(skb);
	if (bytes)
		copy(skb, shorter(bytes, skb->len), up, c);
}

SEC("tc")
int tap_up(struct __sk_buff *skb)
{
	tap(skb, true);
	return TC_ACT_UNSPEC;
}

SEC("tc")
int tap_down(struct __sk_buff *skb)
{
	tap(skb, false);
	return TC_ACT_UNSPEC;
}

char _license[] SEC("license") = "GPL";
