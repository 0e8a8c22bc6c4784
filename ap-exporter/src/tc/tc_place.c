#ifdef HAVE_BPF
#include "tc/tc_place.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	HANDLE = 0x0a1, /* marks our filters among those of their priority */
	MOST_HOOKS = 32, /* ports at once; of more the qdisc stays */
};

/* --- hooks: the clsact qdisc of a port. Others may use it, too: it goes with the last filter, and only where this
 * process made it. */

static unsigned hooked[MOST_HOOKS]; /* indexes of ports whose qdisc is ours; 0: free */

static unsigned *find_hooked(unsigned index)
{
	for (unsigned i = 0; i < MOST_HOOKS; i++)
		if (hooked[i] == index)
			return &hooked[i];
	return NULL;
}

static struct bpf_tc_hook hook(unsigned index, enum bpf_tc_attach_point point)
{
	return (struct bpf_tc_hook){ .sz = sizeof(struct bpf_tc_hook), .ifindex = (int)index, .attach_point = point };
}

static int make_hooks(unsigned index)
{
	struct bpf_tc_hook both = hook(index, BPF_TC_INGRESS | BPF_TC_EGRESS);
	const int ret = bpf_tc_hook_create(&both);
	unsigned *place = find_hooked(index);

	if (!ret && !place && (place = find_hooked(0)))
		*place = index;
	return ret == -EEXIST ? 0 : ret;
}

/* Is a filter on the hook, anybody's? Also true where the kernel does not say. */
static bool has_filters(unsigned index, uint32_t which)
{
	struct {
		struct nlmsghdr head;
		struct tcmsg tc;
	} ask = {
		.head = { sizeof ask, RTM_GETTFILTER, NLM_F_REQUEST | NLM_F_DUMP, 0, 0 },
		.tc = { .tcm_ifindex = (int)index, .tcm_parent = TC_H_MAKE(TC_H_CLSACT, which) },
	};
	struct nlmsghdr first = { 0 }; /* of the answer; the end, if there is none */
	const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd < 0 || send(fd, &ask, sizeof ask, 0) < 0 || recv(fd, &first, sizeof first, 0) < 0)
		first.nlmsg_type = 0;
	close(fd);
	return first.nlmsg_type != NLMSG_DONE;
}

static void remove_hooks(unsigned index)
{
	struct bpf_tc_hook both = hook(index, BPF_TC_INGRESS | BPF_TC_EGRESS);
	unsigned *place = find_hooked(index);

	if (place && !has_filters(index, TC_H_MIN_INGRESS) && !has_filters(index, TC_H_MIN_EGRESS)) {
		bpf_tc_hook_destroy(&both);
		*place = 0;
	}
}

/* --- programs */

static struct bpf_tc_opts filter(uint32_t priority)
{
	return (struct bpf_tc_opts){ .sz = sizeof(struct bpf_tc_opts), .handle = HANDLE, .priority = priority };
}

uint32_t tc_place_query(uint32_t priority, unsigned index, bool egress)
{
	const struct bpf_tc_hook at = hook(index, egress ? BPF_TC_EGRESS : BPF_TC_INGRESS);
	struct bpf_tc_opts opts = filter(priority);

	return bpf_tc_query(&at, &opts) == 0 ? opts.prog_id : 0;
}

static int attach(const struct tc_place *p, unsigned index, bool egress)
{
	const struct bpf_tc_hook at = hook(index, egress ? BPF_TC_EGRESS : BPF_TC_INGRESS);
	struct bpf_tc_opts opts = filter(p->priority);

	opts.prog_fd = egress ? p->down_fd : p->up_fd;
	opts.flags = BPF_TC_F_REPLACE; /* what a killed exporter left behind goes */
	return bpf_tc_attach(&at, &opts);
}

static void detach(const struct tc_place *p, unsigned index, bool egress)
{
	const struct bpf_tc_hook at = hook(index, egress ? BPF_TC_EGRESS : BPF_TC_INGRESS);
	const struct bpf_tc_opts opts = filter(p->priority);

	if (tc_place_query(p->priority, index, egress) == (egress ? p->down_id : p->up_id))
		bpf_tc_detach(&at, &opts);
}

int tc_place_attach(struct tc_place *p, unsigned port)
{
	struct tc_place_port *at = &p->ports[port];
	unsigned index = if_nametoindex(at->name), *gone;
	int ret;

	if (at->index && at->index != index && (gone = find_hooked(at->index)))
		*gone = 0; /* the port is gone, and its hooks with it */
	at->index = 0;
	if (!index)
		return -ENODEV;
	ret = make_hooks(index);
	if (ret < 0)
		return ret;
	/* Where an old `ingress` qdisc is in the place, the kernel takes its egress for its ingress: what is put there
	 * must be replaced. */
	attach(p, index, true);
	ret = attach(p, index, false);
	if (ret < 0)
		return ret;
	at->egress = tc_place_query(p->priority, index, true) == p->down_id;
	at->index = index;
	return 0;
}

void tc_place_detach(struct tc_place *p, unsigned port)
{
	struct tc_place_port *at = &p->ports[port];

	if (!at->index)
		return;
	detach(p, at->index, false);
	detach(p, at->index, true);
	remove_hooks(at->index);
	at->index = 0;
}
#endif
