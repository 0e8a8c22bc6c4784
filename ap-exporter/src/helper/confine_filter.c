#include "helper/confine.h"

#include <asm/unistd.h> /* the kernel's own names: musl has others for times of 32 bits */
#include <errno.h>
#include <linux/audit.h>
#ifdef HAVE_CONGESTION
#include <linux/bpf.h>
#endif
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/socket.h>

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
	__NR_futex, __NR_recvmsg, __NR_recvfrom, __NR_sendmsg, __NR_sendto, __NR_read, __NR_write,
	__NR_epoll_pwait,
	__NR_clock_gettime, __NR_ppoll, __NR_getsockopt, __NR_clock_nanosleep, __NR_getrusage, __NR_writev,
	__NR_readv,
#ifdef __NR_epoll_wait
	__NR_epoll_wait, __NR_poll,
#endif
#ifdef __NR_futex_time64 /* 32 bits, with times of 64 */
	__NR_futex_time64, __NR_clock_gettime64, __NR_ppoll_time64, __NR_clock_nanosleep_time64,
	__NR_pselect6_time64,
	__NR_clock_getres_time64, __NR_recvmmsg_time64, __NR_clock_adjtime64,
#endif
	/* sockets */
	__NR_close, __NR_connect, __NR_bind, __NR_listen, __NR_accept4, __NR_getsockname, __NR_getpeername,
	__NR_setsockopt, __NR_shutdown, __NR_socketpair, __NR_sendmmsg, __NR_recvmmsg, __NR_ioctl,
#ifdef __NR_accept
	__NR_accept,
#endif
#ifdef __NR_recv
	__NR_recv,
#endif
#ifdef __NR_send
	__NR_send,
#endif
	/* files */
	__NR_openat, __NR_fcntl, __NR_fstat, __NR_lseek, __NR_pread64, __NR_pwrite64, __NR_fsync, __NR_fdatasync,
	__NR_ftruncate, __NR_getdents64, __NR_faccessat, __NR_unlinkat, __NR_linkat, __NR_mkdirat, __NR_readlinkat,
	__NR_fchmod,
	__NR_fchown, __NR_flock, __NR_dup, __NR_dup3, __NR_pipe2, __NR_statfs, __NR_fstatfs, __NR_getcwd,
	__NR_umask,
#ifdef __NR_renameat
	__NR_renameat,
#endif
#ifdef __NR_renameat2
	__NR_renameat2,
#endif
#ifdef __NR_statx
	__NR_statx,
#endif
#ifdef __NR_newfstatat
	__NR_newfstatat,
#endif
#ifdef __NR_faccessat2
	__NR_faccessat2,
#endif
#ifdef __NR_open /* calls from before folders had descriptors */
	__NR_open, __NR_stat, __NR_lstat, __NR_access, __NR_rename, __NR_unlink, __NR_link, __NR_mkdir,
	__NR_readlink, __NR_dup2,
	__NR_pipe, __NR_epoll_create, __NR_getdents, __NR_chmod,
#endif
#ifdef __NR_fstat64 /* 32 bits, with sizes of 64 */
	__NR_fstat64, __NR_stat64, __NR_lstat64, __NR_fstatat64, __NR_fcntl64, __NR_ftruncate64, __NR__llseek,
	__NR_mmap2, __NR_statfs64, __NR_fstatfs64,
#endif
	/* memory, threads, time, and who one is */
	__NR_brk, __NR_munmap, __NR_mremap, __NR_mprotect, __NR_madvise,
#ifdef __NR_mmap
	__NR_mmap,
#endif
	__NR_exit, __NR_exit_group, __NR_set_robust_list, __NR_set_tid_address, __NR_rt_sigaction,
	__NR_rt_sigprocmask,
	__NR_rt_sigreturn, __NR_sigaltstack, __NR_restart_syscall, __NR_sched_yield, __NR_sched_getaffinity,
	__NR_setpriority, __NR_getpriority, __NR_getpid, __NR_gettid, __NR_getuid, __NR_geteuid, __NR_getgid,
	__NR_getegid, __NR_wait4, __NR_prlimit64, __NR_uname, __NR_sysinfo, __NR_times, __NR_adjtimex,
	__NR_clock_adjtime, __NR_clock_getres, __NR_gettimeofday, __NR_nanosleep, __NR_pselect6,
	__NR_epoll_create1, __NR_epoll_ctl, __NR_eventfd2,
	__NR_signalfd4,
