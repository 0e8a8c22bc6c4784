/* The rewrite by tc programs (bpf/rwnd.bpf.c) on the Wi-Fi ports; the compiled object is part of this file. */
#ifdef HAVE_BPF
#include "rewrite/rwnd_bpf.h"

#include "base/json.h"
#include "helper/helper.h"
#include "helper/tc_ports.h"
#include "rewrite/bpf/rwnd_bpf_maps.h"
#include "rewrite/rwnd_backend.h"
#include "rewrite/rwnd_clamps.h"
#include "rewrite/rwnd_programs.h"
#include "tc/tc_error.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	LEAST_SCALES = 2048, /* an LRU map far smaller than its per-CPU batches forgets what was just learned */
	/* Of flows whose SYN was seen, two each, to those that are clamped: most flows never are. */
	SCALES_PER_CLAMP = 8,
};
_Static_assert((int)RWND_BPF_DIRECTIONS == (int)RWND_DIRECTIONS, "each has its counters");
_Static_assert(RWND_BPF_LEARNED == RWND_SCALE_LEARNED, "a flow's scale goes into the map as it is");

struct backend {
	struct bpf_object *object; /* NULL once the helper holds it */
	struct rwnd_bpf_fds fd;
	struct tc_ports ports;
	struct rwnd_programs programs; /* the helper's */
	struct rwnd_bpf_counts sum[RWND_DIRECTIONS]; /* as last read */
	uint64_t late_errors; /* of sets that had been sent */
	int set_error; /* of the last, where the answer is there at once */
};

/* The object file, compiled by clang (see Makefile). */
__asm__(".section .rodata\n.balign 16\n.globl oal_rwnd_object, oal_rwnd_object_end\n"
	"oal_rwnd_object:\n.incbin \"" RWND_BPF_OBJECT "\"\noal_rwnd_object_end:\n.byte 0\n.previous\n");
extern const char oal_rwnd_object[], oal_rwnd_object_end[];

static inline struct backend *backend_of(const struct action *a)
{
	return a->self;
}

/* --- life */

static int check(const void *config, char *err, size_t err_size)
{
	const struct config_rwnd *c = config;

	return tc_ports_check("rwnd", c->interface, TC_PRIORITY_RWND, err, err_size);
}

static void close_backend(struct action *a);
static void on_answer(void *self, const struct helper_answer *a);

/* Hands the programs over, and has them put on the ports that are there. */
static int attach(struct backend *b, const char **step)
{
	struct helper_slot slot = {
		.fields = { [HELPER_SET] = HELPER_FLOW | HELPER_CLAMP, [HELPER_RELEASE] = HELPER_FLOW,
			    [HELPER_CLEAR] = HELPER_BARE, [HELPER_READ] = HELPER_BARE },
		.command = rwnd_programs_command,
		.self = &b->programs,
	};
	int ret;

	*step = "hand the programs over";
	tc_ports_programs(&b->ports, b->fd.up, b->fd.down);
	slot.place = b->ports.place;
	slot.maps[0] = b->fd.clamps;
	slot.maps[1] = b->fd.counters;
	ret = helper_slot_new(&slot, on_answer, b);
	if (ret < 0)
		return ret;
	*step = "listen to rtnetlink";
	return tc_ports_open(&b->ports, ret);
}

static int open_backend(struct action *a, const void *config, char *err, size_t err_size)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = "oal_rwnd");
	const struct config_rwnd *c = config;
	const uint32_t scales = c->max_flows * SCALES_PER_CLAMP;
	struct backend *b = calloc(1, sizeof *b);
	const char *step = "find memory for it";
	int ret = -ENOMEM;

	if (!b)
		goto fail;
	a->self = b;
	b->ports.slot = b->ports.changes = -1;
	ret = tc_ports_name(&b->ports, "rwnd", c->interface, TC_PRIORITY_RWND, err, err_size);
	if (ret < 0) {
		close_backend(a);
		return ret;
	}
	tc_error_begin();
	b->programs.cpus = libbpf_num_possible_cpus();
	ret = -ENOMEM;
	if (b->programs.cpus <= 0 ||
	    !(b->programs.counts = calloc((size_t)b->programs.cpus, sizeof *b->programs.counts)))
		goto fail;
	step = "read the BPF object";
	b->object = bpf_object__open_mem(oal_rwnd_object, (size_t)(oal_rwnd_object_end - oal_rwnd_object), &opts);
	if (!b->object) {
		ret = -errno;
		goto fail;
	}
	bpf_map__set_max_entries(bpf_object__find_map_by_name(b->object, "clamps"), c->max_flows);
	bpf_map__set_max_entries(bpf_object__find_map_by_name(b->object, "scales"),
				 scales > LEAST_SCALES ? scales : LEAST_SCALES);
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
	b->programs.clamps = b->fd.clamps;
	b->programs.counters = b->fd.counters;
	ret = attach(b, &step);
	if (ret < 0 && b->ports.attach_errors) {
		snprintf(err, err_size, "rwnd with bpf: %s", b->ports.last_error);
		close_backend(a);
		return ret;
	}
	if (ret < 0)
		goto fail;
	return 0;
fail:
	snprintf(err, err_size,
		 "rwnd with bpf: cannot %s: %s; it takes root and a kernel of 5.11 or later with CONFIG_NET_CLS_BPF "
		 "(kmod-sched-bpf)",
		 step, tc_error_text()[0] ? tc_error_text() : strerror(-ret));
	if (b)
		close_backend(a);
	return ret;
}

static void close_backend(struct action *a)
{
	struct backend *b = backend_of(a);

	tc_ports_close(&b->ports);
	bpf_object__close(b->object);
	free(b->programs.counts);
	free(b);
	a->self = NULL;
}

