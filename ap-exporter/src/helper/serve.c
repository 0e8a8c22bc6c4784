#ifdef HAVE_BPF
#include "helper/serve.h"

#include "base/log.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

struct helper_slot helper_slots[HELPER_SLOTS];

/* ATTACH and DETACH have a head and nothing else. */
static int move(struct helper_slot *s, const struct helper_record *r, struct helper_answer *a)
{
	struct helper_record head = { .magic = r->magic, .number = r->number };
	struct tc_place *p = &s->place;

	head.command = r->command;
	head.slot = r->slot;
	head.port = r->port;
	if (r->port >= p->n || memcmp(&head, r, sizeof head))
		return -EBADMSG;
	if (r->command == HELPER_DETACH) {
		tc_place_detach(p, r->port);
		return 0;
	}
	a->error = tc_place_attach(p, r->port);
	a->values[0] = p->ports[r->port].index;
	a->values[1] = p->ports[r->port].egress;
	return 0;
}

int helper_carry_out(const struct helper_record *r, struct helper_answer *a, int *answered)
{
	struct helper_slot *s = &helper_slots[r->slot < HELPER_SLOTS ? r->slot : 0];

	if (r->magic != HELPER_MAGIC || r->command >= HELPER_COMMANDS || r->slot >= HELPER_SLOTS || !s->self)
		return -EBADMSG;
	*a = (struct helper_answer){ .magic = HELPER_MAGIC, .number = r->number };
	a->command = r->command;
	a->slot = r->slot;
	a->port = r->port;
	*answered = 1;
	if (r->command == HELPER_ATTACH || r->command == HELPER_DETACH)
		return move(s, r, a);
	a->error = r->port ? -EBADMSG : s->command(s->self, r, a);
	*answered = a->error || r->command == HELPER_READ;
	return a->error == -EBADMSG ? -EBADMSG : 0;
}

/* 1: a record; 0: the other end is gone; -EBADMSG: what came is none. Descriptors that come with it are refused. */
static int receive(int channel, struct helper_record *r, uint32_t number)
{
	struct iovec into = { r, sizeof *r };
	struct msghdr m = { .msg_iov = &into, .msg_iovlen = 1 };
	ssize_t n;

	do
		n = recvmsg(channel, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return 0;
	return n == sizeof *r && !(m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) && r->number == number ? 1 : -EBADMSG;
}

void helper_serve(int channel)
{
	struct helper_record r;
	struct helper_answer a;
	uint32_t number = 0;
	int ret, answered;

	while ((ret = receive(channel, &r, number++)) > 0) {
		ret = helper_carry_out(&r, &a, &answered);
		if (ret < 0 || (answered && send(channel, &a, sizeof a, MSG_NOSIGNAL) != sizeof a))
			break;
	}
	if (ret == -EBADMSG)
		log_error("helper: a record came that no daemon of ours sends: everything is taken off the ports");
	for (unsigned i = 0; i < HELPER_SLOTS; i++)
		for (unsigned port = 0; helper_slots[i].self && port < helper_slots[i].place.n; port++)
			tc_place_detach(&helper_slots[i].place, port);
}
#endif
