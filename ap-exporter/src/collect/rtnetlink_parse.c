#include "collect/rtnetlink_parse.h"

#include "netlink/nl_attr.h"

#include <linux/gen_stats.h>
#include <linux/neighbour.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <stddef.h>

/* ECN marks, where the discipline reports them in a fixed structure (TCA_STATS_APP). */
static bool marks_of(const char *kind, const struct nl_attr *app, uint32_t *marks)
{
	if (!strcmp(kind, "fq_codel")) {
		struct tc_fq_codel_xstats x;

		/* One of two layouts, told by `type`: classes have another. */
		if (app->len < offsetof(struct tc_fq_codel_xstats, qdisc_stats) +
				       offsetof(struct tc_fq_codel_qd_stats, new_flow_count))
			return false;
		memset(&x, 0, sizeof x);
		memcpy(&x, app->data, app->len < sizeof x ? app->len : sizeof x);
		*marks = x.qdisc_stats.ecn_mark;
		return x.type == TCA_FQ_CODEL_XSTATS_QDISC;
	}
	if (!strcmp(kind, "codel")) {
		struct tc_codel_xstats x;

		if (app->len < offsetof(struct tc_codel_xstats, dropping))
			return false;
		memset(&x, 0, sizeof x);
		memcpy(&x, app->data, app->len < sizeof x ? app->len : sizeof x);
		*marks = x.ecn_mark;
		return true;
	}
	if (!strcmp(kind, "cake")) { /* attributes: tins, each with its marks */
		struct nl_iter it = nl_nested(app);
		struct nl_attr a, tin, s;
		bool has = false;

		*marks = 0;
		while (nl_next(&it, &a)) {
			struct nl_iter tins = nl_nested(&a);

			if (a.type != TCA_CAKE_STATS_TIN_STATS)
				continue;
			while (nl_next(&tins, &tin)) {
				struct nl_iter stats = nl_nested(&tin);

				while (nl_next(&stats, &s)) {
					if (s.type != TCA_CAKE_TIN_STATS_ECN_MARKED_PACKETS)
						continue;
					*marks += nl_u32(&s);
					has = true;
				}
			}
		}
		return has;
	}
	return false;
}

bool qdisc_parse(const uint8_t *msg, uint32_t len, struct oal_queue_row *row, int *ifindex, char kind[QDISC_KIND])
{
	struct nl_attr a, s, app = { 0 };
	struct nl_iter it, stats;
	bool has_kind = false, has_stats = false, has_pkts64 = false;
	struct tcmsg tc;

	if (len < sizeof tc)
		return false;
	memcpy(&tc, msg, sizeof tc);
	*ifindex = tc.tcm_ifindex;
	*row = (struct oal_queue_row){ .absent = OAL_QUEUE_ABSENT_ECN_MARKS,
				       .handle = tc.tcm_handle,
				       .parent = tc.tcm_parent };
	it = nl_iter(msg + sizeof tc, len - sizeof tc);
	while (nl_next(&it, &a)) {
		if (a.type == TCA_KIND) {
			size_t n = strnlen((const char *)a.data, a.len < QDISC_KIND - 1 ? a.len : QDISC_KIND - 1);

			memcpy(kind, a.data, n);
			kind[n] = '\0';
			has_kind = n > 0;
		}
		if (a.type != TCA_STATS2)
			continue;
		stats = nl_nested(&a);
		while (nl_next(&stats, &s)) {
			struct gnet_stats_basic basic;
			struct gnet_stats_queue queue;

			switch (s.type) {
			case TCA_STATS_BASIC:
				if (s.len < offsetof(struct gnet_stats_basic, packets) + 4)
					break;
				memset(&basic, 0, sizeof basic);
				memcpy(&basic, s.data, s.len < sizeof basic ? s.len : sizeof basic);
				row->bytes = basic.bytes & INT64_MAX;
				if (!has_pkts64)
					row->pkts = basic.packets;
				has_stats = true;
				break;
			case TCA_STATS_PKT64: /* only there once the 32-bit count has wrapped */
				row->pkts = nl_count(&s);
				has_pkts64 = true;
				break;
			case TCA_STATS_QUEUE:
				if (s.len < sizeof queue)
					break;
				memcpy(&queue, s.data, sizeof queue);
				row->drops = queue.drops;
				row->overlimits = queue.overlimits;
				row->requeues = queue.requeues;
				row->backlog_bytes = queue.backlog;
				row->qlen_pkts = queue.qlen;
				has_stats = true;
				break;
			case TCA_STATS_APP: app = s; break;
			default: break;
			}
		}
	}
	if (has_kind && app.data && marks_of(kind, &app, &row->ecn_marks))
		row->absent = 0;
	else
		row->ecn_marks = 0;
	return has_kind && has_stats;
}

bool address_entry_parse(const uint8_t *msg, uint32_t len, struct address_entry *e)
{
	struct nl_iter it;
	struct nl_attr a;
	struct ndmsg nd;

	if (len < sizeof nd)
		return false;
	memcpy(&nd, msg, sizeof nd);
	memset(e, 0, sizeof *e);
	e->ifindex = nd.ndm_ifindex;
	it = nl_iter(msg + sizeof nd, len - sizeof nd);
	while (nl_next(&it, &a)) {
		if (a.type == NDA_DST && (a.len == 4 || a.len == 16)) {
			memcpy(e->ip, a.data, a.len);
			e->ip_len = (uint8_t)a.len;
		} else if (a.type == NDA_LLADDR) {
			e->mac = nl_mac(&a);
		}
	}
	if (nd.ndm_state & (NUD_FAILED | NUD_INCOMPLETE | NUD_NOARP))
		e->mac = 0;
	return e->ip_len != 0;
}
