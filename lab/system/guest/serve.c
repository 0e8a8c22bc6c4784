/* An open access point's answers to real clients: authentication and association. What hostapd does, without keys. */
#include "air.h"
#include "request.h"

#include <errno.h>
#include <linux/genetlink.h>
#include <linux/nl80211.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	HEADER = 24, /* of a management frame */
	ASSOCIATION_REQUEST = 0x00, REASSOCIATION_REQUEST = 0x20, AUTHENTICATION = 0xb0, ASSOCIATION_RESPONSE = 0x10,
	PROBE_REQUEST = 0x40, PROBE_RESPONSE = 0x50,
};

struct server {
	const char *interface;
	int events, requests;
	uint16_t family, aid;
	uint8_t mac[6];
};

static void listen_for(const struct server *s, uint16_t type)
{
	struct request r;
	int ret;

	request_generic(&r, s->family, NL80211_CMD_REGISTER_FRAME);
	request_u32(&r, NL80211_ATTR_IFINDEX, interface_index(s->interface));
	request_u16(&r, NL80211_ATTR_FRAME_TYPE, type);
	request_put(&r, NL80211_ATTR_FRAME_MATCH, NULL, 0);
	ret = request_send(s->events, &r);
	if (ret)
		die(-ret, "%s does not hand over frames 0x%02x", s->interface, type);
}

static void reply(const struct server *s, const uint8_t *to, uint8_t type, const void *body, size_t size)
{
	uint8_t frame[256] = { type };
	struct request r;
	int ret;

	memcpy(frame + 4, to + 10, 6);
	memcpy(frame + 10, s->mac, 6);
	memcpy(frame + 16, s->mac, 6);
	memcpy(frame + HEADER, body, size);
	request_generic(&r, s->family, NL80211_CMD_FRAME);
	request_u32(&r, NL80211_ATTR_IFINDEX, interface_index(s->interface));
	request_u32(&r, NL80211_ATTR_WIPHY_FREQ, CHANNEL_MHZ);
	request_put(&r, NL80211_ATTR_FRAME, frame, HEADER + size);
	request_put(&r, NL80211_ATTR_DONT_WAIT_FOR_ACK, NULL, 0);
	ret = request_send(s->requests, &r);
	if (ret)
		die(-ret, "%s does not send frame 0x%02x", s->interface, type);
}

static void on_frame(struct server *s, const uint8_t *frame, size_t len)
{
	/* open system, second of two, success */
	static const uint8_t welcome[] = { 0, 0, 2, 0, 0, 0 };
	uint8_t answer[192] = { 0x21, 0x04, 0, 0 };

	if (len < HEADER)
		return;
	switch (frame[0]) {
	case PROBE_REQUEST: /* an active scan is shorter than the interval of beacons */
		reply(s, frame, PROBE_RESPONSE, answer, air_probe_response(answer));
		break;
	case AUTHENTICATION:
		reply(s, frame, AUTHENTICATION, welcome, sizeof welcome);
		break;
	case ASSOCIATION_REQUEST:
	case REASSOCIATION_REQUEST:
		s->aid++;
		air_station(s->interface, frame + 10, s->aid);
		answer[4] = (uint8_t)s->aid;
		answer[5] = 0xc0;
		reply(s, frame, ASSOCIATION_RESPONSE, answer, 6 + air_elements(answer + 6));
		printf("air: %02x:%02x:%02x:%02x:%02x:%02x has joined %s\n", frame[10], frame[11], frame[12], frame[13],
		       frame[14], frame[15], s->interface);
		fflush(stdout);
		break;
	default: break;
	}
}

void air_serve(const char *interface)
{
	static uint8_t buffer[16384] __attribute__((aligned(4)));
	struct server s = { .interface = interface, .events = request_socket(NETLINK_GENERIC),
			    .requests = request_socket(NETLINK_GENERIC) };

	s.family = request_family(s.requests, "nl80211");
	address_of(interface, s.mac);
	listen_for(&s, PROBE_REQUEST);
	listen_for(&s, AUTHENTICATION);
	listen_for(&s, ASSOCIATION_REQUEST);
	for (;;) {
		ssize_t n = recv(s.events, buffer, sizeof buffer, 0);

		if (n < 0)
			die(errno, "no frames of %s any more", interface);
		for (struct nlmsghdr *h = (struct nlmsghdr *)buffer; NLMSG_OK(h, (size_t)n); h = NLMSG_NEXT(h, n)) {
			const uint8_t *p = (uint8_t *)NLMSG_DATA(h) + GENL_HDRLEN, *end = (uint8_t *)h + h->nlmsg_len;
			const struct nlattr *a;

			if (h->nlmsg_type != s.family)
				continue;
			for (; p + sizeof *a <= end; p += NLA_ALIGN(a->nla_len)) {
				a = (const struct nlattr *)p;
				if (a->nla_len < sizeof *a || p + a->nla_len > end)
					break;
				if (a->nla_type == NL80211_ATTR_FRAME)
					on_frame(&s, (const uint8_t *)(a + 1), a->nla_len - sizeof *a);
			}
		}
	}
}
