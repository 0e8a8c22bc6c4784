/* SPDX-License-Identifier: GPL-2.0-only */
/* rwnd_bpf_header.h: where a packet's TCP header is, for tc programs. */
#ifndef OAL_RWND_BPF_HEADER_H
#define OAL_RWND_BPF_HEADER_H

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <stdbool.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

enum {
	MAX_TAGS = 2, /* in the packet; with the hardware's that is one more than QinQ */
	MAX_EXTENSIONS = 4,
	/* As much as is made contiguous: Ethernet, 2 tags, IPv6 with some extensions, TCP with all options. */
	HEADERS_BYTES = 192,
};

/* Where the TCP header is. */
struct found {
	void *ip;
	struct tcphdr *tcp;
	__u32 at; /* of the TCP header in the packet */
	bool v6;
};
enum outcome { TCP, OTHER, SHORT, FRAGMENT, HEADERS, MALFORMED };

static __always_inline enum outcome find_v4(void *p, void *end, struct found *f)
{
	const struct iphdr *ip = p;
	__u32 header;

	if ((void *)(ip + 1) > end)
		return SHORT;
	if (ip->protocol != IPPROTO_TCP)
		return OTHER;
	if (ip->frag_off & bpf_htons(0x3fff)) /* an offset, or more to come */
		return FRAGMENT;
	header = ip->ihl * 4u;
	if (ip->version != 4 || header < sizeof *ip)
		return MALFORMED;
	if (ip->tot_len && bpf_ntohs(ip->tot_len) < header + sizeof(struct tcphdr)) /* 0: merged to more than 64 KiB */
		return MALFORMED;
	f->ip = p;
	f->v6 = false;
	f->tcp = p + header;
	return TCP;
}

static __always_inline enum outcome find_v6(void *p, void *end, struct found *f)
{
	const struct ipv6hdr *ip = p;
	__u8 next;
	int i;

	if ((void *)(ip + 1) > end)
		return SHORT;
	if (ip->version != 6)
		return MALFORMED;
	f->ip = p;
	f->v6 = true;
	next = ip->nexthdr;
	p = (void *)(ip + 1);
	for (i = 0; i <= MAX_EXTENSIONS; i++) {
		const __u8 *extension = p;

		if (next == IPPROTO_TCP) {
			f->tcp = p;
			return TCP;
		}
		if (next == IPPROTO_FRAGMENT)
			return FRAGMENT;
		if (next != IPPROTO_HOPOPTS && next != IPPROTO_DSTOPTS && next != IPPROTO_ROUTING && next != IPPROTO_AH)
			return OTHER;
		if ((void *)(extension + 8) > end)
			return SHORT;
		p += next == IPPROTO_AH ? (extension[1] + 2u) * 4 : (extension[1] + 1u) * 8;
		next = extension[0];
	}
	return HEADERS;
}

static __always_inline enum outcome find_tcp(struct __sk_buff *skb, struct found *f)
{
	void *const data = (void *)(long)skb->data, *const end = (void *)(long)skb->data_end;
	const struct ethhdr *eth = data;
	void *p = data + sizeof *eth;
	enum outcome outcome;
	__be16 type;
	int i;

	if (p > end)
		return SHORT;
	type = eth->h_proto;
#pragma unroll
	for (i = 0; i < MAX_TAGS; i++) {
		const __be16 *tag = p; /* tag, then the type of what follows */

		if (type != bpf_htons(ETH_P_8021Q) && type != bpf_htons(ETH_P_8021AD))
			break;
		if ((void *)(tag + 2) > end)
			return SHORT;
		type = tag[1];
		p = (void *)(tag + 2);
	}
	if (type == bpf_htons(ETH_P_IP))
		outcome = find_v4(p, end, f);
	else if (type == bpf_htons(ETH_P_IPV6))
		outcome = find_v6(p, end, f);
	else
		return OTHER;
	if (outcome != TCP)
		return outcome;
	if ((void *)(f->tcp + 1) > end)
		return SHORT;
	f->at = (void *)f->tcp - data;
	return f->tcp->doff < 5 ? MALFORMED : TCP;
}

/* The TCP header of a packet. One that is not in the packet's linear part is brought there. */
static __always_inline enum outcome inspect(struct __sk_buff *skb, struct found *f)
{
	enum outcome outcome = SHORT;
	int i;

#pragma clang loop unroll(disable)
	for (i = 0; i < 2; i++) {
		__u32 bytes = skb->len;

		outcome = find_tcp(skb, f);
		if (outcome != SHORT || bytes <= (__u32)(skb->data_end - skb->data))
			return outcome;
		if (bytes > HEADERS_BYTES)
			bytes = HEADERS_BYTES;
		if (i || bpf_skb_pull_data(skb, bytes) < 0)
			break;
	}
	return i ? HEADERS : SHORT; /* headers longer than what is brought there */
}

#endif
