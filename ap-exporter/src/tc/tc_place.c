#ifdef HAVE_BPF
#include "tc/tc_place.h"

#include "tc/tc_hooks.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <net/if.h>

enum { HANDLE = 0x0a1 }; /* marks our filters among those of their priority */

static struct bpf_tc_hook hook_of(unsigned index, bool egress)
{
	return (struct bpf_tc_hook){ .sz = sizeof(struct bpf_tc_hook), .ifindex = (int)index,
				     .attach_point = egress ? BPF_TC_EGRESS : BPF_TC_INGRESS };
}

static struct bpf_tc_opts filter(uint32_t priority)
{
	return (struct bpf_tc_opts){ .sz = sizeof(struct bpf_tc_opts), .handle = HANDLE, .priority = priority };
}

uint32_t tc_place_query(uint32_t priority, unsigned index, bool egress)
{
	const struct bpf_tc_hook hook = hook_of(index, egress);
	struct bpf_tc_opts opts = filter(priority);

	return bpf_tc_query(&hook, &opts) == 0 ? opts.prog_id : 0;
}

static int attach(const struct tc_place *p, unsigned index, bool egress)
{
	const struct bpf_tc_hook hook = hook_of(index, egress);
	struct bpf_tc_opts opts = filter(p->priority);

	opts.prog_fd = egress ? p->down_fd : p->up_fd;
	opts.flags = BPF_TC_F_REPLACE; /* what a killed exporter left behind goes */
	return bpf_tc_attach(&hook, &opts);
}

static void detach(const struct tc_place *p, unsigned index, bool egress)
{
	const struct bpf_tc_hook hook = hook_of(index, egress);
	const struct bpf_tc_opts opts = filter(p->priority);

	if (tc_place_query(p->priority, index, egress) == (egress ? p->down_id : p->up_id))
		bpf_tc_detach(&hook, &opts);
}

static uint32_t id_of(int fd)
{
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof info;

	return bpf_obj_get_info_by_fd(fd, &info, &len) < 0 ? 0 : info.id;
}

void tc_place_programs(struct tc_place *p, int up_fd, int down_fd)
{
	p->up_fd = up_fd;
	p->down_fd = down_fd;
	p->up_id = id_of(up_fd);
	p->down_id = id_of(down_fd);
}

int tc_place_attach(struct tc_place *p, unsigned port)
{
	struct tc_place_port *at = &p->ports[port];
	const unsigned index = if_nametoindex(at->name);
	int ret;

	if (at->index != index)
		tc_hooks_forget(at->index);
	at->index = 0;
	if (!index)
		return -ENODEV;
	ret = tc_hooks_create(index);
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
	tc_hooks_remove(at->index);
	at->index = 0;
}
#endif
