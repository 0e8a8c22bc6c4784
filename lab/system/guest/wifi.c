#include "air.h"
#include "request.h"

#include <errno.h>
#include <linux/nl80211.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static const char ssid[] = "oal";
static const uint8_t rates[] = { 0x82, 0x84, 0x8b, 0x96, 0x0c, 0x12, 0x18, 0x24 };
static const uint8_t more_rates[] = { 0x30, 0x48, 0x60, 0x6c };
/* Two streams, 20 and 40 MHz, short guard interval. */
static const uint8_t ht[26] = { 0x6e, 0x01, 0x17, 0xff, 0xff };

void address_of(const char *interface, uint8_t mac[6])
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct ifreq r = { 0 };

	snprintf(r.ifr_name, sizeof r.ifr_name, "%s", interface);
	if (ioctl(fd, SIOCGIFHWADDR, &r) < 0)
		die(0, "interface %s has no address", interface);
	memcpy(mac, r.ifr_hwaddr.sa_data, 6);
	close(fd);
}

static void up(const char *interface)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct ifreq r = { 0 };

	snprintf(r.ifr_name, sizeof r.ifr_name, "%s", interface);
	if (ioctl(fd, SIOCGIFFLAGS, &r) < 0)
		die(0, "interface %s is not there", interface);
	r.ifr_flags |= IFF_UP;
	if (ioctl(fd, SIOCSIFFLAGS, &r) < 0)
		die(0, "interface %s does not come up", interface);
	close(fd);
}

static void set_type(int fd, uint16_t family, const char *interface, uint32_t type)
{
	struct request r;
	int ret;

	request_generic(&r, family, NL80211_CMD_SET_INTERFACE);
	request_u32(&r, NL80211_ATTR_IFINDEX, interface_index(interface));
	request_u32(&r, NL80211_ATTR_IFTYPE, type);
	ret = request_send(fd, &r);
	if (ret)
		die(-ret, "%s does not take interface type %u", interface, type);
}

/* Puts an information element behind `at`; returns where the next one goes. */
static uint8_t *element(uint8_t *at, uint8_t id, const void *bytes, size_t size)
{
	*at++ = id;
	*at++ = (uint8_t)size;
	memcpy(at, bytes, size);
	return at + size;
}

/* What beacons and answers say in the end: further rates, 802.11n, WMM. */
static uint8_t *last_elements(uint8_t *p)
{
	static const uint8_t ht_operation[22] = { 6 /* the channel */ };
	static const uint8_t wmm[] = { 0x00, 0x50, 0xf2, 0x02, 0x01, 0x01, 0x00, 0x00, 0x03, 0xa4, 0x00, 0x00,
				       0x27, 0xa4, 0x00, 0x00, 0x42, 0x43, 0x5e, 0x00, 0x62, 0x32, 0x2f, 0x00 };

	p = element(p, 50, more_rates, sizeof more_rates);
	p = element(p, 45, ht, sizeof ht);
	p = element(p, 61, ht_operation, sizeof ht_operation);
	return element(p, 221, wmm, sizeof wmm);
}

size_t air_elements(uint8_t *at)
{
	return (size_t)(last_elements(element(at, 1, rates, sizeof rates)) - at);
}

/* The fixed fields of a beacon and its first elements. */
static uint8_t *beacon_head(uint8_t *p)
{
	const uint8_t channel = 6;

	memset(p, 0, 12);
	p[8] = 100; /* interval, TU */
	p[10] = 0x21; /* an ESS, short slots in 35 */
	p[11] = 0x04;
	p = element(p + 12, 0, ssid, sizeof ssid - 1);
	p = element(p, 1, rates, sizeof rates);
	return element(p, 3, &channel, 1);
}

size_t air_probe_response(uint8_t *at)
{
	return (size_t)(last_elements(beacon_head(at)) - at);
}

void air_ap(const char *interface)
{
	uint8_t head[128] = { 0x80 }, tail[128], *p;
	int fd = request_socket(NETLINK_GENERIC), ret;
	uint16_t family = request_family(fd, "nl80211");
	struct request r;

	set_type(fd, family, interface, NL80211_IFTYPE_AP);
	up(interface);
	memset(head + 4, 0xff, 6); /* a beacon goes to all */
	address_of(interface, head + 10);
	memcpy(head + 16, head + 10, 6);
	p = beacon_head(head + 24);
	request_generic(&r, family, NL80211_CMD_START_AP);
	request_u32(&r, NL80211_ATTR_IFINDEX, interface_index(interface));
	request_put(&r, NL80211_ATTR_BEACON_HEAD, head, (size_t)(p - head));
	p = last_elements(tail);
	request_put(&r, NL80211_ATTR_BEACON_TAIL, tail, (size_t)(p - tail));
	request_u32(&r, NL80211_ATTR_BEACON_INTERVAL, 100);
	request_u32(&r, NL80211_ATTR_DTIM_PERIOD, 2);
	request_put(&r, NL80211_ATTR_SSID, ssid, sizeof ssid - 1);
	request_u32(&r, NL80211_ATTR_WIPHY_FREQ, CHANNEL_MHZ);
	request_u32(&r, NL80211_ATTR_CHANNEL_WIDTH, NL80211_CHAN_WIDTH_20);
	request_u32(&r, NL80211_ATTR_CENTER_FREQ1, CHANNEL_MHZ);
	ret = request_send(fd, &r);
	if (ret)
		die(-ret, "no access point on %s", interface);
	close(fd);
}

