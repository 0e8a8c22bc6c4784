#include "helper/confine.h"

#include "base/log.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined __x86_64__
#define ARCH AUDIT_ARCH_X86_64
#elif defined __i386__
#define ARCH AUDIT_ARCH_I386
#elif defined __aarch64__ && defined __AARCH64EL__
#define ARCH AUDIT_ARCH_AARCH64
#elif defined __arm__
#define ARCH (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? AUDIT_ARCH_ARM : AUDIT_ARCH_ARMEB)
#elif defined __mips__ && _MIPS_SIM == _ABIO32
#define ARCH (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? AUDIT_ARCH_MIPSEL : AUDIT_ARCH_MIPS)
#elif defined __mips__ && _MIPS_SIM == _ABI64
#define ARCH (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? AUDIT_ARCH_MIPSEL64 : AUDIT_ARCH_MIPS64)
#elif defined __riscv && __riscv_xlen == 64
#define ARCH AUDIT_ARCH_RISCV64
#else
#define ARCH 0
#endif

#ifndef CLONE_THREAD
#define CLONE_THREAD 0x00010000
#endif

/* In the order in which a busy exporter makes them: the kernel looks from the first on, where it does not remember. C
 * libraries differ in what they call for the same function, and processors in what they have. */
static const uint16_t daemon_calls[] = {
	/* ticks, samples, packets */
	SYS_futex, SYS_recvmsg, SYS_recvfrom, SYS_sendmsg, SYS_sendto, SYS_read, SYS_write, SYS_epoll_pwait,
	SYS_clock_gettime, SYS_ppoll, SYS_getsockopt, SYS_clock_nanosleep, SYS_getrusage, SYS_writev, SYS_readv,
#ifdef SYS_epoll_wait
	SYS_epoll_wait, SYS_poll,
#endif
#ifdef SYS_futex_time64 /* 32 bits, with times of 64 */
	SYS_futex_time64, SYS_clock_gettime64, SYS_ppoll_time64, SYS_clock_nanosleep_time64, SYS_pselect6_time64,
	SYS_timerfd_settime64, SYS_clock_getres_time64, SYS_recvmmsg_time64, SYS_clock_adjtime64,
#endif
	/* sockets */
	SYS_close, SYS_connect, SYS_bind, SYS_listen, SYS_accept4, SYS_getsockname, SYS_getpeername, SYS_setsockopt,
	SYS_shutdown, SYS_socketpair, SYS_sendmmsg, SYS_recvmmsg, SYS_ioctl,
#ifdef SYS_accept
	SYS_accept,
#endif
#ifdef SYS_recv
	SYS_recv,
#endif
#ifdef SYS_send
	SYS_send,
#endif
	/* files */
	SYS_openat, SYS_fcntl, SYS_fstat, SYS_lseek, SYS_pread64, SYS_pwrite64, SYS_fsync, SYS_fdatasync, SYS_ftruncate,
	SYS_getdents64, SYS_faccessat, SYS_unlinkat, SYS_mkdirat, SYS_readlinkat, SYS_fchmod, SYS_fchown, SYS_flock,
	SYS_dup, SYS_dup3, SYS_pipe2, SYS_statfs, SYS_fstatfs, SYS_getcwd, SYS_umask,
#ifdef SYS_renameat
	SYS_renameat,
#endif
#ifdef SYS_renameat2
	SYS_renameat2,
#endif
#ifdef SYS_statx
	SYS_statx,
#endif
#ifdef SYS_newfstatat
	SYS_newfstatat,
#endif
#ifdef SYS_faccessat2
	SYS_faccessat2,
#endif
#ifdef SYS_open /* the calls of before there were folders' descriptors */
	SYS_open, SYS_stat, SYS_lstat, SYS_access, SYS_rename, SYS_unlink, SYS_mkdir, SYS_readlink, SYS_dup2, SYS_pipe,
	SYS_epoll_create, SYS_getdents, SYS_chmod,
#endif
#ifdef SYS_fstat64 /* 32 bits, with sizes of 64 */
	SYS_fstat64, SYS_stat64, SYS_lstat64, SYS_fstatat64, SYS_fcntl64, SYS_ftruncate64, SYS__llseek, SYS_mmap2,
	SYS_statfs64, SYS_fstatfs64,
#endif
	/* memory, threads, time, and who one is */
	SYS_brk, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise,
#ifdef SYS_mmap
	SYS_mmap,
#endif
	SYS_exit, SYS_exit_group, SYS_set_robust_list, SYS_set_tid_address, SYS_rt_sigaction, SYS_rt_sigprocmask,
	SYS_rt_sigreturn, SYS_sigaltstack, SYS_restart_syscall, SYS_sched_yield, SYS_sched_getaffinity,
	SYS_setpriority, SYS_getpriority, SYS_getpid, SYS_gettid, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid,
	SYS_wait4, SYS_prlimit64, SYS_uname, SYS_sysinfo, SYS_times, SYS_adjtimex, SYS_clock_adjtime, SYS_clock_getres,
	SYS_gettimeofday, SYS_nanosleep, SYS_pselect6, SYS_timerfd_create, SYS_timerfd_settime, SYS_timerfd_gettime,
	SYS_epoll_create1, SYS_epoll_ctl, SYS_eventfd2, SYS_signalfd4,
#ifdef SYS_getrandom
	SYS_getrandom,
#endif
#ifdef SYS_rseq
	SYS_rseq,
#endif
#ifdef SYS_membarrier
	SYS_membarrier,
#endif
#ifdef SYS_sigreturn
	SYS_sigreturn,
#endif
#ifdef SYS_time
	SYS_time,
#endif
#ifdef SYS_getrlimit
	SYS_getrlimit,
#endif
#ifdef SYS_ugetrlimit
	SYS_ugetrlimit,
#endif
#ifdef SYS__newselect
	SYS__newselect,
#elif defined SYS_select
	SYS_select,
#endif
#ifdef SYS_getuid32
	SYS_getuid32, SYS_geteuid32, SYS_getgid32, SYS_getegid32,
#endif
#ifdef SYS_cacheflush
	SYS_cacheflush,
#endif
};

