/* ca_check.c: does oal_ecn decide the same in each of its forms? Makes up histories of connections, plays them through
 * the law as this compiler has it, and through another form: `bpf OBJECT`, ca_check.bpf.o in this machine's kernel, as
 * root; `kernel FILE`, /proc/oal_ecn_check of a kernel with ca_kernel.c; `registered OBJECT`, whether this machine's
 * kernel takes ca.bpf.o and offers it while this process lives. Prints how many histories and decisions there were, and
 * how often each was made; ends with 1 at the first difference.
 *
 * usage: ca_check bpf OBJECT HISTORIES | kernel FILE HISTORIES | registered OBJECT 1 */
#include "ca_check.h"
#include "../loss-cause/law_draw.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef WITH_BPF
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#endif

/* One history in four has a model of any numbers; the others one as a fit makes it, values around its centres, and
 * acknowledgements that come one after the other. */
static void make_up(struct oal_ecn_history *h)
{
	static const uint32_t inputs[] = { 1, 2, 4 };
	const bool plausible = below(4) != 0;
	const uint32_t base_us = (uint32_t)(5000 + below(200000)), apart_us = (uint32_t)(1 + below(10000));
	const uint32_t window = (uint32_t)(2 + below(200));
	struct law_centroids *c = &h->model.centroids;
	uint32_t at = sized();
	uint64_t us = draw() >> below(64);

	memset(h, 0, sizeof *h);
	h->model.deadline_ns = below(2) ? 0 : 1 + below(1000);
	h->model.steep = (uint32_t)(below(4) ? below(8) : sized());
	c->usable = below(16) != 0;
	c->inputs = below(16) ? inputs[below(3)] : (uint32_t)below(6); /* more than there are, among them */
	for (int i = 0; i < LAW_MAX_INPUTS; i++) {
		c->shift[i] = plausible ? law_log2(i % 2 ? apart_us : base_us) : around(LAW_MAX_SHIFT);
		c->scale[i] = 1 + (int64_t)below(plausible ? 20 << LAW_FRACTION : LAW_MAX_SCALE);
		for (int k = 0; k < 2; k++)
			c->centre[k][i] = around(plausible ? 3 << LAW_FRACTION : LAW_MAX_CENTRE);
	}
	for (int i = 0; i < OAL_ECN_EVENTS; i++) {
		struct oal_ecn_event *e = &h->events[i];

		e->ns = below(1200);
		us += plausible ? below(2 * apart_us) : sized();
		e->at_us = us;
		e->rtt_us = plausible ? base_us / 2 + (uint32_t)below(base_us * 2) : sized();
		e->packets = plausible ? (uint32_t)below(20) : sized();
		at = plausible ? at + e->packets : sized();
		e->acknowledged = at;
		e->next = plausible ? at + window : sized();
	}
}

static int kernel_file = -1;

static void by_kernel(const struct oal_ecn_history *h, struct oal_ecn_decision *decided)
{
	const ssize_t n = OAL_ECN_EVENTS * sizeof *decided;

	if (pwrite(kernel_file, h, sizeof *h, 0) != sizeof *h || pread(kernel_file, decided, n, 0) != n) {
		perror("ca_check: the kernel's form");
		exit(2);
	}
}

#ifdef WITH_BPF
static struct oal_ecn_work *work;
static int program;

static struct bpf_object *loaded(const char *path, const char *struct_ops)
{
	struct bpf_object *const o = bpf_object__open_file(path, NULL);

	if (o && struct_ops)
		bpf_map__set_map_flags(bpf_object__find_map_by_name(o, struct_ops), 1 << 13 /* BPF_F_LINK */);
	if (!o || bpf_object__load(o) < 0) {
		fprintf(stderr, "ca_check: the kernel does not take %s\n", path);
		exit(2);
	}
	return o;
}

static void open_bpf(const char *path)
{
	struct bpf_object *const o = loaded(path, NULL);
	int map;

	program = bpf_program__fd(bpf_object__find_program_by_name(o, "play"));
	map = bpf_map__fd(bpf_object__find_map_by_name(o, ".bss"));
	work = mmap(NULL, sizeof *work, PROT_READ | PROT_WRITE, MAP_SHARED, map, 0);
	if (work == MAP_FAILED) {
		perror("ca_check: the program's memory");
		exit(2);
	}
}

