#ifdef HAVE_BPF
#include "tc/tc_hooks.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

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

/* Is a filter on the hook, anybody's? Also true where the kernel does not say. */
static bool has_filters(int fd, unsigned index, uint32_t hook)
{
	struct {
		struct nlmsghdr head;
		struct tcmsg tc;
	} ask = {
		.head = { .nlmsg_len = sizeof ask, .nlmsg_type = RTM_GETTFILTER,
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.tc = { .tcm_ifindex = (int)index, .tcm_parent = TC_H_MAKE(TC_H_CLSACT, hook) },
	};
	char answer[4096];
	ssize_t n;
	bool any;

	n = send(fd, &ask, sizeof ask, 0) < 0 ? -1 : recv(fd, answer, sizeof answer, 0);
	any = n < (ssize_t)sizeof ask.head || ((struct nlmsghdr *)(void *)answer)->nlmsg_type != NLMSG_DONE;
	while (n > 0) /* the rest of it */
		n = recv(fd, answer, sizeof answer, MSG_DONTWAIT);
	return any;
}

void tc_hooks_remove(unsigned index)
{
	struct bpf_tc_hook hook = both(index);
	unsigned *place = find(index);
	const int fd = place ? socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE) : -1;

	if (fd < 0)
		return;
	if (!has_filters(fd, index, TC_H_MIN_INGRESS) && !has_filters(fd, index, TC_H_MIN_EGRESS)) {
		bpf_tc_hook_destroy(&hook);
		*place = 0;
	}
	close(fd);
}

void tc_hooks_forget(unsigned index)
{
	unsigned *place = find(index);

	if (index && place)
		*place = 0;
}
#endif
