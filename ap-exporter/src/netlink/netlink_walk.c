#include "netlink/netlink.h"

#include <linux/netlink.h>
#include <string.h>

static void failed(struct netlink_result *r, int error)
{
	if (!error)
		return; /* an acknowledgement */
	r->failed++;
	if (!r->error)
		r->error = error;
}

bool netlink_walk(struct netlink_walk *w, const uint8_t *buf, size_t len)
{
	while (w->pending && len >= sizeof(struct nlmsghdr)) {
		struct nlmsghdr h;
		const uint8_t *payload = buf + NLMSG_HDRLEN;
		uint32_t payload_len, step;
		int32_t error = 0;

		memcpy(&h, buf, sizeof h);
		if (h.nlmsg_len < NLMSG_HDRLEN || h.nlmsg_len > len)
			break; /* cut off: the rest of the datagram cannot be told apart */
		payload_len = h.nlmsg_len - NLMSG_HDRLEN;
		step = NLMSG_ALIGN(h.nlmsg_len);
		/* Answers to an earlier exchange that was given up are not ours. */
		if (h.nlmsg_seq - w->seq_first <= w->seq_last - w->seq_first) {
			if (h.nlmsg_flags & NLM_F_DUMP_INTR)
				w->result->interrupted = true;
			if (h.nlmsg_type == NLMSG_ERROR || h.nlmsg_type == NLMSG_DONE) {
				if (payload_len >= sizeof error)
					memcpy(&error, payload, sizeof error);
				failed(w->result, error);
				w->pending--;
			} else if (h.nlmsg_type >= NLMSG_MIN_TYPE) {
				w->result->replies++;
				w->cb(w->ctx, &h, payload, payload_len);
				if (!w->dump)
					w->pending--;
			}
		}
		if (step >= len)
			break;
		buf += step;
		len -= step;
	}
	return !w->pending;
}
