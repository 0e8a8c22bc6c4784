#ifdef HAVE_BPF
#include "helper/serve.h"

#include "base/log.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

struct helper_slot helper_slots[HELPER_SLOTS];

/* Has a record nothing in it but these fields? */
static bool has_only(const struct helper_record *r, unsigned fields, bool of_port)
{
	struct helper_record whole = { .magic = HELPER_MAGIC, .number = r->number, .command = r->command };

	whole.slot = r->slot;
	if (of_port)
		whole.port = r->port;
	if (fields & HELPER_FLOW) {
		whole.flow = r->flow;
		whole.direction = r->direction;
	}
	if (fields & HELPER_MAC)
		memcpy(whole.mac, r->mac, sizeof whole.mac);
	if (fields & HELPER_CLAMP) {
		whole.scale = r->scale;
		whole.bytes = r->bytes;
		whole.mss_bytes = r->mss_bytes;
		whole.ttl_ms = r->ttl_ms;
	}
	return fields && !memcmp(&whole, r, sizeof whole);
}

int helper_carry_out(const struct helper_record *r, struct helper_answer *a, int *answered)
{
	struct helper_slot *s = &helper_slots[r->slot < HELPER_SLOTS ? r->slot : 0];
	struct tc_place *p = &s->place;
	const bool moves = r->command == HELPER_ATTACH || r->command == HELPER_DETACH;

	if (r->command >= HELPER_COMMANDS || r->slot >= HELPER_SLOTS || !s->self ||
	    !has_only(r, moves ? HELPER_BARE : s->fields[r->command], moves) || (moves && r->port >= p->n))
		return -EBADMSG;
	*a = (struct helper_answer){ .magic = HELPER_MAGIC, .number = r->number };
	a->command = r->command;
	a->slot = r->slot;
	a->port = r->port;
	if (r->command == HELPER_DETACH) {
		tc_place_detach(p, r->port);
	} else if (r->command == HELPER_ATTACH) {
		a->error = tc_place_attach(p, r->port);
		a->values[0] = p->ports[r->port].index;
		a->values[1] = p->ports[r->port].egress;
	} else {
		a->error = s->command(s->self, r, a);
	}
	*answered = moves || a->error || r->command == HELPER_READ;
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
