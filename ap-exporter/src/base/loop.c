#include "base/loop.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define LOOP_FDS 16

struct loop {
	int epoll;
	uint32_t period_us;
	uint64_t due_us; /* of the last tick */
	uint32_t rest; /* periods until the next wake */
	uint32_t owed; /* ticks that are due, and not served yet */
	uint32_t owed_late_us; /* of the last of them */
	bool stop;
	struct {
		int fd;
		loop_fd_cb cb;
		void *ctx;
	} fds[LOOP_FDS];
};

struct loop *loop_new(uint32_t period_us)
{
	struct loop *l = calloc(1, sizeof *l);

	if (!l)
		return NULL;
	for (int i = 0; i < LOOP_FDS; i++)
		l->fds[i].fd = -1;
	l->period_us = period_us;
	l->rest = 1;
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll < 0) {
		const int saved = errno;

		free(l);
		errno = saved;
		return NULL;
	}
	prctl(PR_SET_TIMERSLACK, 1); /* else the kernel may let a tick wait for 50 us */
	l->due_us = clock_monotonic_us();
	return l;
}

void loop_free(struct loop *l)
{
	if (!l)
		return;
	close(l->epoll);
	free(l);
}

int loop_add(struct loop *l, int fd, loop_fd_cb cb, void *ctx)
{
	for (uint32_t i = 0; i < LOOP_FDS; i++) {
		struct epoll_event ev = { .events = EPOLLIN, .data.u32 = i };

		if (l->fds[i].fd >= 0)
			continue;
		if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &ev) < 0)
			return -errno;
		l->fds[i].fd = fd;
		l->fds[i].cb = cb;
		l->fds[i].ctx = ctx;
		return 0;
	}
	return -ENOSPC;
}

void loop_remove(struct loop *l, int fd)
{
	for (int i = 0; i < LOOP_FDS; i++) {
		if (l->fds[i].fd != fd)
			continue;
		epoll_ctl(l->epoll, EPOLL_CTL_DEL, fd, NULL);
		l->fds[i].fd = -1;
	}
}

struct tick loop_account(uint64_t last_due_us, uint64_t expired, uint32_t period_us, uint64_t now_us)
{
	struct tick t = { .due_us = last_due_us + expired * period_us };

	t.missed = expired > UINT32_MAX ? UINT32_MAX : (uint32_t)(expired - 1);
	if (now_us > t.due_us)
		t.late_us = now_us - t.due_us > UINT32_MAX ? UINT32_MAX : (uint32_t)(now_us - t.due_us);
	return t;
}

struct tick loop_account_rest(uint64_t last_due_us, uint64_t expired, uint32_t period_us)
{
	const uint64_t served = expired < LOOP_OWED ? expired : LOOP_OWED;
	struct tick t = loop_account(last_due_us, expired - served + 1, period_us, 0);

	t.more = (uint32_t)served - 1;
	return t;
}

static uint64_t wake_us(const struct loop *l)
{
	return l->due_us + (uint64_t)l->rest * l->period_us;
}

/* Waits until a descriptor can be read or the next tick to wake for is due: one system call. */
static int await(const struct loop *l, uint64_t now_us)
{
	const uint64_t next_us = wake_us(l), left_us = next_us > now_us ? next_us - now_us : 0;
	const struct timespec left = { .tv_sec = (time_t)(left_us / 1000000),
				       .tv_nsec = (long)(left_us % 1000000) * 1000 };
	struct pollfd any = { .fd = l->epoll, .events = POLLIN };

	return ppoll(&any, 1, &left, NULL);
}

static void serve(struct loop *l)
{
	struct epoll_event ev[LOOP_FDS];
	const int n = epoll_wait(l->epoll, ev, LOOP_FDS, 0);

	for (int i = 0; i < n; i++) {
		const uint32_t at = ev[i].data.u32;

		if (l->fds[at].fd >= 0)
			l->fds[at].cb(l->fds[at].ctx, l->fds[at].fd);
	}
}

/* The next of the ticks that are due. */
static int next_owed(struct loop *l, struct tick *t)
{
	*t = (struct tick){ .due_us = l->due_us += l->period_us, .more = --l->owed };
	if (!t->more)
		t->late_us = l->owed_late_us;
	return 1;
}

/* Ticks are due: which is the first? */
static int first_due(struct loop *l, struct tick *t, uint64_t now_us)
{
	const uint64_t expired = (now_us - l->due_us) / l->period_us, planned_us = wake_us(l);

	if (l->rest == 1) {
		*t = loop_account(l->due_us, expired, l->period_us, now_us);
	} else {
		*t = loop_account_rest(l->due_us, expired, l->period_us);
		l->owed = t->more;
		l->owed_late_us = now_us > planned_us ? (uint32_t)(now_us - planned_us) : 0;
		t->late_us = t->more ? 0 : l->owed_late_us;
	}
	l->due_us = t->due_us;
	return 1;
}

int loop_wait(struct loop *l, struct tick *t)
{
	if (l->owed && !l->stop)
		return next_owed(l, t);
	while (!l->stop) {
		const int n = await(l, clock_monotonic_us());
		uint64_t now_us;

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0)
			serve(l);
		now_us = clock_monotonic_us();
		if (now_us >= (n > 0 ? l->due_us + l->period_us : wake_us(l)) && !l->stop)
			return first_due(l, t, now_us);
	}
	return 0;
}

void loop_rest(struct loop *l, uint32_t ticks)
{
	l->rest = ticks ? ticks : 1;
}

void loop_stop(struct loop *l)
{
	l->stop = true;
}
