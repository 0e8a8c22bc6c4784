/* count.c: a QEMU plugin that counts what a guest of one processor executes, each instruction once, in user space and
 * in the kernel apart, and writes both counts whenever the guest executes a mark: an instruction without effect that
 * carries a number (guest/mark.h). Idle counts nothing: a processor that waits executes nothing, or what is between two
 * addresses (kernel/idle-by-counting-6.12.patch).
 *
 * usage: -plugin count.so,to=PATH[,idle_begin=HEX,idle_end=HEX]; PATH gets a line "MARK USER KERNEL" for each mark. */
#include "qemu_plugin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

EXPORT int qemu_plugin_version = 1;

static uint64_t user, kernel;
static uint64_t kernel_from; /* the lowest address of the kernel's half */
static uint64_t idle_begin, idle_end;
static bool mips;
static FILE *out;

static void on_mark(unsigned int vcpu, void *number)
{
	(void)vcpu;
	fprintf(out, "%u %llu %llu\n", (unsigned)(uintptr_t)number, (unsigned long long)user,
		(unsigned long long)kernel);
	fflush(out);
}

/* The number that a mark carries, 0 for any other instruction. */
static unsigned mark(const uint8_t *bytes, size_t size)
{
	if (mips) /* lui $zero, 0x4f00 | number; big-endian */
		return size == 4 && bytes[0] == 0x3c && !bytes[1] && bytes[2] == 0x4f ? bytes[3] : 0;
	/* nopl 0x4f414c00 | number (%rax) */
	return size == 7 && !memcmp(bytes, "\x0f\x1f\x80", 3) && !memcmp(bytes + 4, "LAO", 3) ? bytes[3] : 0;
}

static void on_block(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	(void)id;
	for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
		struct qemu_plugin_insn *in = qemu_plugin_tb_get_insn(tb, i);
		const unsigned number = mark(qemu_plugin_insn_data(in), qemu_plugin_insn_size(in));
		const uint64_t at = qemu_plugin_insn_vaddr(in);

		if (at >= idle_begin && at < idle_end)
			continue;
		if (number)
			qemu_plugin_register_vcpu_insn_exec_cb(in, on_mark, QEMU_PLUGIN_CB_NO_REGS,
							       (void *)(uintptr_t)number);
		qemu_plugin_register_vcpu_insn_exec_inline(in, QEMU_PLUGIN_INLINE_ADD_U64,
							   at < kernel_from ? &user : &kernel, 1);
	}
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
	mips = !strcmp(info->target_name, "mips");
	kernel_from = mips ? UINT64_C(0x80000000) : UINT64_C(1) << 63;
	if (!info->system_emulation || info->system.max_vcpus != 1 || (!mips && strcmp(info->target_name, "x86_64"))) {
		fprintf(stderr, "count: wants a whole machine with one processor, mips or x86_64\n");
		return -1;
	}
	for (int i = 0; i < argc; i++) {
		const char *value = strchr(argv[i], '=');

		if (!value++)
			return -1;
		if (!strncmp(argv[i], "to=", 3))
			out = fopen(value, "w");
		else if (!strncmp(argv[i], "idle_begin=", 11))
			idle_begin = strtoull(value, NULL, 16);
		else if (!strncmp(argv[i], "idle_end=", 9))
			idle_end = strtoull(value, NULL, 16);
	}
	if (!out) {
		fprintf(stderr, "count: cannot write to=PATH\n");
		return -1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_block);
	return 0;
}
