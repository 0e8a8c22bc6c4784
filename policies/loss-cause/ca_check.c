/* ca_check.c: does oal_lc decide the same in each of its forms? Makes up histories of connections, plays them through
 * the law as this compiler has it, and through another form: `bpf OBJECT`, ca_check.bpf.o in this machine's kernel, as
 * root; `kernel FILE`, /proc/oal_lc_check of a kernel with ca_kernel.c. Prints how many histories and decisions there
 * were, and how often each was made; ends with 1 at the first difference.
 *
 * usage: ca_check bpf OBJECT HISTORIES | kernel FILE HISTORIES */
#include "ca_check.h"
#include "law_draw.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef WITH_BPF
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#endif

/* One history in four has a model of any numbers; the others one as a fit makes it, and values around its centres. */
static void make_up(struct oal_lc_history *h)
{
	const bool plausible = below(4) != 0;
	const uint32_t base_segments = (uint32_t)(4 + below(400)), base_us = (uint32_t)(5000 + below(200000));
	struct law_centroids *c = &h->model.centroids;

	memset(h, 0, sizeof *h);
	h->model.in_a_row = (uint32_t)(below(2) ? below(8) : below(512));
	h->model.deadline_ns = below(2) ? 0 : 1 + below(1000);
	c->usable = below(16) != 0;
	c->inputs = below(16) ? 2 : (uint32_t)below(6); /* more than there are, among them */
	for (int i = 0; i < LAW_MAX_INPUTS; i++) {
		c->shift[i] = plausible ? law_log2(i ? base_us : base_segments) : around(LAW_MAX_SHIFT);
		c->scale[i] = 1 + (int64_t)below(plausible ? 20 << LAW_FRACTION : LAW_MAX_SCALE);
		for (int k = 0; k < 2; k++)
			c->centre[k][i] = around(plausible ? 3 << LAW_FRACTION : LAW_MAX_CENTRE);
	}
	for (int i = 0; i < OAL_LC_EVENTS; i++) {
		struct oal_lc_event *e = &h->events[i];
		const uint64_t kind = below(16);

		e->kind = kind < 9 ? OAL_LC_PAIR : kind < 14 ? OAL_LC_LOST : kind < 15 ? OAL_LC_MARKED : OAL_LC_TIMEOUT;
		e->at_ns = below(1200);
		e->a = e->kind == OAL_LC_PAIR && plausible ? base_segments / 2 + (uint32_t)below(base_segments)
			: sized();
		e->b = e->kind == OAL_LC_PAIR && plausible ? base_us / 2 + (uint32_t)below(base_us * 2)
			: e->kind == OAL_LC_LOST ? (uint32_t)below(8) : sized();
	}
}

static int kernel_file = -1;

static void by_kernel(const struct oal_lc_history *h, uint8_t *decided)
{
	if (pwrite(kernel_file, h, sizeof *h, 0) != sizeof *h ||
	    pread(kernel_file, decided, OAL_LC_EVENTS, 0) != OAL_LC_EVENTS) {
		perror("ca_check: the kernel's form");
		exit(2);
	}
}

#ifdef WITH_BPF
static struct oal_lc_work *work;
static int program;

static void open_bpf(const char *path)
{
	struct bpf_object *o = bpf_object__open_file(path, NULL);
	int map;

	if (!o || bpf_object__load(o) < 0) {
		fprintf(stderr, "ca_check: the kernel does not take %s\n", path);
		exit(2);
	}
	program = bpf_program__fd(bpf_object__find_program_by_name(o, "play"));
	map = bpf_map__fd(bpf_object__find_map_by_name(o, ".bss"));
	work = mmap(NULL, sizeof *work, PROT_READ | PROT_WRITE, MAP_SHARED, map, 0);
	if (work == MAP_FAILED) {
		perror("ca_check: the program's memory");
		exit(2);
	}
}

static void by_bpf(const struct oal_lc_history *h, uint8_t *decided)
{
	LIBBPF_OPTS(bpf_test_run_opts, o);

	work->history = *h;
	memset(work->decided, 77, OAL_LC_EVENTS);
	if (bpf_prog_test_run_opts(program, &o) < 0 || o.retval) {
		fprintf(stderr, "ca_check: the program does not run\n");
		exit(2);
	}
	memcpy(decided, work->decided, OAL_LC_EVENTS);
}
#endif

int main(int argc, char **argv)
{
#define NAME(NAME, name) #name,
	static const char *const names[] = { OAL_LC_REASONS(NAME) };
#undef NAME
	void (*other)(const struct oal_lc_history *, uint8_t *) = NULL;
	const unsigned long n = argc == 4 ? strtoul(argv[3], NULL, 10) : 0;
	uint64_t made[256] = { 0 }, decisions = 0;
	struct oal_lc_history h;
	uint8_t here[OAL_LC_EVENTS], there[OAL_LC_EVENTS];

	if (n && !strcmp(argv[1], "kernel")) {
		other = by_kernel;
		kernel_file = open(argv[2], O_RDWR);
		if (kernel_file < 0) {
			perror(argv[2]);
			return 2;
		}
	}
#ifdef WITH_BPF
	if (n && !strcmp(argv[1], "bpf")) {
		other = by_bpf;
		open_bpf(argv[2]);
	}
#endif
	if (!other) {
		fprintf(stderr, "usage: ca_check bpf OBJECT HISTORIES | kernel FILE HISTORIES\n");
		return 2;
	}
	for (unsigned long i = 0; i < n; i++) {
		make_up(&h);
		oal_lc_play(&h, here);
		other(&h, there);
		for (int k = 0; k < OAL_LC_EVENTS; k++) {
			if (here[k] != there[k]) {
				printf("history %lu, event %d: %u here, %u there\n", i, k, here[k], there[k]);
				return 1;
			}
			decisions += here[k] != 255;
			made[here[k]]++;
		}
	}
	printf("%lu histories, %" PRIu64 " decisions, all the same:", n, decisions);
	for (int i = 0; i < OAL_LC_N_REASONS; i++)
		printf(" %s %" PRIu64, names[i], made[i]);
	printf(", timeouts after a kept window %" PRIu64 "\n", made[129]);
	return 0;
}