#ifdef __NR_getrandom
	__NR_getrandom,
#endif
#ifdef __NR_rseq
	__NR_rseq,
#endif
#ifdef __NR_membarrier
	__NR_membarrier,
#endif
#ifdef __NR_sigreturn
	__NR_sigreturn,
#endif
#ifdef __NR_time
	__NR_time,
#endif
#ifdef __NR_getrlimit
	__NR_getrlimit,
#endif
#ifdef __NR_ugetrlimit
	__NR_ugetrlimit,
#endif
#ifdef __NR__newselect
	__NR__newselect,
#elif defined __NR_select
	__NR_select,
#endif
#ifdef __NR_getuid32
	__NR_getuid32, __NR_geteuid32, __NR_getgid32, __NR_getegid32,
#endif
#ifdef __NR_cacheflush
	__NR_cacheflush,
#endif
};

#ifdef HAVE_BPF
static const uint16_t helper_calls[] = {
	__NR_recvmsg, __NR_sendto, __NR_sendmsg, __NR_recvfrom, __NR_bind, __NR_getsockname, __NR_setsockopt,
	__NR_close, __NR_ioctl, __NR_clock_gettime, __NR_write, __NR_writev, __NR_brk, __NR_munmap, __NR_mremap,
	__NR_madvise, __NR_futex, __NR_mprotect, __NR_exit_group, __NR_rt_sigreturn, __NR_rt_sigprocmask,
	__NR_restart_syscall, __NR_getpid, __NR_gettid, __NR_bpf,
#ifdef __NR_mmap
	__NR_mmap,
#endif
#ifdef __NR_mmap2
	__NR_mmap2,
#endif
#ifdef __NR_clock_gettime64
	__NR_clock_gettime64,
#endif
#ifdef __NR_recv
	__NR_recv,
#endif
#ifdef __NR_send
	__NR_send,
#endif
};
#else
#define helper_calls daemon_calls /* there is no helper */
#endif

#ifdef HAVE_CONGESTION
static const uint16_t map_commands[] = { BPF_MAP_LOOKUP_ELEM, BPF_MAP_UPDATE_ELEM, BPF_MAP_DELETE_ELEM,
					 BPF_MAP_GET_NEXT_KEY };
#endif

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

	add(b, BPF_JMP | BPF_JEQ | BPF_K, __NR_socket, 0, 10);
	load(b, ARGUMENT(0));
	for (unsigned i = 0; i < 4; i++)
		give_if(b, families[i], SECCOMP_RET_ALLOW);
	give(b, ERRNO(EPERM));
	if (role == CONFINE_HELPER)
		return;
#ifdef HAVE_CONGESTION
	add(b, BPF_JMP | BPF_JEQ | BPF_K, __NR_bpf, 0, 10); /* maps that are open; no program, no map, no link */
	load(b, ARGUMENT(0));
	for (unsigned i = 0; i < sizeof map_commands / sizeof *map_commands; i++)
		give_if(b, map_commands[i], SECCOMP_RET_ALLOW);
	give(b, ERRNO(EPERM));
#endif
	add(b, BPF_JMP | BPF_JEQ | BPF_K, __NR_clone, 0, 4); /* a thread, not a process */
	load(b, ARGUMENT(0));
	add(b, BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1);
	give(b, SECCOMP_RET_ALLOW);
	give(b, ERRNO(EPERM));
#ifdef __NR_clone3
	give_if(b, __NR_clone3, ERRNO(ENOSYS)); /* what it asks for lies in memory: the C library takes clone() then */
#endif
	add(b, BPF_JMP | BPF_JEQ | BPF_K, __NR_prctl, 0, 3);
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
