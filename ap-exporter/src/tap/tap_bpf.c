/* The tap by tc programs (bpf/tap.bpf.c); the compiled object is part of this file. */
#ifdef HAVE_BPF
#include "tap/tap_bpf.h"

#include "base/clock.h"
#include "helper/helper.h"
#include "helper/tc_ports.h"
#include "packet/interface.h"
#include "tap/bpf/tap_maps.h"
#include "tap/tap.h"
#include "tap/tap_programs.h"
#include "tap/tap_ring.h"
#include "tc/tc_error.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct tap {
	struct bpf_object *object; /* NULL once the helper holds it */
	struct tc_ports ports;
	struct tap_programs programs; /* the helper's */
	struct tap_ring ring;
	uint32_t most; /* records that the ring can hold: no more are read at once, or a flood could keep the tick */
	int cpus;
	const volatile struct tap_counts *counts; /* one a processor, mapped */
	size_t counts_bytes;
	uint32_t *frames, *overruns; /* one a processor: as last read, of counts that wrap */
	struct tap_stats stats;
	int asked_error; /* of the last question, where the answer is there at once */
	tap_station_cb on_bytes; /* of what is asked about stations */
	void *on_bytes_ctx;
	/* During a read. */
	tap_frame_cb cb;
	void *ctx;
	int64_t to_realtime_us;
};

/* The object file, compiled by clang (see Makefile). */
__asm__(".section .rodata\n.balign 16\n.globl oal_tap_object, oal_tap_object_end\n"
	"oal_tap_object:\n.incbin \"" TAP_BPF_OBJECT "\"\noal_tap_object_end:\n.byte 0\n.previous\n");
extern const char oal_tap_object[], oal_tap_object_end[];

/* --- life */

/* A power of two of at least `kb` KiB, and a page. */
static uint32_t ring_bytes(uint32_t kb)
{
	uint32_t bytes = (uint32_t)sysconf(_SC_PAGESIZE);

	while (bytes < kb * 1024)
		bytes *= 2;
	return bytes;
}

/* With its programs in the kernel and on no port. */
static int load(struct tap *t, const struct tap_config *c, const char **step)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = "oal_tap");
	int ret;

	tc_error_begin();
	*step = "count the processors";
	t->cpus = libbpf_num_possible_cpus();
	if (t->cpus <= 0)
		return -ENODEV;
	*step = "read the BPF object";
	t->object = bpf_object__open_mem(oal_tap_object, (size_t)(oal_tap_object_end - oal_tap_object), &opts);
	if (!t->object)
		return -errno;
	bpf_map__set_max_entries(bpf_object__find_map_by_name(t->object, "ring"), ring_bytes(c->ring_kb));
	bpf_map__set_max_entries(bpf_object__find_map_by_name(t->object, "counts"), (uint32_t)t->cpus);
	bpf_map__set_max_entries(bpf_object__find_map_by_name(t->object, "stations"),
				 c->max_stations ? c->max_stations : 1);
	*step = "load the BPF programs";
	ret = bpf_object__load(t->object);
	return ret < 0 ? ret : 0;
}

/* Everything but the programs: where they leave what they see. */
static int map(struct tap *t, const struct tap_config *c, const char **step)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const int counts_fd = bpf_object__find_map_fd_by_name(t->object, "counts");
	void *counts;

	*step = "find memory for it";
	t->frames = calloc((size_t)t->cpus, sizeof *t->frames);
	t->overruns = calloc((size_t)t->cpus, sizeof *t->overruns);
	t->programs.cpus = t->cpus;
	t->programs.bytes = calloc((size_t)t->cpus, sizeof *t->programs.bytes);
	if (!t->frames || !t->overruns || !t->programs.bytes)
		return -ENOMEM;
	*step = "map the counts";
	t->counts_bytes = ((size_t)t->cpus * sizeof *t->counts + page - 1) / page * page;
	counts = mmap(NULL, t->counts_bytes, PROT_READ, MAP_SHARED, counts_fd, 0);
	if (counts == MAP_FAILED)
		return -errno;
	t->counts = counts;
	t->programs.stations = bpf_object__find_map_fd_by_name(t->object, "stations");
	*step = "map the ring";
	t->most = ring_bytes(c->ring_kb) / (uint32_t)sizeof(struct tap_record);
	return tap_ring_map(&t->ring, bpf_object__find_map_fd_by_name(t->object, "ring"), ring_bytes(c->ring_kb));
}

