/* The rewrite by tc programs (bpf/rwnd.bpf.c) on the Wi-Fi ports; the compiled object is part of this file. */
#ifdef HAVE_BPF
#include "rewrite/rwnd_bpf.h"

#include "bpf/rwnd_bpf_maps.h"
#include "base/clock.h"
#include "packet/interface.h"
#include "base/json.h"
#include "base/log.h"
#include "rewrite/rwnd_backend.h"
#include "rewrite/rwnd_clamps.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	MOST_PORTS = 8,
	/* Ours among a port's filters: early, since a filter that ends with "ok" keeps the later ones from running. */
	PRIORITY = 11,
	HANDLE = 0x0a1,
	LEAST_SCALES = 1024, /* an LRU map far smaller than its per-CPU batches forgets what was just learned */
	SCALES_PER_CLAMP = 4,
	MOST_NEWS = 32, /* messages read in a tick */
	TELL = 512,
};
#define LOOK_US 1000000
_Static_assert(RWND_BPF_LEARNED == RWND_SCALE_LEARNED, "a flow's scale goes into the map as it is");

struct port {
	struct interface interface;
	unsigned index; /* where the programs are; 0: nowhere */
	bool egress; /* the program for SYN-ACKs too: not where an `ingress` qdisc was there before us */
};

struct backend {
	struct bpf_object *object;
	struct rwnd_bpf_fds fd;
	uint32_t up_id, down_id;
	struct port ports[MOST_PORTS];
	unsigned n_ports, n_attached;
	int news; /* rtnetlink: changes of interfaces and filters */
	bool look;
	uint64_t look_at_us, attach_errors;
	char told[TELL]; /* why the last attach failed */
	int cpus;
	struct rwnd_bpf_counts *counts; /* one a CPU */
	struct rwnd_bpf_counts sum;
};

/* The object file, compiled by clang (see Makefile). */
__asm__(".section .rodata\n.balign 16\n.globl oal_rwnd_object, oal_rwnd_object_end\n"
	"oal_rwnd_object:\n.incbin \"" RWND_BPF_OBJECT "\"\noal_rwnd_object_end:\n.byte 0\n.previous\n");
extern const char oal_rwnd_object[], oal_rwnd_object_end[];

static inline struct backend *backend_of(const struct rwnd *r)
{
	return r->self;
}

/* --- what libbpf says: the first line of a failure is the cause, the rest is its trace */

static char said[TELL / 2];

static int hear(enum libbpf_print_level level, const char *format, va_list args)
{
	if (level == LIBBPF_WARN && !said[0]) {
		vsnprintf(said, sizeof said, format, args);
		said[strcspn(said, "\n")] = '\0';
	}
	return 0;
}

static void listen_to_libbpf(void)
{
	said[0] = '\0';
	libbpf_set_print(hear);
}

/* --- ports */

static struct bpf_tc_hook hook_of(unsigned index, enum bpf_tc_attach_point point)
{
	return (struct bpf_tc_hook){ .sz = sizeof(struct bpf_tc_hook), .ifindex = (int)index, .attach_point = point };
}

static struct bpf_tc_opts filter(void)
{
	return (struct bpf_tc_opts){ .sz = sizeof(struct bpf_tc_opts), .handle = HANDLE, .priority = PRIORITY };
}

/* The program that stands in our place: 0 if none. Another exporter's may have taken it. */
static uint32_t standing(unsigned index, enum bpf_tc_attach_point point)
{
	const struct bpf_tc_hook hook = hook_of(index, point);
	struct bpf_tc_opts opts = filter();

	return bpf_tc_query(&hook, &opts) == 0 ? opts.prog_id : 0;
}

static int put(unsigned index, enum bpf_tc_attach_point point, int program)
{
	const struct bpf_tc_hook hook = hook_of(index, point);
	struct bpf_tc_opts opts = filter();

	opts.prog_fd = program;
	opts.flags = BPF_TC_F_REPLACE; /* what a killed exporter left behind goes */
	return bpf_tc_attach(&hook, &opts);
}

static void take(unsigned index, enum bpf_tc_attach_point point, uint32_t program_id)
{
	const struct bpf_tc_hook hook = hook_of(index, point);
	const struct bpf_tc_opts opts = filter();

	if (standing(index, point) == program_id)
		bpf_tc_detach(&hook, &opts);
}

