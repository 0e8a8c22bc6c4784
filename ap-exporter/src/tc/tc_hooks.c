#ifdef HAVE_BPF
#include "tc/tc_hooks.h"

#include "netlink/netlink.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <sys/socket.h>

enum { MOST = 32 }; /* ports at once; of more the qdisc stays */

static unsigned made[MOST]; /* indexes of ports whose qdisc is ours; 0: free. A reload hands it over by being here */

static unsigned *find(unsigned index)
{
	for (unsigned i = 0; i < MOST; i++)
		if (made[i] == index)
			return &made[i];
	return NULL;
}

static struct bpf_tc_hook both(unsigned index)
{
	return (struct bpf_tc_hook){
		.sz = sizeof(struct bpf_tc_hook),
		.ifindex = (int)index,
		.attach_point = BPF_TC_INGRESS | BPF_TC_EGRESS,
	};
}

int tc_hooks_create(unsigned index)
{
	struct bpf_tc_hook hook = both(index);
	const int ret = bpf_tc_hook_create(&hook);
	unsigned *place = find(index);

	if (!ret && !place && (place = find(0)))
		*place = index;
	return ret == -EEXIST ? 0 : ret;
}

static void saw_one(void *ctx, const struct nlmsghdr *h, const uint8_t *payload, uint32_t len)
{
	*(bool *)ctx = true;
}

/* Is a filter on the hook, anybody's? Also true where the kernel does not say. */
static bool has_filters(struct netlink *nl, unsigned index, uint32_t hook)
{
	const struct tcmsg tc = { .tcm_family = AF_UNSPEC,
				  .tcm_ifindex = (int)index,
				  .tcm_parent = TC_H_MAKE(TC_H_CLSACT, hook) };
	struct netlink_request request;
	struct netlink_result result;
	bool any = false;

	netlink_request(&request, RTM_GETTFILTER, NLM_F_DUMP, &tc, sizeof tc);
	return netlink_dump(nl, &request, saw_one, &any, &result) < 0 || any;
}

void tc_hooks_remove(unsigned index)
{
	struct bpf_tc_hook hook = both(index);
	unsigned *place = find(index);
	struct netlink *nl = NULL;

	if (!place || netlink_open(&nl, NETLINK_ROUTE) < 0)
		return;
	if (!has_filters(nl, index, TC_H_MIN_INGRESS) && !has_filters(nl, index, TC_H_MIN_EGRESS)) {
		bpf_tc_hook_destroy(&hook);
		*place = 0;
	}
	netlink_close(nl);
}

void tc_hooks_forget(unsigned index)
{
	unsigned *place = find(index);

	if (index && place)
		*place = 0;
}
#endif