static void by_bpf(const struct oal_ecn_history *h, struct oal_ecn_decision *decided)
{
	LIBBPF_OPTS(bpf_test_run_opts, o);

	work->history = *h;
	memset(work->decided, 77, sizeof work->decided);
	if (bpf_prog_test_run_opts(program, &o) < 0 || o.retval) {
		fprintf(stderr, "ca_check: the program does not run\n");
		exit(2);
	}
	memcpy(decided, work->decided, sizeof work->decided);
}

/* By a link, which ends with this process (ap-exporter/src/congestion/congestion_bpf.c). */
static int registered(const char *path)
{
	struct bpf_object *const o = loaded(path, "oal_ecn");
	struct bpf_map *const map = bpf_object__find_map_by_name(o, "oal_ecn");
	struct {
		uint32_t map, target, type, flags;
		uint8_t rest[112];
	} link = { .map = (uint32_t)bpf_map__fd(map), .type = 44 /* BPF_STRUCT_OPS */ };
	char words[1024] = "";
	FILE *f;

	if (!bpf_map__attach_struct_ops(map) || syscall(SYS_bpf, BPF_LINK_CREATE, &link, sizeof link) < 0) {
		perror("ca_check: the kernel does not register oal_ecn");
		return 2;
	}
	f = fopen("/proc/sys/net/ipv4/tcp_available_congestion_control", "r");
	if (f && fgets(words, sizeof words, f) && strstr(words, "oal_ecn")) {
		printf("registered\n");
		return 0;
	}
	return 1;
}
#endif

int main(int argc, char **argv)
{
#define NAME(NAME, name) #name,
	static const char *const names[] = { OAL_ECN_REASONS(NAME) }, *const actions[] = { "grow", "hold", "cut" };
#undef NAME
	void (*other)(const struct oal_ecn_history *, struct oal_ecn_decision *) = NULL;
	const unsigned long n = argc == 4 ? strtoul(argv[3], NULL, 10) : 0;
	uint64_t made[OAL_ECN_N_REASONS] = { 0 }, asked[3] = { 0 }, decisions = 0;
	struct oal_ecn_history h;
	struct oal_ecn_decision here[OAL_ECN_EVENTS], there[OAL_ECN_EVENTS];

	if (n && !strcmp(argv[1], "kernel")) {
		other = by_kernel;
		kernel_file = open(argv[2], O_RDWR);
		if (kernel_file < 0) {
			perror(argv[2]);
			return 2;
		}
	}
#ifdef WITH_BPF
	if (n && !strcmp(argv[1], "registered"))
		return registered(argv[2]);
	if (n && !strcmp(argv[1], "bpf")) {
		other = by_bpf;
		open_bpf(argv[2]);
	}
#endif
	if (!other) {
		fprintf(stderr, "usage: ca_check bpf OBJECT HISTORIES | kernel FILE HISTORIES | registered OBJECT 1\n");
		return 2;
	}
	for (unsigned long k = 0; k < n; k++) {
		make_up(&h);
		oal_ecn_play(&h, here);
		other(&h, there);
		for (int i = 0; i < OAL_ECN_EVENTS; i++) {
			if (memcmp(&here[i], &there[i], sizeof here[i])) {
				printf("history %lu, event %d: %u %u %u %u here, %u %u %u %u there\n", k, i,
				       here[i].why, here[i].action, here[i].left, here[i].times,
				       there[i].why, there[i].action, there[i].left, there[i].times);
				return 1;
			}
			made[here[i].why]++;
			asked[here[i].action]++;
			decisions++;
		}
	}
	printf("%lu histories, %" PRIu64 " decisions, all the same:", n, decisions);
	for (int i = 0; i < OAL_ECN_N_REASONS; i++)
		printf(" %s %" PRIu64 ",", names[i], made[i]);
	for (int i = 0; i < 3; i++)
		printf(" %s %" PRIu64 "%s", actions[i], asked[i], i == 2 ? "\n" : ",");
	return 0;
}