/* The programs on a port that has none of them yet. The clsact qdisc stays when they go: others may use it by then. */
static int attach(struct backend *b, struct port *p)
{
	struct bpf_tc_hook both = hook_of(p->interface.index, BPF_TC_INGRESS | BPF_TC_EGRESS);
	int ret;

	listen_to_libbpf();
	ret = bpf_tc_hook_create(&both);
	if (ret < 0 && ret != -EEXIST)
		return ret;
	/* Where an old `ingress` qdisc is in the place, the kernel takes its egress for its ingress: what is put there must be replaced. */
	put(p->interface.index, BPF_TC_EGRESS, b->fd.down);
	ret = put(p->interface.index, BPF_TC_INGRESS, b->fd.up);
	if (ret < 0)
		return ret;
	p->egress = standing(p->interface.index, BPF_TC_EGRESS) == b->down_id;
	p->index = p->interface.index;
	return 0;
}

static void detach(struct backend *b, struct port *p)
{
	listen_to_libbpf();
	take(p->index, BPF_TC_INGRESS, b->up_id);
	take(p->index, BPF_TC_EGRESS, b->down_id);
	p->index = 0;
}

/* Each port that is there has the programs afterwards. The first time they replace those of an exporter before us; later, those of one
 * that came after us (`ap-exporter rwnd` by hand) stay until it goes. */
static void look(struct backend *b, bool first)
{
	b->n_attached = 0;
	for (unsigned i = 0; i < b->n_ports; i++) {
		struct port *p = &b->ports[i];
		uint32_t there = 0;
		int ret = 0;

		interface_update(&p->interface);
		listen_to_libbpf();
		if (p->interface.index && !first)
			there = standing(p->interface.index, BPF_TC_INGRESS);
		if (p->index != p->interface.index || there != b->up_id)
			p->index = 0;
		if (!p->index && p->interface.index)
			ret = there ? -EBUSY : attach(b, p);
		if (ret < 0) {
			b->attach_errors++;
			snprintf(b->told, sizeof b->told, "cannot attach to %s: %s%s%s", p->interface.name,
				 ret == -EBUSY ? "another ap-exporter works there" : strerror(-ret), said[0] ? ": " : "", said);
		}
		b->n_attached += p->index != 0;
	}
}

/* True if anything happened to interfaces or filters. */
static bool hear_news(struct backend *b)
{
	char bytes[64]; /* that there is news is all that counts */
	bool any = false;
	ssize_t n;

	for (unsigned i = 0; i < MOST_NEWS; i++) {
		n = recv(b->news, bytes, sizeof bytes, MSG_DONTWAIT | MSG_TRUNC);
		if (n < 0 && errno != ENOBUFS)
			break;
		any = true;
	}
	return any;
}

static void poll_ports(struct rwnd *r, uint64_t now_us)
{
	struct backend *b = backend_of(r);

	b->look |= hear_news(b) || b->n_attached < b->n_ports;
	if (!b->look || now_us < b->look_at_us)
		return;
	b->look = false;
	b->look_at_us = now_us + LOOK_US;
	look(b, false);
	for (unsigned i = 0; i < b->n_ports; i++)
		interface_report(&b->ports[i].interface, "rwnd");
}

static int open_news(void)
{
	const struct sockaddr_nl to = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK | RTMGRP_TC };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (fd >= 0 && bind(fd, (const struct sockaddr *)&to, sizeof to) < 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* --- life */

/* Names of ports, separated by commas. */
static int name_ports(struct port *ports, unsigned *n, const struct config_rwnd *c, char *err, size_t err_size)
{
	const char *at = c->interface;

	for (*n = 0; *at; at += strspn(at, ",")) {
		const size_t len = strcspn(at, ",");
		char name[INTERFACE_NAME];

		if (len >= sizeof name || *n == MOST_PORTS) {
			snprintf(err, err_size, "option 'interface' of section 'rwnd' is '%s'; it is at most %d names of at most %zu letters", c->interface,
				 MOST_PORTS, sizeof name - 1);
			return -EINVAL;
		}
		memcpy(name, at, len);
		name[len] = '\0';
		interface_init(&ports[(*n)++].interface, name);
		at += len;
	}
	if (*n)
		return 0;
	snprintf(err, err_size, "section 'rwnd' names no Wi-Fi port: set option 'interface', or have a section 'nl80211'");
	return -EINVAL;
}

static int check(const struct config_rwnd *c, char *err, size_t err_size)
{
	struct port ports[MOST_PORTS];
	unsigned n;
	int ret = name_ports(ports, &n, c, err, err_size), fd;

	if (ret < 0)
		return ret;
	listen_to_libbpf();
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "oal_check", 4, 4, 1, NULL);
	if (fd < 0) {
		snprintf(err, err_size, "this kernel refuses BPF maps: %s; start as root, on a kernel with CONFIG_BPF_SYSCALL and CONFIG_NET_CLS_BPF (kmod-sched-bpf)",
			 strerror(-fd));
		return fd;
	}
	close(fd);
	return 0;
}