static void close_tap(void *self)
{
	struct tap *t = self;

	tc_ports_close(&t->ports);
	tap_ring_unmap(&t->ring);
	if (t->counts)
		munmap((void *)(uintptr_t)t->counts, t->counts_bytes);
	bpf_object__close(t->object);
	free(t->frames);
	free(t->overruns);
	free(t->programs.bytes);
	free(t);
}

struct tap_bpf_fds tap_bpf_fds(const void *self)
{
	const struct tap *t = self;

	return (struct tap_bpf_fds){
		.up = bpf_program__fd(bpf_object__find_program_by_name(t->object, "tap_up")),
		.down = bpf_program__fd(bpf_object__find_program_by_name(t->object, "tap_down")),
	};
}

/* Programs are loaded while the exporter starts; what it holds then it keeps. */
static int too_late(const struct tap_config *c, char *err, size_t err_size)
{
	if (!helper_started())
		return 0;
	snprintf(err, err_size,
		 "%s on %s: tc programs are loaded when ap-exporter starts, as it is configured then: restart it",
		 c->section, c->interface);
	return -EPERM;
}

static int failed(const struct tap_config *c, const char *step, int ret, char *err, size_t err_size)
{
	snprintf(err, err_size,
		 "%s on %s: cannot %s: %s; it takes root and a kernel of 5.8 or later with CONFIG_NET_CLS_BPF "
		 "(kmod-sched-bpf)",
		 c->section, c->interface, step, tc_error_text()[0] ? tc_error_text() : strerror(-ret));
	return ret;
}

/* An old `ingress` qdisc holds the port: it has no egress, and half of each flow would be missing. */
static int half_blind(const struct tap *t, char *err, size_t err_size)
{
	const struct tc_port *p = &t->ports.ports[0];

	if (!p->index || p->egress)
		return 0;
	snprintf(err, err_size,
		 "%s on %s: an `ingress` qdisc holds the port, so that no program can be at its egress: remove it, or "
		 "set option 'tap' to packet",
		 t->ports.section, p->interface.name);
	return -EBUSY;
}

static void on_answer(void *self, const struct helper_answer *a);

/* Hands the programs over, and has them put on the port if it is there. */
static int attach(struct tap *t, const char **step)
{
	const struct tap_bpf_fds fds = tap_bpf_fds(t);
	struct helper_slot slot = {
		.fields = { [HELPER_SET] = HELPER_MAC, [HELPER_RELEASE] = HELPER_MAC, [HELPER_READ] = HELPER_MAC },
		.command = tap_programs_command,
		.self = &t->programs,
	};
	int ret;

	*step = "hand the programs over";
	tc_ports_programs(&t->ports, fds.up, fds.down);
	slot.place = t->ports.place;
	slot.maps[0] = t->programs.stations;
	ret = helper_slot_new(&slot, on_answer, t);
	if (ret < 0)
		return ret;
	*step = "listen to rtnetlink";
	return tc_ports_open(&t->ports, ret);
}

static int open_tap(void **self, const struct tap_config *c, char *err, size_t err_size)
{
	struct tap *t = calloc(1, sizeof *t);
	const char *step = "find memory for it";
	int ret;

	if (!t)
		return failed(c, step, -ENOMEM, err, err_size);
	t->ports.slot = t->ports.changes = -1;
	ret = too_late(c, err, err_size);
	if (!ret)
		ret = tc_ports_name(&t->ports, c->section, c->interface, TC_PRIORITY_TAP, err, err_size);
	if (ret < 0)
		goto fail;
	ret = load(t, c, &step);
	if (!ret)
		ret = map(t, c, &step);
	if (ret < 0) {
		failed(c, step, ret, err, err_size);
		goto fail;
	}
	ret = attach(t, &step);
	if (ret < 0) {
		if (t->ports.attach_errors)
			snprintf(err, err_size, "%s: %s", c->section, t->ports.last_error);
		else
			failed(c, step, ret, err, err_size);
		goto fail;
	}
	ret = half_blind(t, err, err_size);
	if (ret < 0)
		goto fail;
	interface_report(&t->ports.ports[0].interface, c->section);
	*self = t;
	return 0;
fail:
	close_tap(t);
	return ret;
}

