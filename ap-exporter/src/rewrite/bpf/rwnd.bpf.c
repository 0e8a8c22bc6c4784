// SPDX-License-Identifier: GPL-2.0-only
/* rwnd.bpf.c: lowers the receive windows of clamped flows, on the port behind which the Wi-Fi clients are.
 *
 * Two tc programs on the port's clsact hooks: `rwnd_up` (ingress) sees what clients send, `rwnd_down` (egress) what
 * goes to them. Each learns what window scale the SYNs and SYN-ACKs of its way offer, and lowers the window of its
 * way's ACKs. A SYN-ACK without the option means that neither side scales (RFC 7323, 2.2), so that without it the offer
 * of a SYN is no more than that. Either side may open the connection.
 *
 * Both always end with TC_ACT_UNSPEC: whatever filters come after them still run. Nothing here reads kernel structures,
 * only the packet and __sk_buff, whose layout is the same in all kernels; so CO-RE and the kernel's BTF are not needed.
 * Needs 5.11 or later (loops, the coarse clock).
 *
 * The hardware's VLAN tag is not in the packet at this point and the kernel puts it back; tags in the packet are
 * stepped over. */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <linux/tcp.h>
#include <stdbool.h>
#include <stddef.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "rwnd_bpf_header.h"
#include "rwnd_bpf_maps.h"

/* Sizes are set at load time. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, struct rwnd_bpf_flow);
	__type(value, struct rwnd_bpf_clamp);
} clamps SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 2048);
	__type(key, struct rwnd_bpf_flow);
	__type(value, union rwnd_bpf_scale);
} scales SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, RWND_BPF_DIRECTIONS);
	__type(key, __u32); /* enum direction */
	__type(value, struct rwnd_bpf_counts);
} counters SEC(".maps");

enum {
	MAX_OPTIONS = 40, /* bytes of TCP options */
	MAX_SCALE = 14,
	COARSE_NS = 50000000,
};
enum direction { UP, DOWN }; /* as enum rwnd_direction */
enum { OPTION_END, OPTION_NOP, OPTION_SCALE = 3 };

static __always_inline void count(enum direction way, enum rwnd_bpf_counter i)
{
	const __u32 key = way;
	struct rwnd_bpf_counts *c = bpf_map_lookup_elem(&counters, &key);

	if (c)
		c->n[i]++; /* of this CPU, and tc programs are not interrupted by each other */
}

static __always_inline void count_outcome(enum direction way, enum outcome outcome)
{
	if (outcome == FRAGMENT)
		count(way, RWND_BPF_FRAGMENT);
	else if (outcome == HEADERS)
		count(way, RWND_BPF_HEADERS);
	else if (outcome == MALFORMED || outcome == SHORT)
		count(way, RWND_BPF_MALFORMED);
}

static __always_inline void name_flow(const struct found *f, enum direction way, struct rwnd_bpf_flow *flow)
{
	const bool up = way == UP;
	__be32 *const src = up ? flow->client : flow->server, *const dst = up ? flow->server : flow->client;

	if (f->v6) {
		const struct ipv6hdr *ip = f->ip;

		__builtin_memcpy(src, &ip->saddr, 16);
		__builtin_memcpy(dst, &ip->daddr, 16);
	} else {
		const struct iphdr *ip = f->ip;

		src[0] = src[1] = dst[0] = dst[1] = 0;
		src[2] = dst[2] = bpf_htonl(0xffff);
		src[3] = ip->saddr;
		dst[3] = ip->daddr;
	}
	flow->client_port = up ? f->tcp->source : f->tcp->dest;
	flow->server_port = up ? f->tcp->dest : f->tcp->source;
	flow->direction = way;
}

/* The window scale option of a SYN: its shift, -1 if there is none, -2 if the options make no sense. */
static __always_inline int offered_scale(struct __sk_buff *skb, __u32 at, __u32 doff)
{
	const __u32 end = at + doff * 4;
	__u32 o = at + sizeof(struct tcphdr);
	__u8 option[3];
	int i;

	for (i = 0; i < MAX_OPTIONS; i++) { /* each takes a byte at least */
		if (o >= end)
			break;
		if (bpf_skb_load_bytes(skb, o, option, 1) < 0) /* the packet ends before its options do */
			return -2;
		if (option[0] == OPTION_END)
			break;
		if (option[0] == OPTION_NOP) {
			o++;
			continue;
		}
		if (o + 2 > end || bpf_skb_load_bytes(skb, o, option, 2) < 0 || option[1] < 2 || o + option[1] > end)
			return -2;
		if (option[0] == OPTION_SCALE)
			return option[1] == 3 && bpf_skb_load_bytes(skb, o, option, 3) == 0 ? option[2] : -2;
		o += option[1];
	}
	return o > end ? -2 : -1;
}