static uint32_t program_id(int fd)
{
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof info;

	return bpf_obj_get_info_by_fd(fd, &info, &len) < 0 ? 0 : info.id;
}

static void close_backend(struct rwnd *r);

static int open_backend(struct rwnd *r, const struct config_rwnd *c, char *err, size_t err_size)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = "oal_rwnd");
	const uint32_t scales = c->max_flows * SCALES_PER_CLAMP;
	struct backend *b = calloc(1, sizeof *b);
	const char *step = "find memory for it";
	int ret = -ENOMEM;

	if (!b)
		goto fail;
	r->self = b;
	b->news = -1;
	ret = name_ports(b->ports, &b->n_ports, c, err, err_size);
	if (ret < 0) {
		close_backend(r);
		return ret;
	}
	listen_to_libbpf();
	b->cpus = libbpf_num_possible_cpus();
	ret = -ENOMEM;
	if (b->cpus <= 0 || !(b->counts = calloc((size_t)b->cpus, sizeof *b->counts)))
		goto fail;
	step = "read the BPF object";
	b->object = bpf_object__open_mem(oal_rwnd_object, (size_t)(oal_rwnd_object_end - oal_rwnd_object), &opts);
	if (!b->object) {
		ret = -errno;
		goto fail;
	}
	bpf_map__set_max_entries(bpf_object__find_map_by_name(b->object, "clamps"), c->max_flows);
	bpf_map__set_max_entries(bpf_object__find_map_by_name(b->object, "scales"), scales > LEAST_SCALES ? scales : LEAST_SCALES);
	step = "load the BPF programs";
	ret = bpf_object__load(b->object);
	if (ret < 0)
		goto fail;
	b->fd = (struct rwnd_bpf_fds){
		.up = bpf_program__fd(bpf_object__find_program_by_name(b->object, "rwnd_up")),
		.down = bpf_program__fd(bpf_object__find_program_by_name(b->object, "rwnd_down")),
		.clamps = bpf_object__find_map_fd_by_name(b->object, "clamps"),
		.scales = bpf_object__find_map_fd_by_name(b->object, "scales"),
		.counters = bpf_object__find_map_fd_by_name(b->object, "counters"),
	};
	b->up_id = program_id(b->fd.up);
	b->down_id = program_id(b->fd.down);
	step = "listen to rtnetlink";
	b->news = open_news();
	if (b->news < 0) {
		ret = -errno;
		goto fail;
	}
	look(b, true);
	if (b->attach_errors) { /* a port that is not there yet is none */
		snprintf(err, err_size, "rwnd with bpf: %s", b->told);
		close_backend(r);
		return -EIO;
	}
	return 0;
fail:
	snprintf(err, err_size, "rwnd with bpf: cannot %s: %s; it takes root and a kernel of 5.11 or later with CONFIG_NET_CLS_BPF (kmod-sched-bpf)", step,
		 said[0] ? said : strerror(-ret));
	if (b)
		close_backend(r);
	return ret;
}

static void close_backend(struct rwnd *r)
{
	struct backend *b = backend_of(r);

	for (unsigned i = 0; i < b->n_ports; i++)
		if (b->ports[i].index)
			detach(b, &b->ports[i]);
	bpf_object__close(b->object);
	if (b->news >= 0)
		close(b->news);
	free(b->counts);
	free(b);
	r->self = NULL;
}

/* --- clamps */

static void name_address(__be32 name[4], const uint8_t *addr, unsigned len)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (len == 16) {
		memcpy(name, addr, 16);
	} else {
		memcpy(name, mapped, 12);
		memcpy(name + 3, addr, 4);
	}
}

static struct rwnd_bpf_flow name_flow(const struct rwnd_flow *f)
{
	struct rwnd_bpf_flow name = {
		.client_port = htons(f->client_port),
		.server_port = htons(f->server_port),
	};

