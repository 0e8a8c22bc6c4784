#include "privileges.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Not in the kernel headers of every toolchain. */
#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif
#ifndef CAP_BPF
#define CAP_BPF 39
#endif

static void keep(struct __user_cap_data_struct caps[2], unsigned which)
{
	caps[which / 32].permitted |= 1u << which % 32;
}

int privileges_drop(const char *user, bool programs, char *err, size_t err_size)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2] = { { 0 } }, had[2];
	const char *step = "forbid new privileges";
	struct passwd *pw;
	int ret;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		goto fail;
	if (!user[0])
		return 0;
	errno = 0;
	pw = getpwnam(user);
	if (!pw) {
		ret = errno ? -errno : -ENOENT;
		snprintf(err, err_size, "user '%s' is not known here: change 'option user' or add it", user);
		return ret;
	}
	if (geteuid() == pw->pw_uid)
		return 0;
	if (geteuid() != 0) {
		snprintf(err, err_size, "cannot become user '%s': not started as root; leave 'option user' empty",
			 user);
		return -EPERM;
	}
	step = "keep capabilities";
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
		goto fail;
	step = "change user";
	if (setgroups(0, NULL) < 0 || setgid(pw->pw_gid) < 0 || setuid(pw->pw_uid) < 0)
		goto fail;
	step = "drop capabilities";
	keep(caps, CAP_NET_RAW);
	if (programs) {
		keep(caps, CAP_NET_ADMIN);
		keep(caps, CAP_PERFMON);
		keep(caps, CAP_BPF);
	}
	if (syscall(SYS_capget, &head, had) < 0)
		goto fail;
	for (unsigned i = 0; i < 2; i++) /* in a container root may not have them all; what then fails says so itself */
		caps[i].effective = caps[i].permitted &= had[i].permitted;
	if (syscall(SYS_capset, &head, caps) < 0)
		goto fail;
	return 0;
fail:
	ret = -errno;
	snprintf(err, err_size, "cannot %s for user '%s': %s", step, user, strerror(-ret));
	return ret;
}
