#include "helper/rights.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Not in the kernel headers of every toolchain. */
#ifndef CAP_BPF
#define CAP_BPF 39
#endif
#ifndef PR_CAP_AMBIENT
#define PR_CAP_AMBIENT 47
#define PR_CAP_AMBIENT_CLEAR_ALL 4
#endif

enum { NICE_LEAST = -10 }; /* of ticks and samples: they are short and due now */

#define BIT(cap) (UINT64_C(1) << (cap))

static int failed(const char *step, char *err, size_t err_size)
{
	const int ret = -errno;

	snprintf(err, err_size, "cannot %s: %s", step, strerror(-ret));
	return ret;
}

/* Of this thread; what it does not have it does not get: in a container root may not have them all. */
static int keep(uint64_t which)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2];

	if (syscall(SYS_capget, &head, caps) < 0)
		return -1;
	for (unsigned i = 0; i < 2; i++) {
		caps[i].permitted &= (uint32_t)(which >> 32 * i);
		caps[i].effective = caps[i].permitted;
		caps[i].inheritable = 0;
	}
	return (int)syscall(SYS_capset, &head, caps);
}

/* Beyond the last capability the kernel says no; so it does without CAP_SETPCAP, and then no_new_privs has to do. */
static void empty_sets(void)
{
	for (unsigned long cap = 0; cap < 64; cap++)
		prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
}

int rights_read(struct rights *r, const char *user, char *err, size_t err_size)
{
	struct passwd *pw;
	int ret;

	*r = (struct rights){ .change = false };
	if (!user[0])
		return 0;
	errno = 0;
	pw = getpwnam(user);
	if (!pw) {
		ret = errno ? -errno : -ENOENT;
		snprintf(err, err_size, "user '%s' is not known here: change 'option user' or add it", user);
		return ret;
	}
	r->uid = pw->pw_uid;
	r->gid = pw->pw_gid;
	r->change = geteuid() != pw->pw_uid;
	if (!r->change || geteuid() == 0)
		return 0;
	snprintf(err, err_size, "cannot become user '%s': not started as root; leave 'option user' empty", user);
	return -EPERM;
}

int rights_begin(const struct rights *r, char *err, size_t err_size)
{
	const struct rlimit nice = { 20 - NICE_LEAST, 20 - NICE_LEAST };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return failed("forbid new privileges", err, err_size);
	setrlimit(RLIMIT_NICE, &nice); /* only root may raise it; without it more ticks are missed */
	empty_sets();
	/* NET_ADMIN: for a netlink socket's buffer beyond net.core.rmem_max. */
	if (keep(r->change ? BIT(CAP_SETUID) | BIT(CAP_SETGID) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_NET_ADMIN) : 0) < 0)
		return failed("drop capabilities", err, err_size);
	return 0;
}

static int become(const struct rights *r)
{
	return r->change && (setgroups(0, NULL) < 0 || setgid(r->gid) < 0 || setuid(r->uid) < 0) ? -1 : 0;
}

/* The C library does this for all threads, and each loses its capabilities when root's number goes. */
int rights_give_up(const struct rights *r, char *err, size_t err_size)
{
	if (become(r) < 0)
		return failed("change user", err, err_size);
	if (keep(0) < 0)
		return failed("drop capabilities", err, err_size);
	return 0;
}

#ifdef HAVE_BPF
int rights_of_helper(const struct rights *r, char *err, size_t err_size)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || (r->change && prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0))
		return failed("keep capabilities", err, err_size);
	empty_sets();
	if (become(r) < 0)
		return failed("change user", err, err_size);
	if (keep(BIT(CAP_NET_ADMIN) | BIT(CAP_BPF)) < 0)
		return failed("drop capabilities", err, err_size);
	return 0;
}
#endif
