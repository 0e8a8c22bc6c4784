#include "sender/inet_diag.h"

#include "netlink/nl_attr.h"

#include <linux/inet_diag.h>
#include <linux/tcp.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

enum { INFINITE_SSTHRESH = 0x7fffffff };

static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff }; /* ::ffff:a.b.c.d */

static uint16_t big16(uint16_t wire)
{
	return (uint16_t)(((const uint8_t *)&wire)[0] << 8 | ((const uint8_t *)&wire)[1]);
}

static uint32_t bytes_of(uint64_t segments, uint32_t mss)
{
	const uint64_t bytes = segments * mss;

	return bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX - 1;
}

/* Bytes a second as bits; what is more than a column holds is as much as it holds. */
static uint64_t bits_of(uint64_t bytes)
{
	return bytes > INT64_MAX / 8 ? INT64_MAX : bytes * 8;
}

/* A socket of IPv6 with IPv4 at both ends is a connection of IPv4: access points on the way see that. */
static bool read_flow(const struct inet_diag_msg *m, struct sender_flow *f)
{
	const uint8_t *near = (const uint8_t *)m->id.idiag_src, *far = (const uint8_t *)m->id.idiag_dst;

	*f = (struct sender_flow){ .near_port = big16(m->id.idiag_sport), .far_port = big16(m->id.idiag_dport) };
	if (m->idiag_family == AF_INET) {
		f->addr_len = 4;
	} else if (m->idiag_family != AF_INET6) {
		return false;
	} else if (!memcmp(near, mapped, sizeof mapped) && !memcmp(far, mapped, sizeof mapped)) {
		f->addr_len = 4;
		near += sizeof mapped;
		far += sizeof mapped;
	} else {
		f->addr_len = 16;
	}
	memcpy(f->near, near, f->addr_len);
	memcpy(f->far, far, f->addr_len);
	return f->far_port && f->near_port;
}

static bool is_loopback(const struct sender_flow *f)
{
	static const uint8_t one[16] = { [15] = 1 };

	return f->addr_len == 4 ? f->far[0] == 127 : !memcmp(f->far, one, sizeof one);
}

/* `len` bytes of it are the kernel's; older ones have fewer. */
static void read_info(const struct tcp_info *i, size_t len, struct sender_look *out)
{
	const uint32_t mss = i->tcpi_snd_mss;
	const bool infinite = i->tcpi_snd_ssthresh >= INFINITE_SSTHRESH;
	struct oal_sender_tcp_row *const r = &out->row;

	memset(r, 0, sizeof *r); /* rows are compared whole, padding and all */
	r->state = i->tcpi_state;
	r->app_limited = i->tcpi_delivery_rate_app_limited;
	r->cwnd_bytes = bytes_of(i->tcpi_snd_cwnd, mss);
	r->ssthresh_bytes = infinite ? UINT32_MAX : bytes_of(i->tcpi_snd_ssthresh, mss);
	r->mss_bytes = mss < UINT16_MAX ? (uint16_t)mss : UINT16_MAX;
	r->unacked_pkts = i->tcpi_unacked;
	r->rtt_us = i->tcpi_rtt;
	r->rttvar_us = i->tcpi_rttvar;
	r->min_rtt_us = i->tcpi_min_rtt == UINT32_MAX ? 0 : i->tcpi_min_rtt;
	r->delivery_rate_bps = bits_of(i->tcpi_delivery_rate);
	r->pacing_rate_bps = bits_of(i->tcpi_pacing_rate);
	r->bytes_acked = i->tcpi_bytes_acked > INT64_MAX ? INT64_MAX : i->tcpi_bytes_acked;
	r->segs_out = i->tcpi_segs_out;
	r->data_segs_out = i->tcpi_data_segs_out;
	r->retrans_pkts = i->tcpi_total_retrans;
	r->lost_pkts = i->tcpi_lost;
	if (len >= offsetof(struct tcp_info, tcpi_bytes_sent)) {
		r->delivered_pkts = i->tcpi_delivered;
		r->delivered_ce_pkts = i->tcpi_delivered_ce;
	} else {
		r->absent = OAL_SENDER_TCP_ABSENT_DELIVERED_PKTS | OAL_SENDER_TCP_ABSENT_DELIVERED_CE_PKTS;
	}
	out->busy_us = i->tcpi_busy_time;
	out->rwnd_limited_us = i->tcpi_rwnd_limited;
	out->sndbuf_limited_us = i->tcpi_sndbuf_limited;
	out->reordering_pkts = i->tcpi_reordering;
	out->has_reorderings = len >= offsetof(struct tcp_info, tcpi_rcv_ooopack);
	out->reorderings = out->has_reorderings ? i->tcpi_reord_seen : 0;
	out->segs_in = i->tcpi_segs_in;
}

bool inet_diag_parse(const uint8_t *payload, uint32_t len, struct sender_look *out)
{
	struct inet_diag_msg m;
	struct tcp_info info;
	struct nl_iter it;
	struct nl_attr a;
	bool told = false;

	if (len < sizeof m)
		return false;
	memcpy(&m, payload, sizeof m);
	if (!read_flow(&m, &out->flow))
		return false;
	out->loopback = is_loopback(&out->flow);
	out->cookie = (uint64_t)m.id.idiag_cookie[1] << 32 | m.id.idiag_cookie[0];
	memset(out->control, 0, sizeof out->control);
	it = nl_iter(payload + sizeof m, len - (uint32_t)sizeof m);
	while (nl_next(&it, &a)) {
		if (a.type == INET_DIAG_INFO && a.len >= offsetof(struct tcp_info, tcpi_delivered)) {
			const size_t known = a.len < sizeof info ? a.len : sizeof info;

			memset(&info, 0, sizeof info);
			memcpy(&info, a.data, known);
			read_info(&info, known, out);
			told = true;
		} else if (a.type == INET_DIAG_CONG && a.len) {
			memcpy(out->control, a.data,
			       a.len < sizeof out->control ? a.len : sizeof out->control - 1);
		}
	}
	return told;
}