/* Loads the programs, since a kernel may take maps and refuse what they do. */
static int check(const struct tap_config *c, char *err, size_t err_size)
{
	struct tap *t;
	const char *step = "find memory for it";
	int ret = too_late(c, err, err_size);

	if (ret)
		return ret;
	ret = -ENOMEM;
	t = calloc(1, sizeof *t);
	if (t) {
		t->ports.slot = t->ports.changes = -1;
		ret = load(t, c, &step);
	}
	if (ret < 0)
		failed(c, step, ret, err, err_size);
	if (t)
		close_tap(t);
	return ret;
}

/* --- reading */

static void read_record(void *ctx, const void *data, uint32_t size)
{
	struct tap *t = ctx;
	const struct tap_record *r = data;
	const struct tap_frame frame = {
		.bytes = r->frame,
		.captured = r->bytes,
		.length = r->wire_bytes,
		.t_us = (uint64_t)((int64_t)(r->monotonic_ns / 1000) + t->to_realtime_us),
		.outgoing = !r->up,
	};

	t->stats.packets++;
	t->cb(t->ctx, &frame);
}

static void count(struct tap *t)
{
	for (int cpu = 0; cpu < t->cpus; cpu++) {
		const uint32_t frames = t->counts[cpu].frames, overruns = t->counts[cpu].overruns;

		t->stats.frames += frames - t->frames[cpu];
		t->stats.overruns += overruns - t->overruns[cpu];
		t->frames[cpu] = frames;
		t->overruns[cpu] = overruns;
	}
}

static void read_tap(void *self, int64_t to_realtime_us, tap_frame_cb cb, void *ctx)
{
	struct tap *t = self;

	t->cb = cb;
	t->ctx = ctx;
	t->to_realtime_us = to_realtime_us;
	tap_ring_read(&t->ring, t->most, read_record, t);
	count(t);
}

static void second(void *self)
{
	tc_ports_poll(&((struct tap *)self)->ports, clock_monotonic_us());
}

static void stats(void *self, struct tap_stats *s)
{
	const struct tap *t = self;
	const struct tc_port *p = &t->ports.ports[0];

	*s = t->stats;
	s->losses = p->interface.losses;
	s->attached = p->index && p->egress;
	s->last_error = s->attached ? "" : p->index ? "an `ingress` qdisc holds the port" : t->ports.last_error;
}

/* --- bytes of stations */

static uint64_t mac_of(const uint8_t octets[6])
{
	uint64_t mac = 0;

	for (unsigned i = 0; i < 6; i++)
		mac = mac << 8 | octets[i];
	return mac;
}

static int send_command(struct tap *t, enum helper_command command, uint64_t mac)
{
	struct helper_record r = { 0 };

	for (unsigned i = 0; i < 6; i++)
		r.mac[i] = (uint8_t)(mac >> (40 - 8 * i));
	t->asked_error = 0;
	return mac ? helper_send(t->ports.slot, command, &r) : -EINVAL;
}

/* What the helper says. */
static void on_answer(void *self, const struct helper_answer *a)
{
	struct tap *t = self;
	const struct tap_station seen = { .down_bytes = a->values[0], .up_bytes = a->values[1] };

	if (a->command == HELPER_STARTED) {
		bpf_object__close(t->object);
		t->object = NULL;
	} else if (a->command == HELPER_READ && !a->error && t->on_bytes) {
		t->on_bytes(t->on_bytes_ctx, mac_of(a->mac), &seen);
	}
	t->asked_error = a->error;
	tc_ports_answer(&t->ports, a);
}

static int station(void *self, uint64_t mac, bool wanted)
{
	struct tap *t = self;
	const int ret = send_command(t, wanted ? HELPER_SET : HELPER_RELEASE, mac);

	return ret ? ret : t->asked_error;
}

static void on_station_bytes(void *self, tap_station_cb cb, void *ctx)
{
	struct tap *t = self;

	t->on_bytes = cb;
	t->on_bytes_ctx = ctx;
}

static int station_bytes(void *self, uint64_t mac)
{
	struct tap *t = self;
	const int ret = send_command(t, HELPER_READ, mac);

	return ret ? ret : t->asked_error;
}

const struct tap_ops tap_bpf = {
	.name = "bpf",
	.check = check,
	.open = open_tap,
	.read = read_tap,
	.second = second,
	.stats = stats,
	.station = station,
	.on_station_bytes = on_station_bytes,
	.station_bytes = station_bytes,
	.close = close_tap,
};
#endif