/* What is known of this flow's scale; false: nothing. An entry that is another flow's by now is nothing. */
static __always_inline bool scale_of(const struct rwnd_bpf_flow *flow, __u32 tag, union rwnd_bpf_scale *scale)
{
	const union rwnd_bpf_scale *entry = bpf_map_lookup_elem(&scales, flow);

	if (!entry)
		return false;
	scale->word = *(volatile const __u32 *)&entry->word;
	return scale->tag == (__u16)tag;
}

/* A SYN without ACK: another connection on these ports. What was asked for the one before does not hold for it, and
 * the answer will tell the other way's scale. */
static __always_inline void forget(const struct rwnd_bpf_flow *flow, const struct rwnd_bpf_flow *back)
{
	bpf_map_delete_elem(&clamps, flow);
	bpf_map_delete_elem(&clamps, back);
	bpf_map_delete_elem(&scales, back);
}

/* What an answer says of the SYN that went the other way: without the option neither side scales; with it both do, if
 * that SYN had it too. A SYN that was missed stays missed. False: it had none, so that the answer makes no sense. */
static __always_inline bool answer(const struct rwnd_bpf_flow *back, bool has_option)
{
	const __u32 tag = rwnd_bpf_tag(back);
	union rwnd_bpf_scale scale = {.state = RWND_BPF_KNOWN, .tag = (__u16)tag}, before;

	if (has_option) {
		if (!scale_of(back, tag, &before))
			return true;
		if (before.state != RWND_BPF_OFFERED)
			return before.state != RWND_BPF_NO_OPTION;
		scale.scale = before.scale;
	}
	bpf_map_update_elem(&scales, back, &scale, BPF_ANY);
	return true;
}

/* A SYN, with or without ACK, of this way. */
static __always_inline void learn(struct __sk_buff *skb, const struct found *f, const struct rwnd_bpf_flow *flow,
				  bool ack, __u32 doff)
{
	const int offer = offered_scale(skb, f->at, doff);
	const __u32 tag = rwnd_bpf_tag(flow);
	union rwnd_bpf_scale scale = {.state = RWND_BPF_NO_OPTION, .tag = (__u16)tag};
	struct rwnd_bpf_flow back = *flow;
	bool refused = offer == -2 || offer > MAX_SCALE;

	back.direction = flow->direction == UP ? DOWN : UP;
	count(flow->direction, RWND_BPF_SYN);
	if (offer == -2)
		count(flow->direction, RWND_BPF_BAD_OPTIONS);
	if (!ack)
		forget(flow, &back);
	else if (offer != -2 && !answer(&back, offer != -1)) /* of options that make no sense nothing is believed */
		refused = true;
	if (refused) {
		scale.state = RWND_BPF_REFUSED;
	} else if (offer >= 0) {
		scale.scale = offer;
		/* An answer has the option only if the question had. */
		scale.state = ack ? RWND_BPF_KNOWN : RWND_BPF_OFFERED;
	}
	bpf_map_update_elem(&scales, flow, &scale, BPF_ANY);
}

/* The field for this flow's header, once its scale is sure; 0: it is not, and `*why` says so. `deadline_ns` is what the
 * entry said before; an entry whose parts are not of one setting of this flow is being replaced. */
static __always_inline __u32 verify(struct rwnd_bpf_clamp *c, const struct rwnd_bpf_flow *flow, __u32 tag,
				    __u64 deadline_ns, enum rwnd_bpf_counter *why)
{
	const volatile struct rwnd_bpf_clamp *now = c;
	const __u32 bytes = now->bytes, floor_bytes = now->floor_bytes;
	__u32 scale = now->scale, raw;
	union rwnd_bpf_scale learned;
	bool known;

	*why = RWND_BPF_REPLACED;
	if (now->seal != rwnd_bpf_seal(tag, deadline_ns, bytes, floor_bytes, scale))
		return 0;
	*why = RWND_BPF_UNKNOWN_SCALE;
	known = scale_of(flow, tag, &learned);
	if (known ? learned.state == RWND_BPF_REFUSED : scale == RWND_BPF_LEARNED)
		return 0;
	if (scale == RWND_BPF_LEARNED) {
		if (learned.state == RWND_BPF_OFFERED)
			return 0;
		scale = learned.scale;
	} else if (known && learned.scale != scale) {
		*why = RWND_BPF_OTHER_SCALE;
		return 0;
	}
	if (scale > MAX_SCALE)
		return 0;
	raw = bytes >> scale;
	if ((__u64)raw << scale < floor_bytes)
		raw++;
	if (!raw)
		raw = 1;
	if (raw > 0xffff)
		raw = 0xffff;
	/* If the memory is another entry's by now, that entry's packets see that this is not their stamp. */
	*(volatile __u64 *)&c->verdict = rwnd_bpf_stamp(tag, deadline_ns) | raw;
	return raw;
}

/* Has this time come? The coarse clock is cheap and late by up to a timer tick (10 ms and less); near the deadline the
 * exact one decides. */