void air_station(const char *interface, const uint8_t mac[6], uint16_t aid)
{
	const uint32_t flags = 1u << NL80211_STA_FLAG_AUTHENTICATED | 1u << NL80211_STA_FLAG_ASSOCIATED |
			       1u << NL80211_STA_FLAG_AUTHORIZED | 1u << NL80211_STA_FLAG_WME |
			       1u << NL80211_STA_FLAG_SHORT_PREAMBLE;
	const struct nl80211_sta_flag_update update = { .mask = flags, .set = flags };
	int fd = request_socket(NETLINK_GENERIC), ret;
	uint16_t family = request_family(fd, "nl80211");
	uint8_t all_rates[sizeof rates + sizeof more_rates];
	struct request r;

	memcpy(all_rates, rates, sizeof rates);
	memcpy(all_rates + sizeof rates, more_rates, sizeof more_rates);
	request_generic(&r, family, NL80211_CMD_NEW_STATION);
	request_u32(&r, NL80211_ATTR_IFINDEX, interface_index(interface));
	request_put(&r, NL80211_ATTR_MAC, mac, 6);
	request_u16(&r, NL80211_ATTR_STA_AID, aid);
	request_u16(&r, NL80211_ATTR_STA_LISTEN_INTERVAL, 10);
	request_put(&r, NL80211_ATTR_STA_SUPPORTED_RATES, all_rates, sizeof all_rates);
	request_put(&r, NL80211_ATTR_HT_CAPABILITY, ht, sizeof ht);
	request_put(&r, NL80211_ATTR_STA_FLAGS2, &update, sizeof update);
	ret = request_send(fd, &r);
	if (ret && ret != -EEXIST)
		die(-ret, "station %u does not come to %s", aid, interface);
	close(fd);
}

void air_stations(const char *interface, unsigned from, unsigned to)
{
	uint8_t mac[6];

	for (unsigned i = from; i < to && i < STATIONS_MOST; i++) {
		station_address(mac, i);
		air_station(interface, mac, (uint16_t)(i + 1));
	}
}

void air_join(const char *interface)
{
	int fd = request_socket(NETLINK_GENERIC), ret;
	uint16_t family = request_family(fd, "nl80211");
	struct request r;

	up(interface);
	request_generic(&r, family, NL80211_CMD_CONNECT);
	request_u32(&r, NL80211_ATTR_IFINDEX, interface_index(interface));
	request_put(&r, NL80211_ATTR_SSID, ssid, sizeof ssid - 1);
	request_u32(&r, NL80211_ATTR_WIPHY_FREQ, CHANNEL_MHZ);
	request_u32(&r, NL80211_ATTR_AUTH_TYPE, NL80211_AUTHTYPE_OPEN_SYSTEM);
	ret = request_send(fd, &r);
	if (ret)
		die(-ret, "%s does not look for %s", interface, ssid);
	close(fd);
}

void air_to_namespace(const char *interface, int pid)
{
	int fd = request_socket(NETLINK_GENERIC), ret;
	uint16_t family = request_family(fd, "nl80211");
	struct request r;

	request_generic(&r, family, NL80211_CMD_SET_WIPHY_NETNS);
	request_u32(&r, NL80211_ATTR_IFINDEX, interface_index(interface));
	request_u32(&r, NL80211_ATTR_PID, (uint32_t)pid);
	ret = request_send(fd, &r);
	if (ret)
		die(-ret, "the radio of %s does not move", interface);
	close(fd);
}

void air_monitor(const char *interface)
{
	int fd = request_socket(NETLINK_GENERIC), ret;
	uint16_t family = request_family(fd, "nl80211");
	struct request r;

	set_type(fd, family, interface, NL80211_IFTYPE_MONITOR);
	up(interface);
	request_generic(&r, family, NL80211_CMD_SET_WIPHY);
	request_u32(&r, NL80211_ATTR_IFINDEX, interface_index(interface));
	request_u32(&r, NL80211_ATTR_WIPHY_FREQ, CHANNEL_MHZ);
	request_u32(&r, NL80211_ATTR_CHANNEL_WIDTH, NL80211_CHAN_WIDTH_20);
	request_u32(&r, NL80211_ATTR_CENTER_FREQ1, CHANNEL_MHZ);
	ret = request_send(fd, &r);
	if (ret)
		die(-ret, "%s does not go to %d MHz", interface, CHANNEL_MHZ);
	close(fd);
}
