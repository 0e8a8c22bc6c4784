/* The filters of system calls, carried out instruction by instruction as the kernel does it: what passes and what does
 * not, on this processor and byte order. (That the daemon lives with them: tests/tap.py.) */
#include "check.h"
#include "helper/confine.h"

#include <asm/unistd.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>

static struct sock_filter filter[CONFINE_MOST];
static unsigned n;

/* What the filter answers; 0 (which kills) where it runs off its end. */
static uint32_t answer(const struct seccomp_data *d)
{
	uint32_t word = 0;

	for (unsigned at = 0; at < n; at++) {
		const struct sock_filter *i = &filter[at];

		switch (i->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			CHECK(i->k % 4 == 0 && i->k < sizeof *d);
			memcpy(&word, (const uint8_t *)d + i->k, sizeof word);
			break;
		case BPF_JMP | BPF_JEQ | BPF_K: at += word == i->k ? i->jt : i->jf; break;
		case BPF_JMP | BPF_JSET | BPF_K: at += word & i->k ? i->jt : i->jf; break;
		case BPF_JMP | BPF_JA: at += i->k; break;
		case BPF_RET | BPF_K: return i->k;
		default: CHECK(!"an instruction that no filter of ours has");
		}
	}
	return 0;
}

static uint32_t arch(void)
{
	return filter[1].k;
}

static uint32_t of(long call, uint64_t argument)
{
	return answer(&(struct seccomp_data){ .nr = (int)call, .arch = arch(), .args = { argument } });
}

static bool passes(long call, uint64_t argument)
{
	const uint32_t a = of(call, argument);

	CHECK(a == SECCOMP_RET_ALLOW || a == (SECCOMP_RET_ERRNO | EPERM) || a == (SECCOMP_RET_ERRNO | ENOSYS));
	return a == SECCOMP_RET_ALLOW;
}

static void of_this_processor(void)
{
#if defined __x86_64__
	CHECK_EQ(arch(), AUDIT_ARCH_X86_64);
#elif defined __mips__ && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	CHECK_EQ(arch(), AUDIT_ARCH_MIPS);
#endif
	for (long call = -1; call < 7000; call++) /* as another processor's, nothing passes */
		CHECK_EQ(answer(&(struct seccomp_data){ .nr = (int)call, .arch = arch() ^ 1 }),
			 SECCOMP_RET_ERRNO | EPERM);
}

static void daemon_calls(void)
{
	static const long good[] = {
		__NR_read, __NR_write, __NR_futex, __NR_recvmsg, __NR_sendto, __NR_openat, __NR_close, __NR_epoll_pwait,
		__NR_clock_gettime, __NR_exit_group, __NR_munmap, __NR_connect, __NR_accept4, __NR_wait4,
		__NR_restart_syscall,
	};
	static const long bad[] = {
		__NR_execve, __NR_execveat, __NR_ptrace, __NR_bpf, __NR_mount, __NR_umount2, __NR_setuid, __NR_setgid,
		__NR_setgroups, __NR_capset, __NR_kill, __NR_tgkill, __NR_process_vm_writev, __NR_init_module,
		__NR_finit_module, __NR_keyctl, __NR_perf_event_open, __NR_unshare, __NR_setns, __NR_chroot,
		__NR_pivot_root,
		__NR_reboot, __NR_seccomp, __NR_userfaultfd, __NR_open_by_handle_at, __NR_settimeofday, __NR_symlinkat,
		__NR_mknodat, __NR_personality, __NR_acct, __NR_swapon, __NR_kexec_load,
	};
	static const int families[] = { AF_UNIX, AF_INET, AF_INET6, AF_NETLINK };
	unsigned passed = 0;

	for (unsigned i = 0; i < sizeof good / sizeof *good; i++)
		CHECK(passes(good[i], 0));
	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++)
		CHECK_EQ(of(bad[i], 0), SECCOMP_RET_ERRNO | EPERM);
	for (int family = 0; family < 64; family++) {
		bool known = false;

		for (unsigned i = 0; i < 4; i++)
			known |= families[i] == family;
		CHECK_EQ(passes(__NR_socket, (uint64_t)family), known);
	}
	CHECK(passes(__NR_clone, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM));
	CHECK(!passes(__NR_clone, 17) && !passes(__NR_clone, CLONE_NEWUSER | 17) && !passes(__NR_clone, CLONE_VM));
	CHECK(passes(__NR_prctl, PR_SET_NAME));
	CHECK(!passes(__NR_prctl, PR_SET_SECCOMP) && !passes(__NR_prctl, PR_SET_DUMPABLE));
#ifdef __NR_clone3
	CHECK_EQ(of(__NR_clone3, 0), SECCOMP_RET_ERRNO | ENOSYS);
#endif
#ifdef __NR_fork
	CHECK(!passes(__NR_fork, 0));
#endif
#ifdef __NR_vfork
	CHECK(!passes(__NR_vfork, 0));
#endif
	for (long call = -1; call < 7000; call++)
		passed += passes(call, 0);
	CHECK(passed > 100 && passed < 180);
#ifdef __x86_64__
	CHECK(!passes(__NR_read | 0x40000000, 0)); /* the numbers of x32 */
#endif
}

static void helper_calls(void)
{
	unsigned passed = 0;

	CHECK(passes(__NR_bpf, 0) && passes(__NR_recvmsg, 0) && passes(__NR_sendto, 0) && passes(__NR_exit_group, 0));
	CHECK(passes(__NR_socket, AF_NETLINK) && !passes(__NR_socket, AF_PACKET));
	CHECK(!passes(__NR_openat, 0) && !passes(__NR_execve, 0) && !passes(__NR_connect, 0) && !passes(__NR_read, 0));
	CHECK(!passes(__NR_clone, CLONE_THREAD) && !passes(__NR_prctl, PR_SET_NAME) && !passes(__NR_setuid, 0));
	for (long call = -1; call < 7000; call++)
		passed += passes(call, 0);
	CHECK(passed > 20 && passed < 40);
}

int main(void)
{
	n = confine_build(filter, CONFINE_DAEMON);
	test("the filter is of this processor, and lets nothing of another one pass");
	CHECK(n > 100 && n <= CONFINE_MOST);
	of_this_processor();
	test("the daemon: files, sockets of four families, threads; no program, no process, no bpf(), no rights");
	daemon_calls();
	n = confine_build(filter, CONFINE_HELPER);
	test("the helper: bpf(), netlink and its channel; no file, no thread");
	CHECK(n > 30 && n <= CONFINE_MOST);
	of_this_processor();
	helper_calls();
	return done();
}
