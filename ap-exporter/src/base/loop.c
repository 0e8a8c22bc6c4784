#include "base/loop.h"

#include "base/clock.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define LOOP_FDS 16

struct loop {
	int epoll, timer;
	uint32_t period_us;
	uint64_t due_us; /* of the last tick */
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
	struct epoll_event ev = { .events = EPOLLIN, .data.u32 = LOOP_FDS };
	struct itimerspec it;
	int saved;

	if (!l)
		return NULL;
	l->epoll = l->timer = -1;
	for (int i = 0; i < LOOP_FDS; i++)
		l->fds[i].fd = -1;
	l->period_us = period_us;
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	l->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (l->epoll < 0 || l->timer < 0)
		goto fail;
	l->due_us = clock_monotonic_us();
	it.it_interval.tv_sec = period_us / 1000000;
	it.it_interval.tv_nsec = (long)(period_us % 1000000) * 1000;
	it.it_value.tv_sec = (time_t)((l->due_us + period_us) / 1000000);
	it.it_value.tv_nsec = (long)((l->due_us + period_us) % 1000000) * 1000;
	if (timerfd_settime(l->timer, TFD_TIMER_ABSTIME, &it, NULL) < 0)
		goto fail;
	if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, l->timer, &ev) < 0)
		goto fail;
	return l;
fail:
	saved = errno;
	loop_free(l);
	errno = saved;
	return NULL;
}

void loop_free(struct loop *l)
{
	if (!l)
		return;
	if (l->timer >= 0)
		close(l->timer);
	if (l->epoll >= 0)
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

int loop_wait(struct loop *l, struct tick *t)
{
	while (!l->stop) {
		struct epoll_event ev[LOOP_FDS + 1];
		uint64_t expired = 0;
		int n = epoll_wait(l->epoll, ev, LOOP_FDS + 1, -1);

		if (n < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; i < n; i++) {
			uint32_t at = ev[i].data.u32;

			if (at == LOOP_FDS) {
				if (read(l->timer, &expired, sizeof expired) != (ssize_t)sizeof expired)
					expired = 0;
			} else if (l->fds[at].fd >= 0) {
				l->fds[at].cb(l->fds[at].ctx, l->fds[at].fd);
			}
		}
		if (expired && !l->stop) {
			*t = loop_account(l->due_us, expired, l->period_us, clock_monotonic_us());
			l->due_us = t->due_us;
			return 1;
		}
	}
	return 0;
}

void loop_stop(struct loop *l)
{
	l->stop = true;
}
