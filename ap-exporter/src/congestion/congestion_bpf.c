/* Congestion controls by programs of the kernel; the compiled objects are part of this file. */
#include "congestion/congestion.h"

#include "base/clock.h"
#include "base/json.h"
#include "congestion/bpf/cc_maps.h"
#include "loss-cause/ca.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

_Static_assert(sizeof(struct oal_lc_model) == CONGESTION_MODEL_BYTES, "models go into the map as they are");
_Static_assert(sizeof(struct congestion_prefix) == sizeof(struct cc_prefix) &&
	       sizeof(struct cc_prefix) == sizeof(struct oal_lc_prefix), "prefixes are the maps' keys");

/* The object files, compiled by clang (see Makefile). */
__asm__(".section .rodata\n.balign 16\n.globl oal_cc_object, oal_cc_object_end, oal_ca_object, oal_ca_object_end\n"
	"oal_cc_object:\n.incbin \"" CC_BPF_OBJECT "\"\noal_cc_object_end:\n.balign 16\n"
	"oal_ca_object:\n.incbin \"" CA_BPF_OBJECT "\"\noal_ca_object_end:\n.byte 0\n.previous\n");
extern const char oal_cc_object[], oal_cc_object_end[], oal_ca_object[], oal_ca_object_end[];

/* Newer than the headers that this is built with (Linux 6.4). */
enum { STRUCT_OPS_BY_LINK = 1 << 13 /* BPF_F_LINK */, ATTACH_STRUCT_OPS = 44 /* BPF_STRUCT_OPS */ };

enum { MOST_COUNTERS = (int)CC_N_COUNTERS > (int)OAL_LC_N_REASONS ? (int)CC_N_COUNTERS : (int)OAL_LC_N_REASONS };

struct congestion {
	struct bpf_object *cc, *ca;
	struct bpf_link *program, *update; /* update: what filled the struct_ops map, not yet what registers it */
	int registration; /* a link, which ends with this process */
	int choices, models, choice_counts, model_counts; /* maps */
	int cpus;
	uint64_t *counts; /* room for a map's counters, of each processor */
	char available[256]; /* congestion controls that the kernel has, as it says them */
	uint64_t asked_ns; /* 0: never */
};

static int quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	return 0;
}

static struct bpf_object *open_object(const char *name, const char *from, const char *end)
{
	LIBBPF_OPTS(bpf_object_open_opts, o, .object_name = name);

	return bpf_object__open_mem(from, (size_t)(end - from), &o);
}

static int map_of(const struct bpf_object *o, const char *name)
{
	return bpf_map__fd(bpf_object__find_map_by_name(o, name));
}

/* The root of cgroup2, in which every process is. False: none is mounted. */
static bool find_cgroup(char *path, size_t size)
{
	FILE *const mounts = setmntent("/proc/mounts", "r");
	const struct mntent *m;
	bool found = false;

	while (mounts && !found && (m = getmntent(mounts)))
		if (!strcmp(m->mnt_type, "cgroup2"))
			found = snprintf(path, size, "%s", m->mnt_dir) < (int)size;
	if (mounts)
		endmntent(mounts);
	return found;
}

static int attach_choices(struct congestion *c, const char *cgroup, char *err, size_t err_size)
{
	char path[256];
	int fd, ret = 0;

	if (!cgroup[0] && !find_cgroup(path, sizeof path)) {
		snprintf(err, err_size, "no cgroup2 is mounted: mount -t cgroup2 none /sys/fs/cgroup");
		return -ENOENT;
	}
	fd = open(cgroup[0] ? cgroup : path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		ret = -errno;
		snprintf(err, err_size, "%s: %s", cgroup[0] ? cgroup : path, strerror(-ret));
		return ret;
	}
	c->program = bpf_program__attach_cgroup(bpf_object__find_program_by_name(c->cc, "choose"), fd);
	if (!c->program) {
		ret = -errno;
		snprintf(err, err_size, "the kernel refuses the program on %s: %s", cgroup[0] ? cgroup : path,
			 strerror(-ret));
	}
	close(fd);
	return ret;
}

