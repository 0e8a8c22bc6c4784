/* Marks by tc programs (bpf/mark.bpf.c) on the Wi-Fi ports; the compiled object is part of this file. */
#ifdef HAVE_BPF
#include "mark/mark_bpf.h"

#include "base/json.h"
#include "helper/tc_action.h"
#include "mark/bpf/mark_bpf_maps.h"
#include "mark/mark_backend.h"
#include "mark/mark_programs.h"
#include "mark/mark_stations.h"

#include <errno.h>
#include <string.h>

_Static_assert(MARK_BPF_ECT1 == MARK_ECT1 && MARK_BPF_ECT0 == MARK_ECT0, "marks go into the map as they are");

/* The object file, compiled by clang (see Makefile). */
__asm__(".section .rodata\n.balign 16\n.globl oal_mark_object, oal_mark_object_end\n"
	"oal_mark_object:\n.incbin \"" MARK_BPF_OBJECT "\"\noal_mark_object_end:\n.byte 0\n.previous\n");
extern const char oal_mark_object[], oal_mark_object_end[];

static const struct tc_action_kind kind = {
	.name = "mark",
	.object = oal_mark_object,
	.object_end = oal_mark_object_end,
	.up = "mark_up",
	.down = "mark_down",
	.table = "states",
	.counts_size = sizeof(struct mark_bpf_counts),
	.priority = TC_PRIORITY_MARK,
	.set_fields = HELPER_MAC | HELPER_CLAMP,
	.release_fields = HELPER_MAC,
	.command = mark_programs_command,
};

/* --- life */

static int check(const void *config, char *err, size_t err_size)
{
	const struct config_mark *c = config;

	return tc_action_check(&kind, c->interface, err, err_size);
}

static int open_backend(struct action *a, const void *config, char *err, size_t err_size)
{
	const struct config_mark *c = config;
	const struct tc_action_size size = { "states", c->max_stations };
	struct tc_action *t;
	const int ret = tc_action_open(&t, &kind, c->interface, &size, 1, err, err_size);

	a->self = t;
	return ret;
}

static void close_backend(struct action *a)
{
	tc_action_close(a->self);
	a->self = NULL;
}

static void poll_ports(struct action *a, uint64_t now_us)
{
	tc_ports_poll(&((struct tc_action *)a->self)->ports, now_us);
}

/* --- marks */

static int set(struct action *a, const void *key, uint64_t marks, uint32_t ttl_ms)
{
	const struct mark_station *s = key;
	struct helper_record r = { .scale = (uint8_t)marks, .bytes = s->interval_us, .ttl_ms = (uint16_t)ttl_ms };

	memcpy(r.mac, s->mac, sizeof r.mac);
	return tc_action_at_egress(a->self) ? tc_action_send(a->self, HELPER_SET, &r) : -ENOTCONN;
}

static int release(struct action *a, const void *key)
{
	const struct mark_station *s = key;
	struct helper_record r = { 0 };

	memcpy(r.mac, s->mac, sizeof r.mac);
	return tc_action_send(a->self, HELPER_RELEASE, &r);
}

static void release_all(struct action *a)
{
	tc_action_clear(a->self);
}

/* --- counters */

static void stats(struct action *a, struct action_stats *s)
{
	struct tc_action *t = a->self;

	tc_action_read(t);
	s->ready = tc_action_at_egress(t) && !helper_lost();
	s->errors += t->ports.attach_errors + t->late_errors;
	s->knows_changes = true;
	s->packets_changed = t->counts[MARK_BPF_N_MARKED_ECT1] + t->counts[MARK_BPF_N_MARKED_ECT0];
	s->packets_skipped = 0;
	for (unsigned i = MARK_BPF_N_MARKED_ECT0 + 1; i < MARK_BPF_N_COUNTERS; i++)
		s->packets_skipped += t->counts[i];
	s->packets_seen = s->packets_changed + s->packets_skipped;
}

static void json(struct action *a, struct json *j)
{
#define NAME(NAME, name) #name,
	static const char *const names[] = { MARK_BPF_COUNTERS(NAME) };
#undef NAME
	struct tc_action *t = a->self;

	tc_action_read(t);
	json_add(j, ", \"packets\": {");
	for (unsigned i = 0; i < MARK_BPF_N_COUNTERS; i++)
		json_add(j, "%s\"%s\": %llu", i ? ", " : "", names[i], (unsigned long long)t->counts[i]);
	json_add(j, "}");
	tc_action_json(t, NULL, j);
}

struct mark_bpf_fds mark_bpf_fds(const struct mark *m)
{
	const struct tc_action *t = m->action.self;

	return (struct mark_bpf_fds){ t->up, t->down, t->programs.table, tc_action_map(t, "spacings"),
				      t->programs.counters };
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
