#ifdef HAVE_BPF
#include "helper/tc_ports.h"

#include "helper/helper.h"
#include "tc/tc_error.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	MAX_MESSAGES = 32, /* of rtnetlink, read in a tick: the rest comes with the next */
};
static const uint64_t CHECK_US = 1000000; /* at most one check a second: filters may change many times in one */

static void note_error(struct tc_ports *b, const struct tc_port *p, int error)
{
	b->attach_errors++;
	snprintf(b->last_error, sizeof b->last_error, "cannot attach to %s: %s%s%s", p->interface.name,
		 error == -EBUSY      ? "another ap-exporter works there"
		 : error == -ENOTCONN ? "the helper has ended; restart ap-exporter"
				      : strerror(-error),
		 tc_error_text()[0] ? ": " : "", tc_error_text());
}

static void count_attached(struct tc_ports *b)
{
	b->n_attached = 0;
	for (unsigned i = 0; i < b->n; i++)
		b->n_attached += b->ports[i].index != 0;
}

void tc_ports_answer(struct tc_ports *b, const struct helper_answer *a)
{
	struct tc_port *p = &b->ports[a->port < b->n ? a->port : 0];

	if (a->command != HELPER_ATTACH)
		return;
	p->index = a->error ? 0 : (unsigned)a->values[0];
	p->egress = p->index && a->values[1];
	if (a->error && a->error != -ENODEV) /* a port that has just gone is no error */
		note_error(b, p, a->error);
	count_attached(b);
}

/* Each port that is there has the programs afterwards. The first time they replace those of an exporter before us;
 * later, those of one that came after us (`ap-exporter rwnd` by hand) stay until it goes. */
static void check_ports(struct tc_ports *b, bool first)
{
	for (unsigned i = 0; i < b->n; i++) {
		struct tc_port *p = &b->ports[i];
		struct helper_record r = { .port = (uint8_t)i };
		uint32_t found = 0;
		int ret = 0;

		interface_update(&p->interface);
		tc_error_begin();
		if (p->interface.index && !first)
			found = tc_place_query(b->place.priority, p->interface.index, false);
		if (p->index != p->interface.index || found != b->place.up_id)
			p->index = 0;
		if (!p->index && p->interface.index)
			ret = found && found != b->place.up_id ? -EBUSY : helper_send(b->slot, HELPER_ATTACH, &r);
		if (ret < 0)
			note_error(b, p, ret);
	}
	count_attached(b);
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

	*b = (struct tc_ports){ .section = section, .slot = -1, .changes = -1 };
	b->place.priority = priority;
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
		memcpy(b->place.ports[b->n].name, name, sizeof name);
		interface_init(&b->ports[b->n++].interface, name);
		at += len;
	}
	b->place.n = b->n;
	if (b->n)
		return 0;
	snprintf(err, err_size,
		 "section '%s' names no Wi-Fi port: set option 'interface', or have a section 'nl80211'", section);
	return -EINVAL;
}

static uint32_t id_of(int fd)
{
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof info;

	return bpf_obj_get_info_by_fd(fd, &info, &len) < 0 ? 0 : info.id;
}

int tc_ports_check(const char *section, const char *names, uint32_t priority, char *err, size_t err_size)
{
	struct tc_ports ports;
	int ret = tc_ports_name(&ports, section, names, priority, err, err_size), fd;

	if (ret < 0)
		return ret;
	if (helper_started()) {
		snprintf(err, err_size,
			 "tc programs for the section '%s' are loaded when ap-exporter starts, as it is configured "
			 "then: restart it",
			 section);
		return -EPERM;
	}
	tc_error_begin();
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "oal_check", 4, 4, 1, NULL);
	if (fd < 0) {
		snprintf(err, err_size,
			 "this kernel refuses BPF maps: %s; start as root, on a kernel with CONFIG_BPF_SYSCALL and "
			 "CONFIG_NET_CLS_BPF (kmod-sched-bpf)",
			 strerror(-fd));
		return fd;
	}
	close(fd);
	return 0;
}

void tc_ports_programs(struct tc_ports *b, int up_fd, int down_fd)
{
	b->place.up_fd = up_fd;
	b->place.down_fd = down_fd;
	b->place.up_id = id_of(up_fd);
	b->place.down_id = id_of(down_fd);
}

int tc_ports_open(struct tc_ports *b, int slot)
{
	b->slot = slot;
	b->changes = open_changes();
	if (b->changes < 0)
		return -errno;
	check_ports(b, true);
	return b->attach_errors ? -EIO : 0; /* a port that is not there yet is no error */
}

void tc_ports_close(struct tc_ports *b)
{
	if (b->slot >= 0)
		helper_slot_end(b->slot);
	b->slot = -1;
	if (b->changes >= 0)
		close(b->changes);
	b->changes = -1;
}
#endif
