#ifdef HAVE_BPF
#include "rewrite/rwnd_bpf_ports.h"

#include "rewrite/rwnd_bpf_error.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	PRIORITY = 11, /* early among a port's filters: one that ends with "ok" keeps the later ones from running */
	HANDLE = 0x0a1, /* marks our filter among those of this priority */
	MAX_MESSAGES = 32, /* of rtnetlink, read in a tick: the rest comes with the next */
};
static const uint64_t CHECK_US = 1000000; /* at most one check a second: filters may change many times in one */

static struct bpf_tc_hook hook_of(unsigned index, enum bpf_tc_attach_point point)
{
	return (struct bpf_tc_hook){ .sz = sizeof(struct bpf_tc_hook), .ifindex = (int)index, .attach_point = point };
}

static struct bpf_tc_opts filter(void)
{
	return (struct bpf_tc_opts){ .sz = sizeof(struct bpf_tc_opts), .handle = HANDLE, .priority = PRIORITY };
}

/* Id of the program in our place: 0 if none. Another exporter's may have taken it. */
static uint32_t query(unsigned index, enum bpf_tc_attach_point point)
{
	const struct bpf_tc_hook hook = hook_of(index, point);
	struct bpf_tc_opts opts = filter();

	return bpf_tc_query(&hook, &opts) == 0 ? opts.prog_id : 0;
}

static int attach_program(unsigned index, enum bpf_tc_attach_point point, int program)
{
	const struct bpf_tc_hook hook = hook_of(index, point);
	struct bpf_tc_opts opts = filter();

	opts.prog_fd = program;
	opts.flags = BPF_TC_F_REPLACE; /* what a killed exporter left behind goes */
	return bpf_tc_attach(&hook, &opts);
}

static void detach_program(unsigned index, enum bpf_tc_attach_point point, uint32_t program_id)
{
	const struct bpf_tc_hook hook = hook_of(index, point);
	const struct bpf_tc_opts opts = filter();

	if (query(index, point) == program_id)
		bpf_tc_detach(&hook, &opts);
}

/* The programs on a port that has none of them yet. The clsact qdisc stays when they go: others may use it by then. */
static int attach_port(struct rwnd_bpf_ports *b, struct rwnd_bpf_port *p)
{
	struct bpf_tc_hook both = hook_of(p->interface.index, BPF_TC_INGRESS | BPF_TC_EGRESS);
	int ret;

	rwnd_bpf_error_begin();
	ret = bpf_tc_hook_create(&both);
	if (ret < 0 && ret != -EEXIST)
		return ret;
	/* Where an old `ingress` qdisc is in the place, the kernel takes its egress for its ingress: what is put there
	 * must be replaced. */
	attach_program(p->interface.index, BPF_TC_EGRESS, b->down_fd);
	ret = attach_program(p->interface.index, BPF_TC_INGRESS, b->up_fd);
	if (ret < 0)
		return ret;
	p->egress = query(p->interface.index, BPF_TC_EGRESS) == b->down_id;
	p->index = p->interface.index;
	return 0;
}

static void detach_port(struct rwnd_bpf_ports *b, struct rwnd_bpf_port *p)
{
	rwnd_bpf_error_begin();
	detach_program(p->index, BPF_TC_INGRESS, b->up_id);
	detach_program(p->index, BPF_TC_EGRESS, b->down_id);
	p->index = 0;
}

/* Each port that is there has the programs afterwards. The first time they replace those of an exporter before us;
 * later, those of one that came after us (`ap-exporter rwnd` by hand) stay until it goes. */
static void check_ports(struct rwnd_bpf_ports *b, bool first)
{
	b->n_attached = 0;
	for (unsigned i = 0; i < b->n; i++) {
		struct rwnd_bpf_port *p = &b->ports[i];
		uint32_t found = 0;
		int ret = 0;

		interface_update(&p->interface);
		rwnd_bpf_error_begin();
		if (p->interface.index && !first)
			found = query(p->interface.index, BPF_TC_INGRESS);
		if (p->index != p->interface.index || found != b->up_id)
			p->index = 0;
		if (!p->index && p->interface.index)
			ret = found ? -EBUSY : attach_port(b, p);
		if (ret < 0) {
			b->attach_errors++;
			snprintf(b->last_error, sizeof b->last_error, "cannot attach to %s: %s%s%s", p->interface.name,
				 ret == -EBUSY ? "another ap-exporter works there" : strerror(-ret),
				 rwnd_bpf_error_text()[0] ? ": " : "", rwnd_bpf_error_text());
		}
		b->n_attached += p->index != 0;
	}
}

/* True if anything happened to interfaces or filters. */
static bool read_changes(struct rwnd_bpf_ports *b)
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

void rwnd_bpf_ports_poll(struct rwnd_bpf_ports *b, uint64_t now_us)
{
	b->check |= read_changes(b) || b->n_attached < b->n;
	if (!b->check || now_us < b->check_at_us)
		return;
	b->check = false;
	b->check_at_us = now_us + CHECK_US;
	check_ports(b, false);
	for (unsigned i = 0; i < b->n; i++)
		interface_report(&b->ports[i].interface, "rwnd");
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

int rwnd_bpf_ports_name(struct rwnd_bpf_ports *b, const struct config_rwnd *c, char *err, size_t err_size)
{
	const char *at = c->interface;

	*b = (struct rwnd_bpf_ports){ .changes = -1 };
	for (b->n = 0; *at; at += strspn(at, ",")) {
		const size_t len = strcspn(at, ",");
		char name[INTERFACE_NAME];

		if (len >= sizeof name || b->n == RWND_BPF_MAX_PORTS) {
			snprintf(err, err_size,
				 "option 'interface' of section 'rwnd' is '%s'; it is at most %d names of at most %zu "
				 "letters",
				 c->interface, RWND_BPF_MAX_PORTS, sizeof name - 1);
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
		 "section 'rwnd' names no Wi-Fi port: set option 'interface', or have a section 'nl80211'");
	return -EINVAL;
}

static uint32_t program_id(int fd)
{
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof info;

	return bpf_obj_get_info_by_fd(fd, &info, &len) < 0 ? 0 : info.id;
}

int rwnd_bpf_ports_open(struct rwnd_bpf_ports *b, int up_fd, int down_fd)
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

void rwnd_bpf_ports_close(struct rwnd_bpf_ports *b)
{
	for (unsigned i = 0; i < b->n; i++)
		if (b->ports[i].index)
			detach_port(b, &b->ports[i]);
	if (b->changes >= 0)
		close(b->changes);
}
#endif
