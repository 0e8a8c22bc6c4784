/* Marks by tc programs (bpf/mark.bpf.c) on the Wi-Fi ports; the compiled object is part of this file. */
#ifdef HAVE_BPF
#include "mark/mark_bpf.h"

#include "base/json.h"
#include "helper/helper.h"
#include "helper/tc_ports.h"
#include "mark/bpf/mark_bpf_maps.h"
#include "mark/mark_backend.h"
#include "mark/mark_programs.h"
#include "mark/mark_stations.h"
#include "tc/tc_error.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(MARK_BPF_ECT1 == MARK_ECT1 && MARK_BPF_ECT0 == MARK_ECT0, "marks go into the map as they are");

struct backend {
	struct bpf_object *object; /* NULL once the helper holds it */
	struct mark_bpf_fds fd;
	struct tc_ports ports;
	struct mark_programs programs; /* the helper's */
	struct mark_bpf_counts sum; /* as last read */
	uint64_t late_errors; /* of sets that had been sent */
	int set_error; /* of the last, where the answer is there at once */
};

/* The object file, compiled by clang (see Makefile). */
__asm__(".section .rodata\n.balign 16\n.globl oal_mark_object, oal_mark_object_end\n"
	"oal_mark_object:\n.incbin \"" MARK_BPF_OBJECT "\"\noal_mark_object_end:\n.byte 0\n.previous\n");
extern const char oal_mark_object[], oal_mark_object_end[];

static inline struct backend *backend_of(const struct action *a)
{
	return a->self;
}

/* --- life */

static int check(const void *config, char *err, size_t err_size)
{
	const struct config_mark *c = config;

	return tc_ports_check("mark", c->interface, TC_PRIORITY_MARK, err, err_size);
}

/* What the helper says. Sets and releases that failed: of one that it did itself the caller hears at once. */
static void on_answer(void *self, const struct helper_answer *a)
{
	struct backend *b = self;

	if (a->command == HELPER_STARTED) {
		bpf_object__close(b->object);
		b->object = NULL;
	} else if (a->command == HELPER_READ && !a->error) {
		memcpy(b->sum.n, a->values, sizeof b->sum.n);
	} else if (a->command == HELPER_SET || a->command == HELPER_RELEASE || a->command == HELPER_CLEAR) {
		b->set_error = a->error;
		b->late_errors += helper_started();
	}
	tc_ports_answer(&b->ports, a);
}

/* Hands the programs over, and has them put on the ports that are there. */
static int attach(struct backend *b, const char **step)
{
	struct helper_slot slot = {
		.fields = { [HELPER_SET] = HELPER_MAC | HELPER_CLAMP, [HELPER_RELEASE] = HELPER_MAC,
			    [HELPER_CLEAR] = HELPER_BARE, [HELPER_READ] = HELPER_BARE },
		.command = mark_programs_command,
		.self = &b->programs,
	};
	int ret;

	*step = "hand the programs over";
	tc_ports_programs(&b->ports, b->fd.up, b->fd.down);
	slot.place = b->ports.place;
	slot.maps[0] = b->fd.states;
	slot.maps[1] = b->fd.counters;
	ret = helper_slot_new(&slot, on_answer, b);
	if (ret < 0)
		return ret;
	*step = "listen to rtnetlink";
	return tc_ports_open(&b->ports, ret);
}

static int load(struct backend *b, const struct config_mark *c, const char **step)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = "oal_mark");
	int ret;

	*step = "find memory for it";
	b->programs.cpus = libbpf_num_possible_cpus();
	if (b->programs.cpus <= 0 ||
	    !(b->programs.counts = calloc((size_t)b->programs.cpus, sizeof *b->programs.counts)))
		return -ENOMEM;
	*step = "read the BPF object";
	b->object = bpf_object__open_mem(oal_mark_object, (size_t)(oal_mark_object_end - oal_mark_object), &opts);
	if (!b->object)
		return -errno;
	bpf_map__set_max_entries(bpf_object__find_map_by_name(b->object, "states"), c->max_stations);
	*step = "load the BPF programs";
	ret = bpf_object__load(b->object);
	if (ret < 0)
		return ret;
	b->fd = (struct mark_bpf_fds){
		.up = bpf_program__fd(bpf_object__find_program_by_name(b->object, "mark_up")),
		.down = bpf_program__fd(bpf_object__find_program_by_name(b->object, "mark_down")),
		.states = bpf_object__find_map_fd_by_name(b->object, "states"),
		.spacings = bpf_object__find_map_fd_by_name(b->object, "spacings"),
		.counters = bpf_object__find_map_fd_by_name(b->object, "counters"),
	};
	b->programs.states = b->fd.states;
	b->programs.counters = b->fd.counters;
	return attach(b, step);
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