static __always_inline bool over(__u64 deadline_ns)
{
	const __u64 coarse_ns = bpf_ktime_get_coarse_ns();

	if (coarse_ns + COARSE_NS < deadline_ns)
		return false;
	return bpf_ktime_get_ns() >= deadline_ns;
}

/* A sum in ones' complement, folded to 16 bits. */
static __always_inline __u16 fold(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

/* The sum of the pseudo header, which is all that a checksum holds that is yet to be made; 0: it is not known. */
static __always_inline __u16 pseudo_sum(const struct found *f)
{
	__u64 sum = bpf_htons(IPPROTO_TCP);
	int i;

	if (f->v6) {
		const struct ipv6hdr *ip = f->ip;
		const __be32 *words = (const __be32 *)&ip->saddr;

		if ((void *)f->tcp - f->ip != sizeof *ip) /* a routing header may have the address that counts */
			return 0;
		sum += ip->payload_len;
#pragma unroll
		for (i = 0; i < 8; i++)
			sum += words[i];
	} else {
		const struct iphdr *ip = f->ip;

		sum += (__u64)bpf_htons(bpf_ntohs(ip->tot_len) - ip->ihl * 4u) + ip->saddr + ip->daddr;
	}
	return fold(sum);
}

/* Writes the window, and what that makes of the checksum (RFC 1624). False: there was no memory to make the header ours
 * alone.
 *
 * A checksum that is yet to be made (GRO, TSO, a sender on this machine) must stay as it is; only the kernel's helper
 * sees which those are, and it costs more than all the rest here. But such a checksum is the sum of the pseudo header.
 * One that is another is made, and what is written then needs no helper: a sum that a NIC made over the whole packet
 * stays true, since what the window loses, the checksum gains. One in 65,536 that are made looks like one that is not,
 * and goes to the helper in vain. */
static __always_inline bool lower_window(struct __sk_buff *skb, const struct found *f, __be16 window, __be16 lower)
{
	const __u16 pseudo = skb->gso_size ? 0 : pseudo_sum(f), check = f->tcp->check;

	if (pseudo && check != pseudo && (__u16)(check + 1) > 1) { /* 0 and 0xffff are one number */
		f->tcp->window = lower;
		f->tcp->check = ~fold((__u64)(__u16)~check + (__u16)~window + lower);
		return true;
	}
	/* The checksum first: it may fail, and what follows then does not, since it is the same bytes. */
	return bpf_l4_csum_replace(skb, f->at + offsetof(struct tcphdr, check), window, lower, sizeof lower) == 0 &&
	       bpf_skb_store_bytes(skb, f->at + offsetof(struct tcphdr, window), &lower, sizeof lower, 0) == 0;
}

/* A packet of this way. */
static __always_inline void pass(struct __sk_buff *skb, enum direction way)
{
	struct rwnd_bpf_flow flow;
	struct rwnd_bpf_clamp *c;
	enum rwnd_bpf_counter why;
	__u64 deadline_ns, verdict;
	enum outcome outcome;
	struct found f;
	__be16 window, lower;
	__u32 raw, tag;

	outcome = inspect(skb, &f);
	if (outcome != TCP) {
		count_outcome(way, outcome);
		return;
	}
	if (f.tcp->rst) {
		count(way, RWND_BPF_RST);
		return;
	}
	name_flow(&f, way, &flow);
	if (f.tcp->syn) {
		learn(skb, &f, &flow, f.tcp->ack, f.tcp->doff);
		return;
	}
	if (!f.tcp->ack) {
		count(way, RWND_BPF_NO_ACK);
		return;
	}
	window = f.tcp->window;
	c = bpf_map_lookup_elem(&clamps, &flow);
	if (!c) {
		count(way, RWND_BPF_NO_CLAMP);
		return;
	}
	tag = rwnd_bpf_tag(&flow);
	deadline_ns = *(volatile __u64 *)&c->deadline_ns;
	verdict = *(volatile __u64 *)&c->verdict;
	raw = verdict & 0xffff;
	if ((verdict & RWND_BPF_STAMP) != rwnd_bpf_stamp(tag, deadline_ns) || !raw)
		raw = verify(c, &flow, tag, deadline_ns, &why);
	if (!raw) {
		count(way, why);
		return;
	}
	if (bpf_ntohs(window) <= raw) { /* a window of 0 among them */
		count(way, RWND_BPF_BELOW);
		return;
	}
	if (over(deadline_ns)) {
		count(way, RWND_BPF_EXPIRED);
		return;
	}
	lower = bpf_htons((__u16)raw);
	if (!lower_window(skb, &f, window, lower))
		count(way, RWND_BPF_FAILED);
	else
		count(way, RWND_BPF_CLAMPED);
}

SEC("tc")
int rwnd_up(struct __sk_buff *skb)
{
	pass(skb, UP);
	return TC_ACT_UNSPEC;
}

SEC("tc")
int rwnd_down(struct __sk_buff *skb)
{
	pass(skb, DOWN);
	return TC_ACT_UNSPEC;
}

char _license[] SEC("license") = "GPL";
