/* What `nft add table ip nat; chain postrouting { type nat hook postrouting priority srcnat; oifname "…" masquerade }`
 * does, by netlink: there is no cross package of nft. */
#include "air.h"
#include "request.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter_ipv4.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <errno.h>
#include <unistd.h>

enum { MESSAGES = 5, SUBSYSTEM = NFNL_SUBSYS_NFTABLES << 8 };

static const char table[] = "nat", chain[] = "postrouting";

static void begin(struct request *r, uint16_t type, uint16_t flags, uint8_t family, uint16_t resource)
{
	const struct nfgenmsg g = { .nfgen_family = family, .version = NFNETLINK_V0, .res_id = htons(resource) };

	request_begin(r, type, flags, &g, sizeof g);
}

static void be32(struct request *r, uint16_t attribute, uint32_t value)
{
	request_u32(r, attribute, htonl(value));
}

/* An expression that holds what is put until both are closed. */
static void expression(struct request *r, const char *name, size_t opened[2])
{
	opened[0] = request_open(r, NFTA_LIST_ELEM);
	request_text(r, NFTA_EXPR_NAME, name);
	opened[1] = request_open(r, NFTA_EXPR_DATA);
}

static void end(struct request *r, const size_t opened[2])
{
	request_close(r, opened[1]);
	request_close(r, opened[0]);
}

static void rule(struct request *r, const char *interface)
{
	char name[IFNAMSIZ] = { 0 };
	size_t list, e[2], data;

	snprintf(name, sizeof name, "%s", interface);
	begin(r, SUBSYSTEM | NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND, NFPROTO_IPV4, 0);
	request_text(r, NFTA_RULE_TABLE, table);
	request_text(r, NFTA_RULE_CHAIN, chain);
	list = request_open(r, NFTA_RULE_EXPRESSIONS);
	expression(r, "meta", e);
	be32(r, NFTA_META_DREG, NFT_REG_1);
	be32(r, NFTA_META_KEY, NFT_META_OIFNAME);
	end(r, e);
	expression(r, "cmp", e);
	be32(r, NFTA_CMP_SREG, NFT_REG_1);
	be32(r, NFTA_CMP_OP, NFT_CMP_EQ);
	data = request_open(r, NFTA_CMP_DATA);
	request_put(r, NFTA_DATA_VALUE, name, sizeof name);
	request_close(r, data);
	end(r, e);
	expression(r, "masq", e);
	end(r, e);
	request_close(r, list);
}

void air_masquerade(const char *interface)
{
	static struct request r[MESSAGES];
	uint8_t batch[MESSAGES * 512];
	int fd = request_socket(NETLINK_NETFILTER);
	size_t hook, size = 0;

	begin(&r[0], NFNL_MSG_BATCH_BEGIN, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES);
	begin(&r[1], SUBSYSTEM | NFT_MSG_NEWTABLE, NLM_F_CREATE, NFPROTO_IPV4, 0);
	request_text(&r[1], NFTA_TABLE_NAME, table);
	begin(&r[2], SUBSYSTEM | NFT_MSG_NEWCHAIN, NLM_F_CREATE, NFPROTO_IPV4, 0);
	request_text(&r[2], NFTA_CHAIN_TABLE, table);
	request_text(&r[2], NFTA_CHAIN_NAME, chain);
	request_text(&r[2], NFTA_CHAIN_TYPE, "nat");
	hook = request_open(&r[2], NFTA_CHAIN_HOOK);
	be32(&r[2], NFTA_HOOK_HOOKNUM, NF_INET_POST_ROUTING);
	be32(&r[2], NFTA_HOOK_PRIORITY, (uint32_t)NF_IP_PRI_NAT_SRC);
	request_close(&r[2], hook);
	rule(&r[3], interface);
	begin(&r[4], NFNL_MSG_BATCH_END, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES);
	for (unsigned i = 0; i < MESSAGES; i++) {
		r[i].head.nlmsg_seq = i + 1;
		if (i == 0 || i == MESSAGES - 1)
			r[i].head.nlmsg_flags &= (uint16_t)~NLM_F_ACK;
		memcpy(batch + size, &r[i], r[i].head.nlmsg_len);
		size += NLMSG_ALIGN(r[i].head.nlmsg_len);
	}
	if (send(fd, batch, size, 0) < 0)
		die(errno, "nftables");
	for (unsigned i = 1; i < MESSAGES - 1; i++) {
		const int ret = request_answer(fd);

		if (ret)
			die(-ret, "nftables: message %u", i);
	}
	close(fd);
}