static int open_backend(struct action *a, const void *config, char *err, size_t err_size)
{
	const struct config_mark *c = config;
	struct backend *b = calloc(1, sizeof *b);
	const char *step;
	int ret;

	if (!b) {
		snprintf(err, err_size, "mark with bpf: out of memory");
		return -ENOMEM;
	}
	a->self = b;
	b->ports.slot = b->ports.changes = -1;
	ret = tc_ports_name(&b->ports, "mark", c->interface, TC_PRIORITY_MARK, err, err_size);
	if (ret < 0) {
		close_backend(a);
		return ret;
	}
	tc_error_begin();
	ret = load(b, c, &step);
	if (ret >= 0)
		return 0;
	if (b->ports.attach_errors)
		snprintf(err, err_size, "mark with bpf: %s", b->ports.last_error);
	else
		snprintf(err, err_size,
			 "mark with bpf: cannot %s: %s; it takes root and a kernel of 5.11 or later with "
			 "CONFIG_NET_CLS_BPF (kmod-sched-bpf)",
			 step, tc_error_text()[0] ? tc_error_text() : strerror(-ret));
	close_backend(a);
	return ret;
}

static void poll_ports(struct action *a, uint64_t now_us)
{
	tc_ports_poll(&backend_of(a)->ports, now_us);
}

/* --- marks */

/* Is there a port with a program at egress? An old `ingress` qdisc leaves no place for one. */
static bool is_ready(const struct backend *b)
{
	for (unsigned i = 0; i < b->ports.n; i++)
		if (b->ports.ports[i].index && b->ports.ports[i].egress)
			return true;
	return false;
}

static int send_command(struct backend *b, enum helper_command command, struct helper_record *r)
{
	int ret;

	b->set_error = 0;
	ret = helper_send(b->ports.slot, command, r);
	ret = ret ? ret : b->set_error;
	return ret == -E2BIG ? -ENOSPC : ret;
}

static int set(struct action *a, const void *key, uint64_t marks, uint32_t ttl_ms)
{
	const struct mark_station *s = key;
	struct helper_record r = { .scale = (uint8_t)marks, .bytes = s->interval_us, .ttl_ms = (uint16_t)ttl_ms };

	memcpy(r.mac, s->mac, sizeof r.mac);
	return is_ready(backend_of(a)) ? send_command(backend_of(a), HELPER_SET, &r) : -ENOTCONN;
}

static int release(struct action *a, const void *key)
{
	const struct mark_station *s = key;
	struct helper_record r = { 0 };

	memcpy(r.mac, s->mac, sizeof r.mac);
	return send_command(backend_of(a), HELPER_RELEASE, &r);
}

static void release_all(struct action *a)
{
	struct helper_record r = { 0 };

	send_command(backend_of(a), HELPER_CLEAR, &r);
}

/* --- counters: those of the last answer; while the helper runs, of the last time that somebody looked */

static void sum_counters(struct backend *b)
{
	struct helper_record r = { 0 };

	helper_send(b->ports.slot, HELPER_READ, &r); /* what was last known stays where it fails */
}

static void stats(struct action *a, struct action_stats *s)
{
	struct backend *b = backend_of(a);

	sum_counters(b);
	s->ready = is_ready(b) && !helper_lost();
	s->errors += b->ports.attach_errors + b->late_errors;
	s->packets_changed = b->sum.n[MARK_BPF_N_MARKED_ECT1] + b->sum.n[MARK_BPF_N_MARKED_ECT0];
	s->packets_skipped = 0;
	for (unsigned i = MARK_BPF_N_MARKED_ECT0 + 1; i < MARK_BPF_N_COUNTERS; i++)
		s->packets_skipped += b->sum.n[i];
	s->packets_seen = s->packets_changed + s->packets_skipped;
}

static void json(struct action *a, struct json *j)
{
#define NAME(NAME, name) #name,
	static const char *const names[] = { MARK_BPF_COUNTERS(NAME) };
#undef NAME
	struct backend *b = backend_of(a);

	sum_counters(b);
	json_add(j, ", \"packets\": {");
	for (unsigned i = 0; i < MARK_BPF_N_COUNTERS; i++)
		json_add(j, "%s\"%s\": %llu", i ? ", " : "", names[i], (unsigned long long)b->sum.n[i]);
	json_add(j, "}, \"ports\": [");
	for (unsigned i = 0; i < b->ports.n; i++) {
		const struct tc_port *p = &b->ports.ports[i];

		json_add(j, "%s{\"interface\": ", i ? ", " : "");
		json_string(j, p->interface.name);
		json_add(j, ", \"attached\": %s", p->index && p->egress ? "true" : "false");
		json_count(j, "losses", p->interface.losses);
		json_add(j, "}");
	}
	json_add(j, "], \"last_error\": ");
	json_string(j, b->ports.last_error);
}

struct mark_bpf_fds mark_bpf_fds(const struct mark *m)
{
	return backend_of(&m->action)->fd;
}

const struct action_ops mark_bpf = {
	.name = "bpf",
	.kind = OAL_ACTION_KIND_MARK,
	.id = OAL_REWRITE_BACKEND_BPF,
	.subject = "station",
	.meet = mark_meet,
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