/* As bpf_map__attach_struct_ops() of a libbpf that knows links of struct_ops: one without would leave oal_lc registered
 * when this process is killed. */
static int register_control(struct congestion *c)
{
	struct {
		uint32_t map, target, type, flags;
		uint8_t rest[112];
	} link = { 0 };

	c->update = bpf_map__attach_struct_ops(bpf_object__find_map_by_name(c->ca, "oal_lc"));
	if (!c->update)
		return -errno;
	link.map = (uint32_t)map_of(c->ca, "oal_lc");
	link.type = ATTACH_STRUCT_OPS;
	c->registration = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &link, sizeof link);
	return c->registration < 0 ? -errno : 0;
}

static int open_control(struct congestion *c, char *err, size_t err_size)
{
	int ret = -EINVAL;

	c->ca = open_object("oal_lc", oal_ca_object, oal_ca_object_end);
	if (c->ca) {
		bpf_map__set_map_flags(bpf_object__find_map_by_name(c->ca, "oal_lc"), STRUCT_OPS_BY_LINK);
		ret = bpf_object__load(c->ca);
	}
	ret = ret < 0 ? ret : register_control(c);
	if (ret == -EEXIST)
		snprintf(err, err_size, "another process has registered oal_lc: end it first");
	else if (ret < 0)
		snprintf(err, err_size, "the kernel does not take oal_lc (%s): that needs Linux 6.4 with BTF, JIT and "
			 "CUBIC, and root", strerror(-ret));
	return ret;
}

int congestion_open(struct congestion **out, const char *cgroup, bool models, char *err, size_t err_size)
{
	struct congestion *c = calloc(1, sizeof *c);
	int ret;

	if (!c)
		return -ENOMEM;
	libbpf_set_print(quiet);
	c->registration = c->models = c->model_counts = -1;
	c->cpus = libbpf_num_possible_cpus();
	c->counts = c->cpus > 0 ? calloc((size_t)c->cpus, MOST_COUNTERS * sizeof *c->counts) : NULL;
	if (!c->counts) {
		free(c);
		snprintf(err, err_size, "out of memory");
		return -ENOMEM;
	}
	c->cc = open_object("cc", oal_cc_object, oal_cc_object_end);
	ret = c->cc ? bpf_object__load(c->cc) : -EINVAL;
	if (ret < 0)
		snprintf(err, err_size,
			 "the kernel does not take the program (%s): that needs CAP_BPF and CAP_NET_ADMIN",
			 strerror(-ret));
	else if (models)
		ret = open_control(c, err, err_size);
	ret = ret < 0 ? ret : attach_choices(c, cgroup, err, err_size);
	if (ret < 0) {
		congestion_close(c);
		return ret;
	}
	c->choices = map_of(c->cc, "choices");
	c->choice_counts = map_of(c->cc, "counters");
	if (models) {
		c->models = map_of(c->ca, "models");
		c->model_counts = map_of(c->ca, "counters");
	}
	*out = c;
	return 0;
}

int congestion_check(const char *cgroup, char *err, size_t err_size)
{
	struct congestion *c;
	const int ret = congestion_open(&c, cgroup, false, err, err_size);

	if (!ret)
		congestion_close(c);
	return ret;
}

/* Does the kernel have it? Asked once a second at the most. */
static bool available(struct congestion *c, const char *name)
{
	const uint64_t now_ns = clock_monotonic_ns();
	const size_t len = strlen(name);
	const char *at;

	if (!c->asked_ns || now_ns - c->asked_ns >= UINT64_C(1000000000)) {
		const int fd = open("/proc/sys/net/ipv4/tcp_available_congestion_control", O_RDONLY | O_CLOEXEC);
		const ssize_t n = fd < 0 ? 0 : read(fd, c->available, sizeof c->available - 1);

		c->available[n < 0 ? 0 : n] = '\0';
		if (fd >= 0)
			close(fd);
		c->asked_ns = now_ns;
	}
	for (at = c->available; (at = strstr(at, name)) && len; at += len)
		if ((at == c->available || at[-1] == ' ') && strchr(" \n", at[len]))
			return true;
	return false;
}

