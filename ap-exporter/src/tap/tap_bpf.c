/* The tap by tc programs (bpf/tap.bpf.c); the compiled object is part of this file. */
#ifdef HAVE_BPF
#include "tap/tap_bpf.h"

#include "packet/interface.h"
#include "base/clock.h"
#include "tap/bpf/tap_maps.h"
#include "tap/tap.h"
#include "tc/tc_error.h"
#include "tc/tc_ports.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct tap {
	struct bpf_object *object;
	struct tc_ports ports;
	struct ring_buffer *ring;
	uint32_t most; /* records that the ring can hold: no more are read at once, or a flood could keep the tick */
	int cpus, stations_fd;
	const volatile struct tap_counts *counts; /* one a processor, mapped */
	size_t counts_bytes;
	uint32_t *frames, *overruns; /* one a processor: as last read, of counts that wrap */
	struct tap_bytes *bytes; /* one a processor: room for an answer of the kernel */
	struct tap_stats stats;
	/* During a read. */
	tap_frame_cb cb;
	void *ctx;
	int64_t to_realtime_us;
	uint32_t left;
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

static int take(void *ctx, void *data, size_t size);

/* Everything but the programs: where they leave what they see. */
static int map(struct tap *t, const struct tap_config *c, const char **step)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const int counts_fd = bpf_object__find_map_fd_by_name(t->object, "counts");
	void *counts;

	*step = "find memory for it";
	t->frames = calloc((size_t)t->cpus, sizeof *t->frames);
	t->overruns = calloc((size_t)t->cpus, sizeof *t->overruns);
	t->bytes = calloc((size_t)t->cpus, sizeof *t->bytes);
	if (!t->frames || !t->overruns || !t->bytes)
		return -ENOMEM;
	*step = "map the counts";
	t->counts_bytes = ((size_t)t->cpus * sizeof *t->counts + page - 1) / page * page;
	counts = mmap(NULL, t->counts_bytes, PROT_READ, MAP_SHARED, counts_fd, 0);
	if (counts == MAP_FAILED)
		return -errno;
	t->counts = counts;
	t->stations_fd = bpf_object__find_map_fd_by_name(t->object, "stations");
	*step = "map the ring";
	t->ring = ring_buffer__new(bpf_object__find_map_fd_by_name(t->object, "ring"), take, t, NULL);
	t->most = ring_bytes(c->ring_kb) / (uint32_t)sizeof(struct tap_record);
	return t->ring ? 0 : -errno;
}

static void close_tap(void *self)
{
	struct tap *t = self;

	tc_ports_close(&t->ports);
	ring_buffer__free(t->ring);
	if (t->counts)
		munmap((void *)(uintptr_t)t->counts, t->counts_bytes);
	bpf_object__close(t->object);
	free(t->frames);
	free(t->overruns);
	free(t->bytes);
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

static int open_tap(void **self, const struct tap_config *c, char *err, size_t err_size)
{
	struct tap *t = calloc(1, sizeof *t);
	const char *step = "find memory for it";
	struct tap_bpf_fds fds;
	int ret;

	if (!t)
		return failed(c, step, -ENOMEM, err, err_size);
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
	step = "listen to rtnetlink";
	fds = tap_bpf_fds(t);
	ret = tc_ports_open(&t->ports, fds.up, fds.down);
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
	struct tap *t = calloc(1, sizeof *t);
	const char *step = "find memory for it";
	int ret = -ENOMEM;

	if (t) {
		t->ports.changes = -1;
		ret = load(t, c, &step);
	}
	if (ret < 0)
		failed(c, step, ret, err, err_size);
	if (t)
		close_tap(t);
	return ret;
}

/* --- reading */

static int take(void *ctx, void *data, size_t size)
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
	return --t->left ? 0 : -EAGAIN; /* ends the reading; this record is done */
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
	t->left = t->most;
	ring_buffer__consume(t->ring);
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

/* As its address lies in a frame. */
static uint64_t key_of(uint64_t mac)
{
	uint8_t octets[8] = { 0 };
	uint64_t key;

	for (unsigned i = 0; i < 6; i++)
		octets[i] = (uint8_t)(mac >> (40 - 8 * i));
	memcpy(&key, octets, sizeof key);
	return key;
}

static int station(void *self, uint64_t mac, bool wanted)
{
	struct tap *t = self;
	const uint64_t key = key_of(mac);
	int ret;

	if (wanted) {
		memset(t->bytes, 0, (size_t)t->cpus * sizeof *t->bytes);
		return bpf_map_update_elem(t->stations_fd, &key, t->bytes, BPF_NOEXIST);
	}
	ret = bpf_map_delete_elem(t->stations_fd, &key);
	return ret == -ENOENT ? 0 : ret;
}

static int station_bytes(void *self, uint64_t mac, struct tap_station *s)
{
	struct tap *t = self;
	const uint64_t key = key_of(mac);
	const int ret = bpf_map_lookup_elem(t->stations_fd, &key, t->bytes);

	if (ret < 0)
		return ret;
	*s = (struct tap_station){ 0 };
	for (int cpu = 0; cpu < t->cpus; cpu++) {
		s->down_bytes += t->bytes[cpu].down;
		s->up_bytes += t->bytes[cpu].up;
	}
	return 0;
}

const struct tap_ops tap_bpf = {
	.name = "bpf",
	.check = check,
	.open = open_tap,
	.read = read_tap,
	.second = second,
	.stats = stats,
	.station = station,
	.station_bytes = station_bytes,
	.close = close_tap,
};
#endif