static void poll_ports(struct action *a, uint64_t now_us)
{
	tc_ports_poll(&backend_of(a)->ports, now_us);
}

/* --- clamps */

static void write_address(uint8_t out[16], const uint8_t *addr, unsigned len)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (len == 16) {
		memcpy(out, addr, 16);
	} else {
		memcpy(out, mapped, 12);
		memcpy(out + 12, addr, 4);
	}
}

static struct helper_record record_of(const struct rwnd_flow *f)
{
	struct helper_record r = { .direction = f->direction,
				   .flow = { .client_port = f->client_port, .server_port = f->server_port } };

	write_address(r.flow.client, f->client_addr, f->addr_len);
	write_address(r.flow.server, f->server_addr, f->addr_len);
	return r;
}

/* What the helper says. Sets and releases that failed: of one that it did itself the caller hears at once. */
static void on_answer(void *self, const struct helper_answer *a)
{
	struct backend *b = self;

	if (a->command == HELPER_STARTED) {
		bpf_object__close(b->object);
		b->object = NULL;
	} else if (a->command == HELPER_READ && !a->error) {
		memcpy(b->sum, a->values, sizeof b->sum);
	} else if (a->command == HELPER_SET || a->command == HELPER_RELEASE || a->command == HELPER_CLEAR) {
		b->set_error = a->error;
		b->late_errors += helper_started();
	}
	tc_ports_answer(&b->ports, a);
}

static int send_command(struct backend *b, enum helper_command command, struct helper_record *r)
{
	int ret;

	b->set_error = 0;
	ret = helper_send(b->ports.slot, command, r);
	ret = ret ? ret : b->set_error;
	return ret == -E2BIG ? -ENOSPC : ret;
}

static int set(struct action *a, const void *subject, uint64_t bytes, uint32_t ttl_ms)
{
	const struct rwnd_flow *f = subject;
	struct backend *b = backend_of(a);
	struct helper_record r = record_of(f);

	r.bytes = (uint32_t)bytes;
	r.mss_bytes = f->mss_bytes;
	r.scale = f->scale;
	r.ttl_ms = (uint16_t)ttl_ms;
	return b->ports.n_attached ? send_command(b, HELPER_SET, &r) : -ENOTCONN;
}

static int release(struct action *a, const void *subject)
{
	struct helper_record r = record_of(subject);

	return send_command(backend_of(a), HELPER_RELEASE, &r);
}

static void release_all(struct action *a)
{
	struct helper_record r = { 0 };

	send_command(backend_of(a), HELPER_CLEAR, &r);
}

/* --- counters: those of the last answer; while the helper runs, of the last time that somebody looked, which is once a
 * second at least */

static void sum_counters(struct backend *b)
{
	struct helper_record r = { 0 };

	helper_send(b->ports.slot, HELPER_READ, &r); /* what was last known stays where it fails */
}

static struct action_way packets_of(const struct rwnd_bpf_counts *c)
{
	struct action_way w = { .packets_changed = c->n[RWND_BPF_CLAMPED] };

	for (unsigned i = RWND_BPF_CLAMPED + 1; i <= RWND_BPF_REPLACED; i++)
		w.packets_skipped += c->n[i];
	w.packets_seen = w.packets_changed + w.packets_skipped;
	return w;
}

static void stats(struct action *a, struct action_stats *s)
{
	struct backend *b = backend_of(a);
	struct action_way up, down;

	sum_counters(b);
	up = packets_of(&b->sum[RWND_UP]);
	down = packets_of(&b->sum[RWND_DOWN]);
	s->ready = b->ports.n_attached > 0 && !helper_lost();
	s->errors += b->ports.attach_errors + b->late_errors;
	s->packets_seen = up.packets_seen + down.packets_seen;
	s->packets_changed = up.packets_changed + down.packets_changed;
	s->packets_skipped = up.packets_skipped + down.packets_skipped;
	down.in_force = s->down.in_force;
	s->down = down;
}

static void json_packets(struct json *j, const char *name, const struct rwnd_bpf_counts *c)
{
#define NAME(NAME, name) #name,
	static const char *const names[] = { RWND_BPF_COUNTERS(NAME) };
#undef NAME

	json_add(j, ", \"%s\": {", name);
	for (unsigned i = 0; i < RWND_BPF_N_COUNTERS; i++)
		json_add(j, "%s\"%s\": %llu", i ? ", " : "", names[i], (unsigned long long)c->n[i]);
	json_add(j, "}");
}

static void json(struct action *a, struct json *j)
{
	struct backend *b = backend_of(a);

	sum_counters(b);
	json_packets(j, "packets", &b->sum[RWND_UP]);
	json_packets(j, "packets_down", &b->sum[RWND_DOWN]);
	json_add(j, ", \"ports\": [");
	for (unsigned i = 0; i < b->ports.n; i++) {
		const struct tc_port *p = &b->ports.ports[i];

		json_add(j, "%s{\"interface\": ", i ? ", " : "");
		json_string(j, p->interface.name);
		json_add(j, ", \"attached\": %s, \"syn_acks\": %s", p->index ? "true" : "false",
			 p->index && p->egress ? "true" : "false");
		json_count(j, "losses", p->interface.losses);
		json_add(j, "}");
	}
	json_add(j, "], \"last_error\": ");
	json_string(j, b->ports.last_error);
}

struct rwnd_bpf_fds rwnd_bpf_fds(const struct rwnd *r)
{
	return backend_of(&r->action)->fd;
}

const struct action_ops rwnd_bpf = {
	.name = "bpf",
	.kind = OAL_ACTION_KIND_RWND,
	.id = OAL_REWRITE_BACKEND_BPF,
	.subject = "flow",
	.meet = rwnd_meet,
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