static uint64_t deadline_ns(uint32_t ttl_ms)
{
	return clock_monotonic_ns() + ttl_ms * UINT64_C(1000000);
}

int congestion_choose(struct congestion *c, const struct congestion_prefix *p, const char *name, uint32_t ttl_ms)
{
	struct cc_choice choice = { 0 };

	if (!ttl_ms || ttl_ms > CONGESTION_MAX_TTL_MS || strlen(name) >= sizeof choice.name)
		return -EINVAL;
	if (!available(c, name))
		return -ENOENT;
	strcpy(choice.name, name);
	choice.deadline_ns = deadline_ns(ttl_ms);
	return bpf_map_update_elem(c->choices, p, &choice, BPF_ANY);
}

int congestion_model(struct congestion *c, const struct congestion_prefix *p,
		     const uint8_t model[CONGESTION_MODEL_BYTES], uint32_t ttl_ms)
{
	struct oal_lc_model m;

	if (c->models < 0)
		return -ENOTSUP;
	memcpy(&m, model, sizeof m);
	if (!ttl_ms || ttl_ms > CONGESTION_MAX_TTL_MS || m.centroids.usable != 1 || m.centroids.inputs != 2 ||
	    !law_allowed(&m.centroids))
		return -EINVAL;
	m.deadline_ns = deadline_ns(ttl_ms);
	return bpf_map_update_elem(c->models, p, &m, BPF_ANY);
}

int congestion_release(struct congestion *c, const struct congestion_prefix *p)
{
	const int choice = bpf_map_delete_elem(c->choices, p),
		  model = c->models < 0 ? 0 : bpf_map_delete_elem(c->models, p);

	if (choice < 0 && choice != -ENOENT)
		return choice;
	return model < 0 && model != -ENOENT ? model : 0;
}

void congestion_release_all(struct congestion *c)
{
	struct congestion_prefix p;

	while (bpf_map_get_next_key(c->choices, NULL, &p) == 0 && bpf_map_delete_elem(c->choices, &p) == 0)
		;
	while (c->models >= 0 && bpf_map_get_next_key(c->models, NULL, &p) == 0 &&
	       bpf_map_delete_elem(c->models, &p) == 0)
		;
}

static uint32_t entries(int map)
{
	struct congestion_prefix p, *last = NULL;
	uint32_t n = 0;

	for (; map >= 0 && bpf_map_get_next_key(map, last, &p) == 0 && n < CC_MOST_PREFIXES; last = &p)
		n++;
	return n;
}

/* "NAME": N of each counter, all processors together. */
static void add_counts(const struct congestion *c, int map, const char *const *names, unsigned n, struct json *j)
{
	const uint32_t zero = 0;
	const uint64_t *counts = c->counts;

	if (bpf_map_lookup_elem(map, &zero, c->counts) == 0)
		for (unsigned i = 0; i < n; i++) {
			uint64_t sum = 0;

			for (int cpu = 0; cpu < c->cpus; cpu++)
				sum += counts[(unsigned)cpu * n + i];
			json_add(j, "%s\"%s\": %llu", i ? ", " : "", names[i], (unsigned long long)sum);
		}
}

void congestion_json(const struct congestion *c, struct json *j)
{
#define NAME(NAME, name) #name,
	static const char *const choices[] = { CC_COUNTERS(NAME) }, *const losses[] = { OAL_LC_REASONS(NAME) };
#undef NAME

	json_add(j, "{\"choices\": %u, \"models\": %u, \"connections\": {", entries(c->choices), entries(c->models));
	add_counts(c, c->choice_counts, choices, CC_N_COUNTERS, j);
	json_add(j, "}, \"losses\": {");
	if (c->models >= 0)
		add_counts(c, c->model_counts, losses, OAL_LC_N_REASONS, j);
	json_add(j, "}}");
}

void congestion_close(struct congestion *c)
{
	bpf_link__destroy(c->program);
	if (c->registration >= 0)
		close(c->registration);
	bpf_link__destroy(c->update);
	bpf_object__close(c->ca);
	bpf_object__close(c->cc);
	free(c->counts);
	free(c);
}
