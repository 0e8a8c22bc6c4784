#ifdef HAVE_BPF
#include "helper/helper.h"

#include "base/log.h"
#include "helper/confine.h"
#include "helper/rights.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	MOST_DESCRIPTORS = 1024, /* that the start may have open */
	QUEUE_BYTES = 1 << 20, /* of records that the helper has not read: a thousand */
	MOST_ANSWERS = 256, /* read at once; the rest comes with the next turn of the loop */
};

static struct {
	int channel; /* -1: none */
	pid_t pid; /* 0: not started */
	uint32_t number;
	struct {
		helper_owner on_answer;
		void *self;
	} owners[HELPER_SLOTS];
} helper = { .channel = -1 };

static void deliver(unsigned slot, const struct helper_answer *a)
{
	if (helper.owners[slot].on_answer)
		helper.owners[slot].on_answer(helper.owners[slot].self, a);
}

static void deliver_all(enum helper_command what, int error)
{
	struct helper_answer a = { .command = (uint8_t)what, .error = error };

	for (unsigned i = 0; i < HELPER_SLOTS; i++) {
		a.slot = (uint8_t)i;
		deliver(i, &a);
	}
}

int helper_slot_new(const struct helper_slot *slot, helper_owner on_answer, void *owner)
{
	unsigned i;

	if (helper.pid)
		return -EPERM;
	for (i = 0; i < HELPER_SLOTS && helper_slots[i].self; i++)
		;
	if (i == HELPER_SLOTS)
		return -ENOSPC;
	helper_slots[i] = *slot;
	helper.owners[i].on_answer = on_answer;
	helper.owners[i].self = owner;
	return (int)i;
}

void helper_slot_end(int slot)
{
	for (unsigned port = 0; port < helper_slots[slot].place.n; port++) {
		struct helper_record r = { .port = (uint8_t)port };

		helper_send(slot, HELPER_DETACH, &r);
	}
	helper.owners[slot].on_answer = NULL;
	helper_slots[slot].self = NULL; /* in this process: the helper has its own */
}

bool helper_started(void)
{
	return helper.pid != 0;
}

int helper_send(int slot, enum helper_command command, struct helper_record *r)
{
	struct helper_answer a;
	int ret, answered = 0;

	if (helper.pid && helper.channel < 0)
		return -ENOTCONN;
	r->magic = HELPER_MAGIC;
	r->number = helper.number;
	r->command = (uint8_t)command;
	r->slot = (uint8_t)slot;
	if (!helper.pid) {
		ret = helper_carry_out(r, &a, &answered);
		if (!ret && answered)
			deliver((unsigned)slot, &a);
		return ret ? -EINVAL : 0;
	}
	if (send(helper.channel, r, sizeof *r, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return errno == EAGAIN ? -EAGAIN : -ENOTCONN;
	helper.number++;
	return 0;
}

/* --- the process */

/* It has what its slots need and its channel; output goes where the daemon's goes. */
static void close_others(int channel)
{
	for (int fd = 3; fd < MOST_DESCRIPTORS; fd++) {
		bool needed = fd == channel;

		for (unsigned i = 0; i < HELPER_SLOTS; i++) {
			const struct helper_slot *s = &helper_slots[i];

			needed |= s->self && (fd == s->place.up_fd || fd == s->place.down_fd || fd == s->maps[0] ||
					      fd == s->maps[1]);
		}
		if (!needed)
			close(fd);
	}
}

/* It ends when the daemon does, not with it: a signal for both would leave the programs where they are. */
static void be_helper(int channel, const struct rights *rights)
{
	char err[256];

	for (int n = 1; n < NSIG; n++)
		if (n == SIGINT || n == SIGTERM || n == SIGHUP || n == SIGQUIT)
			signal(n, SIG_IGN);
	close_others(channel);
	prctl(PR_SET_NAME, "oal-helper", 0, 0, 0);
	libbpf_set_print(NULL);
	if (rights_of_helper(rights, err, sizeof err) < 0 || confine(CONFINE_HELPER, err, sizeof err) < 0) {
		log_error("helper: %s", err);
		shutdown(channel, SHUT_RD); /* as if the daemon had gone: everything is taken off the ports */
	}
	helper_serve(channel);
	_exit(0);
}

int helper_start(const struct rights *rights, char *err, size_t err_size)
{
	const int queue = QUEUE_BYTES;
	int ends[2];
	unsigned i;
	pid_t pid;

	for (i = 0; i < HELPER_SLOTS && !helper_slots[i].self; i++)
		;
	if (i == HELPER_SLOTS || helper.pid)
		return 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		goto fail;
	setsockopt(ends[0], SOL_SOCKET, SO_SNDBUFFORCE, &queue, sizeof queue); /* a smaller one will do */
	pid = fork();
	if (pid < 0) {
		close(ends[0]);
		close(ends[1]);
		goto fail;
	}
	if (!pid) {
		close(ends[0]);
		be_helper(ends[1], rights);
	}
	close(ends[1]);
	helper.channel = ends[0];
	helper.pid = pid;
	deliver_all(HELPER_STARTED, 0);
	return 0;
fail:
	snprintf(err, err_size, "cannot start the helper: %s", strerror(errno));
	return -errno;
}

int helper_fd(void)
{
	return helper.channel;
}

static void lose(void)
{
	close(helper.channel);
	helper.channel = -1;
	log_error("the helper has ended: windows stay as they are from now on; restart ap-exporter");
	deliver_all(HELPER_ENDED, -ENOTCONN);
}

void helper_read(void *ctx, int fd)
{
	struct helper_answer a;
	ssize_t n = 0;

	for (unsigned i = 0; i < MOST_ANSWERS && helper.channel >= 0; i++) {
		n = recv(helper.channel, &a, sizeof a, MSG_DONTWAIT);
		if (n != sizeof a)
			break;
		if (a.magic == HELPER_MAGIC && a.slot < HELPER_SLOTS)
			deliver(a.slot, &a);
	}
	if (helper.channel >= 0 && (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)))
		lose();
}

bool helper_lost(void)
{
	return helper.pid && helper.channel < 0;
}

void helper_stop(void)
{
	if (helper.channel >= 0)
		close(helper.channel);
	helper.channel = -1;
	if (helper.pid)
		while (waitpid(helper.pid, NULL, 0) < 0 && errno == EINTR)
			;
	helper.pid = 0;
}
#endif
