/*
 * A netlink datagram of any content through the walk and every parser. First byte: which parser takes the payloads; the
 * rest: the datagram, copied to the heap so that a read past its end is caught.
 */
#include "netlink/netlink.h"
#include "collect/nl80211_parse.h"
#include "collect/nl80211_station.h"
#include "collect/rtnetlink_parse.h"
#include "sender/inet_diag.h"

#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz {
	unsigned parser;
	bool diag; /* instead: of sock_diag */
	struct nl80211_station station;
};

static void on_message(void *ctx, const struct nlmsghdr *h, const uint8_t *payload, uint32_t len)
{
	struct fuzz *f = ctx;
	struct oal_channel_row channel;
	struct nl80211_interface interface;
	struct oal_beacon_row beacon;
	struct oal_queue_row queue;
	struct address_entry entry;
	struct sender_look look;
	struct nl_attr info;
	char kind[QDISC_KIND];
	int ifindex;
	uint64_t mac;
	bool own;

	(void)h;
	if (f->diag) {
		inet_diag_parse(payload, len, &look);
		return;
	}
	if (f->parser < 4) { /* generic netlink */
		if (len < GENL_HDRLEN)
			return;
		payload += GENL_HDRLEN;
		len -= GENL_HDRLEN;
	}
	switch (f->parser) {
	case 0:
		if (nl80211_find_station(payload, len, &mac, &info))
			nl80211_parse_station(&f->station, &info);
		break;
	case 1: nl80211_parse_survey(payload, len, &channel); break;
	case 2: nl80211_parse_interface(payload, len, &interface); break;
	case 3: nl80211_parse_bss(payload, len, &beacon, &own); break;
	case 4: qdisc_parse(payload, len, &queue, &ifindex, kind); break;
	default: address_entry_parse(payload, len, &entry); break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fuzz f;
	struct netlink_result result = { 0 };
	struct netlink_walk w = {
		.seq_last = UINT32_MAX, .pending = 64, .cb = on_message, .ctx = &f, .result = &result,
	};
	uint8_t *copy;

	if (!size)
		return 0;
	copy = malloc(size);
	if (!copy)
		return 0;
	memcpy(copy, data + 1, size - 1);
	memset(&f, 0, sizeof f);
	f.parser = data[0] % 6;
	f.diag = data[0] & 128;
	w.dump = data[0] & 64;
	netlink_walk(&w, copy, size - 1);
	netlink_walk(&w, copy, size - 1); /* a second sample meets the state that the first left */
	free(copy);
	return 0;
}
