/* The rewrite by tc programs (bpf/rwnd.bpf.c) on the Wi-Fi ports; the compiled object is part of this file. */
#ifdef HAVE_BPF
#include "rewrite/rwnd_bpf.h"

#include "base/json.h"
#include "helper/tc_action.h"
#include "rewrite/bpf/rwnd_bpf_maps.h"
#include "rewrite/rwnd_backend.h"
#include "rewrite/rwnd_clamps.h"
#include "rewrite/rwnd_programs.h"

#include <errno.h>
#include <string.h>

enum {
	LEAST_SCALES = 2048, /* an LRU map far smaller than its per-CPU batches forgets what was just learned */
	/* Of flows whose SYN was seen, two each, to those that are clamped: most flows never are. */
	SCALES_PER_CLAMP = 8,
};
_Static_assert((int)RWND_BPF_DIRECTIONS == (int)RWND_DIRECTIONS, "each has its counters");
_Static_assert(RWND_BPF_LEARNED == RWND_SCALE_LEARNED, "a flow's scale goes into the map as it is");

/* The object file, compiled by clang (see Makefile). */
__asm__(".section .rodata\n.balign 16\n.globl oal_rwnd_object, oal_rwnd_object_end\n"
	"oal_rwnd_object:\n.incbin \"" RWND_BPF_OBJECT "\"\noal_rwnd_object_end:\n.byte 0\n.previous\n");
extern const char oal_rwnd_object[], oal_rwnd_object_end[];

static const struct tc_action_kind kind = {
	.name = "rwnd",
	.object = oal_rwnd_object,
	.object_end = oal_rwnd_object_end,
	.up = "rwnd_up",
	.down = "rwnd_down",
	.table = "clamps",
	.counts_size = sizeof(struct rwnd_bpf_counts),
	.priority = TC_PRIORITY_RWND,
	.set_fields = HELPER_FLOW | HELPER_CLAMP,
	.release_fields = HELPER_FLOW,
	.command = rwnd_programs_command,
};

/* --- life */

static int check(const void *config, char *err, size_t err_size)
{
	const struct config_rwnd *c = config;

	return tc_action_check(&kind, c->interface, err, err_size);
}

static int open_backend(struct action *a, const void *config, char *err, size_t err_size)
{
	const struct config_rwnd *c = config;
	const uint32_t scales = c->max_flows * SCALES_PER_CLAMP;
	const struct tc_action_size sizes[] = { { "clamps", c->max_flows },
						{ "scales", scales > LEAST_SCALES ? scales : LEAST_SCALES } };
	struct tc_action *t;
	const int ret = tc_action_open(&t, &kind, c->interface, sizes, 2, err, err_size);

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

static int set(struct action *a, const void *subject, uint64_t bytes, uint32_t ttl_ms)
{
	const struct rwnd_flow *f = subject;
	struct tc_action *t = a->self;
	struct helper_record r = record_of(f);

	r.bytes = (uint32_t)bytes;
	r.mss_bytes = f->mss_bytes;
	r.scale = f->scale;
	r.ttl_ms = (uint16_t)ttl_ms;
	return t->ports.n_attached ? tc_action_send(t, HELPER_SET, &r) : -ENOTCONN;
}

static int release(struct action *a, const void *subject)
{
	struct helper_record r = record_of(subject);

	return tc_action_send(a->self, HELPER_RELEASE, &r);
}

static void release_all(struct action *a)
{
	tc_action_clear(a->self);
}

/* --- counters: of each direction, one after the other */

static const uint64_t *counts_of(const struct tc_action *t, enum rwnd_direction direction)
{
	return t->counts + direction * RWND_BPF_N_COUNTERS;
}

static struct action_way packets_of(const uint64_t *counts)
{
	struct action_way w = { .packets_changed = counts[RWND_BPF_CLAMPED] };

	for (unsigned i = RWND_BPF_CLAMPED + 1; i <= RWND_BPF_REPLACED; i++)
		w.packets_skipped += counts[i];
	w.packets_seen = w.packets_changed + w.packets_skipped;
	return w;
}

static void stats(struct action *a, struct action_stats *s)
{
	struct tc_action *t = a->self;
	struct action_way up, down;

	tc_action_read(t);
	up = packets_of(counts_of(t, RWND_UP));
	down = packets_of(counts_of(t, RWND_DOWN));
	s->ready = t->ports.n_attached > 0 && !helper_lost();
	s->errors += t->ports.attach_errors + t->late_errors;
	s->packets_seen = up.packets_seen + down.packets_seen;
	s->knows_changes = true;
	s->packets_changed = up.packets_changed + down.packets_changed;
	s->packets_skipped = up.packets_skipped + down.packets_skipped;
	down.in_force = s->down.in_force;
	s->down = down;
}

static void json_packets(struct json *j, const char *name, const uint64_t *counts)
{
#define NAME(NAME, name) #name,
	static const char *const names[] = { RWND_BPF_COUNTERS(NAME) };
#undef NAME

	json_add(j, ", \"%s\": {", name);
	for (unsigned i = 0; i < RWND_BPF_N_COUNTERS; i++)
		json_add(j, "%s\"%s\": %llu", i ? ", " : "", names[i], (unsigned long long)counts[i]);
	json_add(j, "}");
}

static void json(struct action *a, struct json *j)
{
	struct tc_action *t = a->self;

	tc_action_read(t);
	json_packets(j, "packets", counts_of(t, RWND_UP));
	json_packets(j, "packets_down", counts_of(t, RWND_DOWN));
	tc_action_json(t, "syn_acks", j);
}

struct rwnd_bpf_fds rwnd_bpf_fds(const struct rwnd *r)
{
	const struct tc_action *t = r->action.self;

	return (struct rwnd_bpf_fds){ t->up, t->down, t->programs.table, tc_action_map(t, "scales"),
				      t->programs.counters };
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