	name_address(name.client, f->client_addr, f->addr_len);
	name_address(name.server, f->server_addr, f->addr_len);
	return name;
}

static int set(struct rwnd *r, const struct rwnd_flow *f, uint32_t bytes, uint32_t ttl_ms)
{
	struct backend *b = backend_of(r);
	const struct rwnd_bpf_flow name = name_flow(f);
	/* A packet may read an entry that is being replaced (the kernel uses its memory again at once): then one ACK may carry
	 * another flow's clamp. It is a window of at least that flow's floor, and the next ACK is right. */
	const struct rwnd_bpf_clamp clamp = {
		.deadline_ns = clock_monotonic_ns() + ttl_ms * UINT64_C(1000000),
		.bytes = bytes,
		.floor_bytes = rwnd_floor_bytes(f),
		.scale = f->scale,
	};
	int ret;

	if (!b->n_attached)
		return -ENOTCONN;
	ret = bpf_map_update_elem(b->fd.clamps, &name, &clamp, BPF_ANY);
	return ret == -E2BIG ? -ENOSPC : ret;
}

static int release(struct rwnd *r, const struct rwnd_flow *f)
{
	const struct rwnd_bpf_flow name = name_flow(f);
	int ret = bpf_map_delete_elem(backend_of(r)->fd.clamps, &name);

	return ret == -ENOENT ? 0 : ret; /* a SYN ended it before */
}

static void release_all(struct rwnd *r)
{
	const int fd = backend_of(r)->fd.clamps;
	struct rwnd_bpf_flow name;

	while (bpf_map_get_next_key(fd, NULL, &name) == 0 && bpf_map_delete_elem(fd, &name) == 0)
		;
}

/* --- counters */

static void sum_counters(struct backend *b)
{
	const uint32_t zero = 0;

	if (bpf_map_lookup_elem(b->fd.counters, &zero, b->counts) < 0)
		return; /* what was last known stays */
	memset(&b->sum, 0, sizeof b->sum);
	for (int cpu = 0; cpu < b->cpus; cpu++)
		for (unsigned i = 0; i < RWND_BPF_N_COUNTERS; i++)
			b->sum.n[i] += b->counts[cpu].n[i];
}

static void stats(struct rwnd *r, struct rwnd_stats *s)
{
	struct backend *b = backend_of(r);

	sum_counters(b);
	s->ready = b->n_attached > 0;
	s->errors += b->attach_errors;
	s->acks_clamped = b->sum.n[RWND_BPF_CLAMPED];
	s->acks_skipped = 0;
	for (unsigned i = RWND_BPF_CLAMPED + 1; i <= RWND_BPF_OTHER_SCALE; i++)
		s->acks_skipped += b->sum.n[i];
	s->acks_seen = s->acks_clamped + s->acks_skipped;
}

static void json(struct rwnd *r, struct json *j)
{
#define NAME(NAME, name) #name,
	static const char *const names[] = { RWND_BPF_COUNTERS(NAME) };
#undef NAME
	struct backend *b = backend_of(r);

	sum_counters(b);
	json_add(j, ", \"packets\": {");
	for (unsigned i = 0; i < RWND_BPF_N_COUNTERS; i++)
		json_add(j, "%s\"%s\": %llu", i ? ", " : "", names[i], (unsigned long long)b->sum.n[i]);
	json_add(j, "}, \"ports\": [");
	for (unsigned i = 0; i < b->n_ports; i++) {
		const struct port *p = &b->ports[i];

		json_add(j, "%s{\"interface\": ", i ? ", " : "");
		json_string(j, p->interface.name);
		json_add(j, ", \"attached\": %s, \"syn_acks\": %s", p->index ? "true" : "false", p->index && p->egress ? "true" : "false");
		json_count(j, "losses", p->interface.losses);
		json_add(j, "}");
	}
	json_add(j, "], \"last_error\": ");
	json_string(j, b->told);
}

struct rwnd_bpf_fds rwnd_bpf_fds(const struct rwnd *r)
{
	return backend_of(r)->fd;
}

const struct rwnd_ops rwnd_bpf = {
	.name = "bpf",
	.id = OAL_REWRITE_BACKEND_BPF,
	.learns_scale = true,
	.check = check,
	.open = open_backend,
	.set = set,
	.release = release,
	.release_all = release_all,
	.poll = poll_ports,
	.stats = stats,
	.json = json,
	.close = close_backend,
};
#endif
