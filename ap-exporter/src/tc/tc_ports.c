#ifdef HAVE_BPF
#include "tc/tc_ports.h"

#include "tc/tc_error.h"
#include "tc/tc_hooks.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	HANDLE = 0x0a1, /* marks our filters among those of their priority */
	MAX_MESSAGES = 32, /* of rtnetlink, read in a tick: the rest comes with the next */
};
static const uint64_t CHECK_US = 1000000; /* at most one check a second: filters may change many times in one */

static struct bpf_tc_hook hook_of(unsigned index, enum bpf_tc_attach_point point)
{
	return (struct bpf_tc_hook){ .sz = sizeof(struct bpf_tc_hook), .ifindex = (int)index, .attach_point = point };
}

static struct bpf_tc_opts filter(const struct tc_ports *b)
{
	return (struct bpf_tc_opts){ .sz = sizeof(struct bpf_tc_opts), .handle = HANDLE, .priority = b->priority };
}

/* Id of the program in our place: 0 if none. Another exporter's may have taken it. */
static uint32_t query(const struct tc_ports *b, unsigned index, enum bpf_tc_attach_point point)
{
	const struct bpf_tc_hook hook = hook_of(index, point);
	struct bpf_tc_opts opts = filter(b);

	return bpf_tc_query(&hook, &opts) == 0 ? opts.prog_id : 0;
}

static int attach_program(const struct tc_ports *b, unsigned index, enum bpf_tc_attach_point point, int program)
{
	const struct bpf_tc_hook hook = hook_of(index, point);
	struct bpf_tc_opts opts = filter(b);

	opts.prog_fd = program;
	opts.flags = BPF_TC_F_REPLACE; /* what a killed exporter left behind goes */
	return bpf_tc_attach(&hook, &opts);
}

static void detach_program(const struct tc_ports *b, unsigned index, enum bpf_tc_attach_point point,
			   uint32_t program_id)
{
	const struct bpf_tc_hook hook = hook_of(index, point);
	const struct bpf_tc_opts opts = filter(b);

	if (query(b, index, point) == program_id)
		bpf_tc_detach(&hook, &opts);
}

/* The programs on a port that has none of them yet. */
static int attach_port(struct tc_ports *b, struct tc_port *p)
{
	int ret;

	tc_error_begin();
	ret = tc_hooks_create(p->interface.index);
	if (ret < 0)
		return ret;
	/* Where an old `ingress` qdisc is in the place, the kernel takes its egress for its ingress: what is put there
	 * must be replaced. */
	attach_program(b, p->interface.index, BPF_TC_EGRESS, b->down_fd);
	ret = attach_program(b, p->interface.index, BPF_TC_INGRESS, b->up_fd);
	if (ret < 0)
		return ret;
	p->egress = query(b, p->interface.index, BPF_TC_EGRESS) == b->down_id;
	p->index = p->interface.index;
	return 0;
}

static void detach_port(struct tc_ports *b, struct tc_port *p)
{
	tc_error_begin();
	detach_program(b, p->index, BPF_TC_INGRESS, b->up_id);
	detach_program(b, p->index, BPF_TC_EGRESS, b->down_id);
	tc_hooks_remove(p->index);
	p->index = 0;
}

/* Each port that is there has the programs afterwards. The first time they replace those of an exporter before us;
 * later, those of one that came after us (`ap-exporter rwnd` by hand) stay until it goes. */
static void check_ports(struct tc_ports *b, bool first)
{
	b->n_attached = 0;
	for (unsigned i = 0; i < b->n; i++) {
		struct tc_port *p = &b->ports[i];
		uint32_t found = 0;
		int ret = 0;

		interface_update(&p->interface);
		if (p->index != p->interface.index)
			tc_hooks_forget(p->index);
		tc_error_begin();
		if (p->interface.index && !first)
			found = query(b, p->interface.index, BPF_TC_INGRESS);
		if (p->index != p->interface.index || found != b->up_id)
			p->index = 0;
		if (!p->index && p->interface.index)
			ret = found ? -EBUSY : attach_port(b, p);
		if (ret < 0) {
			b->attach_errors++;
			snprintf(b->last_error, sizeof b->last_error, "cannot attach to %s: %s%s%s", p->interface.name,
				 ret == -EBUSY ? "another ap-exporter works there" : strerror(-ret),
				 tc_error_text()[0] ? ": " : "", tc_error_text());
		}
		b->n_attached += p->index != 0;
	}
}

/* True if anything happened to interfaces or filters. */
static bool read_changes(struct tc_ports *b)
{
	char bytes[64]; /* that something changed is all that counts */
	bool any = false;
	ssize_t n;

	for (unsigned i = 0; i < MAX_MESSAGES; i++) {
		n = recv(b->changes, bytes, sizeof bytes, MSG_DONTWAIT | MSG_TRUNC);
		if (n < 0 && errno != ENOBUFS)
			break;
		any = true;
	}
	return any;
}

void tc_ports_poll(struct tc_ports *b, uint64_t now_us)
{
	b->check |= read_changes(b) || b->n_attached < b->n;
	if (!b->check || now_us < b->check_at_us)
		return;
	b->check = false;
	b->check_at_us = now_us + CHECK_US;
	check_ports(b, false);
	for (unsigned i = 0; i < b->n; i++)
		interface_report(&b->ports[i].interface, b->section);
}

static int open_changes(void)
{
	const struct sockaddr_nl to = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK | RTMGRP_TC };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (fd >= 0 && bind(fd, (const struct sockaddr *)&to, sizeof to) < 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

int tc_ports_name(struct tc_ports *b, const char *section, const char *names, uint32_t priority, char *err,
		  size_t err_size)
{
	const char *at = names;

	*b = (struct tc_ports){ .section = section, .priority = priority, .changes = -1 };
	for (b->n = 0; *at; at += strspn(at, ",")) {
		const size_t len = strcspn(at, ",");
		char name[INTERFACE_NAME];

		if (len >= sizeof name || b->n == TC_MAX_PORTS) {
			snprintf(err, err_size,
				 "option 'interface' of section '%s' is '%s'; it is at most %d names of at most %zu "
				 "letters",
				 section, names, TC_MAX_PORTS, sizeof name - 1);
			return -EINVAL;
		}
		memcpy(name, at, len);
		name[len] = '\0';
		interface_init(&b->ports[b->n++].interface, name);
		at += len;
	}
	if (b->n)
		return 0;
	snprintf(err, err_size,
		 "section '%s' names no Wi-Fi port: set option 'interface', or have a section 'nl80211'", section);
	return -EINVAL;
}

static uint32_t program_id(int fd)
{
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof info;

	return bpf_obj_get_info_by_fd(fd, &info, &len) < 0 ? 0 : info.id;
}

int tc_ports_open(struct tc_ports *b, int up_fd, int down_fd)
{
	b->up_fd = up_fd;
	b->down_fd = down_fd;
	b->up_id = program_id(up_fd);
	b->down_id = program_id(down_fd);
	b->changes = open_changes();
	if (b->changes < 0)
		return -errno;
	check_ports(b, true);
	return b->attach_errors ? -EIO : 0; /* a port that is not there yet is no error */
}

void tc_ports_close(struct tc_ports *b)
{
	for (unsigned i = 0; i < b->n; i++)
		if (b->ports[i].index)
			detach_port(b, &b->ports[i]);
	if (b->changes >= 0)
		close(b->changes);
}
#endif
