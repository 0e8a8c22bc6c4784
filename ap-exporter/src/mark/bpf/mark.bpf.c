// SPDX-License-Identifier: GPL-2.0-only
/* mark.bpf.c: sets CE in packets to stations that wait, on the port behind which they are.
 *
 * Two tc programs on the port's clsact hooks. `mark_down` (egress) sees what goes to stations. `mark_up` (ingress) does
 * nothing: programs are put on a port in pairs, and the one at ingress tells whose pair is there.
 *
 * Both always end with TC_ACT_UNSPEC: whatever filters come after them still run. Left alone is: a packet without ECT,
 * or with CE; one to a group; one with a VLAN tag; anything but IPv4 and IPv6. Nothing here reads kernel structures,
 * only the packet and __sk_buff; so CO-RE and the kernel's BTF are not needed. Needs 5.11 or later (the coarse clock).
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <stdbool.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "mark_bpf_maps.h"

/* Sizes are set at load time. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, struct mark_bpf_station);
	__type(value, struct mark_bpf_state);
} states SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MARK_BPF_SLOTS);
	__type(key, __u32);
	__type(value, struct mark_bpf_spacing);
} spacings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct mark_bpf_counts);
} counters SEC(".maps");

enum { COARSE_NS = 50000000 };
enum { NOT_ECT, ECT1, ECT0, CE, NO_IP };

static __always_inline void count(enum mark_bpf_counter i)
{
	const __u32 zero = 0;
	struct mark_bpf_counts *c = bpf_map_lookup_elem(&counters, &zero);

	if (c)
		c->n[i]++; /* of this CPU, and tc programs are not interrupted by each other */
}

/* Has this time come? `coarse_ns` is cheap and late by up to a timer tick (10 ms and less); near the deadline the exact
 * clock decides. */
static __always_inline bool over(__u64 deadline_ns, __u64 coarse_ns)
{
	if (coarse_ns + COARSE_NS < deadline_ns)
		return false;
	return bpf_ktime_get_ns() >= deadline_ns;
}

/* The ECN field of a packet; NO_IP: it has none, or a VLAN tag before it. */
static __always_inline unsigned ecn_of(struct __sk_buff *skb)
{
	void *const data = (void *)(long)skb->data, *const end = (void *)(long)skb->data_end;
	const struct ethhdr *eth = data;
	const __u8 *ip = data + sizeof *eth;

	if (skb->vlan_present || (void *)(ip + 2) > end)
		return NO_IP;
	if (eth->h_proto == bpf_htons(ETH_P_IP) && ip[0] >> 4 == 4)
		return ip[1] & 3;
	if (eth->h_proto == bpf_htons(ETH_P_IPV6) && ip[0] >> 4 == 6)
		return ip[1] >> 4 & 3;
	return NO_IP;
}

/* Is a packet with ECT(0) to this station due? Its spacing begins with the first of them. By the coarse clock: a mark
 * may be a timer tick (10 ms and less) late, and where marks would be less than a tick apart there are fewer. */
static __always_inline bool due(const struct mark_bpf_station *station, const struct mark_bpf_state *s, __u64 coarse_ns)
{
	const __u32 slot = s->slot;
	struct mark_bpf_spacing *p = bpf_map_lookup_elem(&spacings, &slot);

	if (!p)
		return false;
	if (*(__u64 *)&p->station != *(const __u64 *)station) {
		const struct mark_bpf_spacing begin = {.station = *station};

		*p = begin;
	}
	return mark_bpf_due(p, s->since_ns, s->interval_ns, coarse_ns);
}

/* Headers that are not in the packet's linear part, or that it shares with another, are made its own first. */
static __always_inline bool set_ce_by_helper(struct __sk_buff *skb)
{
	if (bpf_skb_ecn_set_ce(skb) == 1)
		return true;
	if (bpf_skb_pull_data(skb, sizeof(struct ethhdr) + sizeof(struct ipv6hdr)) < 0 &&
	    bpf_skb_pull_data(skb, sizeof(struct ethhdr) + sizeof(struct iphdr)) < 0)
		return false;
	return bpf_skb_ecn_set_ce(skb) == 1;
}

/* IPv4's own checksum makes up for the mark (RFC 1624), so that no other sum changes and no helper is needed, which
 * would cost more than the rest. IPv6 has none: a sum that a NIC made over the whole packet changes, and only the
 * kernel's helper reaches that. */
static __always_inline bool set_ce(struct __sk_buff *skb)
{
	void *const data = (void *)(long)skb->data, *const end = (void *)(long)skb->data_end;
	const struct ethhdr *eth = data;
	struct iphdr *ip = data + sizeof *eth;
	__u32 sum;

	if ((void *)(ip + 1) > end || eth->h_proto != bpf_htons(ETH_P_IP))
		return set_ce_by_helper(skb);
	sum = ip->check + (__u16)~bpf_htons(CE - (ip->tos & 3)); /* only bits of the field's own are added, no carry */
	ip->check = (sum & 0xffff) + (sum >> 16);
	ip->tos |= CE;
	return true;
}

SEC("tc")
int mark_down(struct __sk_buff *skb)
{
	void *const data = (void *)(long)skb->data, *const end = (void *)(long)skb->data_end;
	struct mark_bpf_station station = { 0 };
	const struct ethhdr *eth = data;
	const volatile struct mark_bpf_state *entry;
	struct mark_bpf_state s;
	__u64 coarse_ns;
	unsigned ecn;

	if ((void *)(eth + 1) > end || eth->h_dest[0] & 1)
		return TC_ACT_UNSPEC;
	__builtin_memcpy(station.mac, eth->h_dest, sizeof station.mac);
	entry = bpf_map_lookup_elem(&states, &station);
	if (!entry)
		return TC_ACT_UNSPEC;
	s.deadline_ns = entry->deadline_ns;
	s.since_ns = entry->since_ns;
	s.interval_ns = entry->interval_ns;
	s.marks = entry->marks;
	s.slot = entry->slot;
	s.seal = entry->seal;
	ecn = ecn_of(skb);
	if (ecn == NO_IP) {
		count(MARK_BPF_N_OTHER);
	} else if (ecn == NOT_ECT) {
		count(MARK_BPF_N_NOT_ECT);
	} else if (ecn == CE) {
		count(MARK_BPF_N_CE);
	} else if (s.seal != mark_bpf_seal(&station, &s)) {
		count(MARK_BPF_N_REPLACED);
	} else {
		coarse_ns = bpf_ktime_get_coarse_ns();
		if (over(s.deadline_ns, coarse_ns))
			count(MARK_BPF_N_EXPIRED);
		else if (!(s.marks & (ecn == ECT1 ? MARK_BPF_ECT1 : MARK_BPF_ECT0)) ||
			 (ecn == ECT0 && !due(&station, &s, coarse_ns)))
			count(MARK_BPF_N_SPARED);
		else if (!set_ce(skb))
			count(MARK_BPF_N_FAILED);
		else
			count(ecn == ECT1 ? MARK_BPF_N_MARKED_ECT1 : MARK_BPF_N_MARKED_ECT0);
	}
	return TC_ACT_UNSPEC;
}

SEC("tc")
int mark_up(struct __sk_buff *skb)
{
	return TC_ACT_UNSPEC;
}

char _license[] SEC("license") = "GPL";