static const uint16_t helper_calls[] = {
	SYS_recvmsg, SYS_sendto, SYS_sendmsg, SYS_recvfrom, SYS_bind, SYS_getsockname, SYS_setsockopt, SYS_close,
	SYS_ioctl, SYS_clock_gettime, SYS_write, SYS_writev, SYS_brk, SYS_munmap, SYS_mremap, SYS_madvise, SYS_futex,
	SYS_mprotect, SYS_exit_group, SYS_rt_sigreturn, SYS_rt_sigprocmask, SYS_restart_syscall, SYS_getpid, SYS_gettid,
	SYS_bpf,
#ifdef SYS_mmap
	SYS_mmap,
#endif
#ifdef SYS_mmap2
	SYS_mmap2,
#endif
#ifdef SYS_clock_gettime64
	SYS_clock_gettime64,
#endif
#ifdef SYS_recv
	SYS_recv,
#endif
#ifdef SYS_send
	SYS_send,
#endif
};

#define DATA(field) (uint32_t)offsetof(struct seccomp_data, field)
/* The low half of an argument. */
#define ARGUMENT(n) (DATA(args[n]) + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4u : 0u))
#define ERRNO(number) (SECCOMP_RET_ERRNO | (number))

/* A filter under construction: "allow" stands last, "refuse" before it. */
struct build {
	struct sock_filter *at;
	unsigned n;
};

static void add(struct build *b, uint16_t code, uint32_t k, unsigned jt, unsigned jf)
{
	b->at[b->n++] = (struct sock_filter){ .code = code, .jt = (uint8_t)jt, .jf = (uint8_t)jf, .k = k };
}

static void load(struct build *b, uint32_t offset)
{
	add(b, BPF_LD | BPF_W | BPF_ABS, offset, 0, 0);
}

static void give(struct build *b, uint32_t what)
{
	add(b, BPF_RET | BPF_K, what, 0, 0);
}

/* Falls through where the loaded word is another. */
static void give_if(struct build *b, uint32_t word, uint32_t what)
{
	add(b, BPF_JMP | BPF_JEQ | BPF_K, word, 0, 1);
	give(b, what);
}

/* Calls that depend on what they ask for; none falls through to the next. */
static void add_conditional(struct build *b, enum confine_role role)
{
	static const uint16_t families[] = { AF_UNIX, AF_INET, AF_INET6, AF_NETLINK };

	add(b, BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 10);
	load(b, ARGUMENT(0));
	for (unsigned i = 0; i < 4; i++)
		give_if(b, families[i], SECCOMP_RET_ALLOW);
	give(b, ERRNO(EPERM));
	if (role == CONFINE_HELPER)
		return;
	add(b, BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4); /* a thread, not a process */
	load(b, ARGUMENT(0));
	add(b, BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1);
	give(b, SECCOMP_RET_ALLOW);
	give(b, ERRNO(EPERM));
#ifdef SYS_clone3
	give_if(b, SYS_clone3, ERRNO(ENOSYS)); /* what it asks for lies in memory: the C library takes clone() then */
#endif
	add(b, BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 3);
	load(b, ARGUMENT(0));
	give_if(b, PR_SET_NAME, SECCOMP_RET_ALLOW);
}

unsigned confine_build(struct sock_filter filter[CONFINE_MOST], enum confine_role role)
{
	const uint16_t *calls = role == CONFINE_HELPER ? helper_calls : daemon_calls;
	const unsigned n = role == CONFINE_HELPER ? sizeof helper_calls / sizeof *helper_calls
						  : sizeof daemon_calls / sizeof *daemon_calls;
	struct build b = { .at = filter };

	_Static_assert(sizeof daemon_calls / sizeof *daemon_calls < CONFINE_MOST - 40, "jumps reach over 255");
	if (!ARCH)
		return 0;
	load(&b, DATA(arch));
	add(&b, BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
	give(&b, ERRNO(EPERM));
	load(&b, DATA(nr));
	for (unsigned i = 0; i < n; i++) /* to the end of the list, where it is allowed */
		add(&b, BPF_JMP | BPF_JEQ | BPF_K, calls[i], n - i, 0);
	add(&b, BPF_JMP | BPF_JA, 1, 0, 0);
	give(&b, SECCOMP_RET_ALLOW);
	add_conditional(&b, role);
	give(&b, ERRNO(EPERM));
	return b.n;
}

int confine(enum confine_role role, char *err, size_t err_size)
{
	struct sock_filter filter[CONFINE_MOST];
	struct sock_fprog program = { .filter = filter };
	int ret;

#ifdef __SANITIZE_ADDRESS__
	return 0; /* its leak check traces the process from another one */
#endif
	program.len = (unsigned short)confine_build(filter, role);
	if (!program.len || prctl(PR_GET_SECCOMP, 0, 0, 0, 0) < 0) {
		log_warn("this kernel, or this processor, has no seccomp filter here: every system call stays open");
		return 0;
	}
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_LOG,
		    &program) == 0 ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0)
		return 0;
	ret = -errno;
	snprintf(err, err_size, "cannot limit system calls: %s", strerror(-ret));
	return ret;
}
