#include "air.h"
#include "request.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
	STEP_US = 2000, /* between two bursts */
	BURST = 64, /* packets of each direction in one, at the most */
	FLOWS = 2, /* of each station */
	SEGMENT = 1448,
	WINDOW = 65535,
	SERVER = 0xc6336401, /* 198.51.100.1 */
	FIRST_STATION = 0x0a000002, /* 10.0.0.2 */
};

struct ip_tcp {
	struct iphdr ip;
	struct tcphdr tcp;
	uint8_t options[12]; /* timestamps */
} __attribute__((packed));

struct down {
	struct ethhdr eth;
	struct ip_tcp h;
	uint8_t payload[SEGMENT];
} __attribute__((packed));

struct down_udp {
	struct ethhdr eth;
	struct iphdr ip;
	struct udphdr udp;
	uint8_t payload[72];
} __attribute__((packed));

/* A frame of a station's as it is on the air: QoS data to the access point. */
struct up {
	uint8_t radiotap[8];
	uint16_t control, duration;
	uint8_t ap[6], station[6], server[6];
	uint16_t sequence, qos;
	uint8_t snap[8];
	struct ip_tcp h;
} __attribute__((packed));

struct flow {
	struct down down;
	struct up up;
};

static uint16_t ip_sum(const struct iphdr *ip)
{
	const uint16_t *p = (const uint16_t *)ip;
	uint32_t sum = 0;

	for (unsigned i = 0; i < sizeof *ip / 2; i++)
		sum += p[i];
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~(sum + (sum >> 16));
}

static struct iphdr ip_header(uint8_t protocol, size_t bytes, uint32_t from, uint32_t to)
{
	struct iphdr ip = { .version = 4, .ihl = 5, .tot_len = htons((uint16_t)bytes), .frag_off = htons(0x4000),
			    .ttl = 60, .protocol = protocol, .saddr = htonl(from), .daddr = htonl(to) };

	ip.check = ip_sum(&ip);
	return ip;
}

static void fill_tcp(struct ip_tcp *h, size_t payload, unsigned f, unsigned station, int down)
{
	const uint32_t server = SERVER, client = FIRST_STATION + station;

	h->ip = ip_header(IPPROTO_TCP, sizeof *h + payload, down ? server : client, down ? client : server);
	h->tcp = (struct tcphdr){ .source = htons(down ? 443 : (uint16_t)(40000 + f)),
				  .dest = htons(down ? (uint16_t)(40000 + f) : 443), .ack = 1, .doff = 8,
				  .seq = htonl(1000), .ack_seq = htonl(1000), .window = htons(WINDOW) };
	h->options[0] = h->options[1] = 1;
	h->options[2] = 8;
	h->options[3] = 10;
}

static void fill_flow(struct flow *flow, unsigned f, unsigned station, const uint8_t ap[6])
{
	static const uint8_t snap[8] = { 0xaa, 0xaa, 3, 0, 0, 0, 8, 0 };

	station_address(flow->down.eth.h_dest, station);
	server_address(flow->down.eth.h_source);
	flow->down.eth.h_proto = htons(ETH_P_IP);
	fill_tcp(&flow->down.h, SEGMENT, f, station, 1);
	flow->up.radiotap[2] = sizeof flow->up.radiotap;
	flow->up.control = htons(0x8801); /* on the air the first octet is the first: QoS data, to the AP */
	memcpy(flow->up.ap, ap, 6);
	station_address(flow->up.station, station);
	server_address(flow->up.server);
	memcpy(flow->up.snap, snap, sizeof snap);
	fill_tcp(&flow->up.h, 0, f, station, 0);
}

static int packet_socket(const char *interface)
{
	const struct sockaddr_ll a = { .sll_family = AF_PACKET, .sll_ifindex = (int)interface_index(interface) };
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0); /* protocol 0: it only sends */

	if (fd < 0 || bind(fd, (const struct sockaddr *)&a, sizeof a) < 0)
		die(errno, "cannot send on %s", interface);
	return fd;
}

static void send_all(int fd, struct mmsghdr *m, unsigned n)
{
	for (unsigned sent = 0; sent < n;) {
		int ret = sendmmsg(fd, m + sent, n - sent, 0);

		if (ret < 0 && errno != ENOBUFS && errno != EAGAIN)
			die(errno, "cannot send");
		sent += ret > 0 ? (unsigned)ret : 1; /* one that found no room is lost, as on any wire */
	}
}

struct burst {
	struct mmsghdr m[BURST];
	struct iovec at[BURST];
	unsigned n;
};

static void add(struct burst *b, void *frame, size_t size)
{
	if (b->n == BURST)
		return;
	b->at[b->n] = (struct iovec){ frame, size };
	b->m[b->n].msg_hdr = (struct msghdr){ .msg_iov = &b->at[b->n], .msg_iovlen = 1 };
	b->n++;
}

/* Two segments, then the ACK for both; the next packet is of the next flow after that. */
static void next_tcp(struct flow *flows, unsigned n, struct burst *down, struct burst *up, uint64_t *k)
{
	static struct down second[BURST]; /* the same frame twice in a burst would carry one number */
	struct flow *f = &flows[*k / 3 % n];
	struct ip_tcp *h = &f->down.h;

	if (*k % 3 == 2) {
		f->up.h.tcp.ack_seq = h->tcp.seq;
		add(up, &f->up, sizeof f->up);
	} else {
		struct down *copy = &second[down->n < BURST ? down->n : 0];

		memcpy(copy, &f->down, sizeof copy->eth + sizeof copy->h);
		add(down, copy, sizeof *copy);
		h->tcp.seq = htonl(ntohl(h->tcp.seq) + SEGMENT);
	}
	++*k;
}

static void ap_address(const char *interface, uint8_t mac[6])
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct ifreq r = { 0 };

	strncpy(r.ifr_name, interface, sizeof r.ifr_name - 1);
	if (ioctl(fd, SIOCGIFHWADDR, &r) < 0)
		die(errno, "interface %s", interface);
	memcpy(mac, r.ifr_hwaddr.sa_data, 6);
	close(fd);
}

void air_traffic(const struct traffic *t)
{
	const struct itimerspec every = { { 0, STEP_US * 1000 }, { 0, STEP_US * 1000 } };
	const unsigned n = t->stations * FLOWS;
	struct flow *flows = calloc(n, sizeof *flows);
	struct down_udp *short_ones = calloc(t->stations, sizeof *short_ones);
	int down_fd = packet_socket(t->wired), up_fd = packet_socket(t->monitor);
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	static struct burst down, up;
	uint64_t tcp = 0, udp = 0, steps = 0, late;
	uint8_t ap[6];

	if (!flows || !short_ones || timer < 0 || timerfd_settime(timer, 0, &every, NULL) < 0)
		die(errno, "no traffic");
	ap_address(t->ap, ap);
	for (unsigned i = 0; i < n; i++)
		fill_flow(&flows[i], i, i / FLOWS, ap);
	for (unsigned i = 0; i < t->stations; i++) {
		short_ones[i].eth = flows[i * FLOWS].down.eth;
		short_ones[i].ip = ip_header(IPPROTO_UDP, sizeof *short_ones - sizeof(struct ethhdr), SERVER,
					     FIRST_STATION + i);
		short_ones[i].udp = (struct udphdr){ .source = htons(443), .dest = htons(40000),
						     .len = htons(sizeof(struct udphdr) + 72) };
	}
	for (;;) {
		if (read(timer, &late, sizeof late) != sizeof late)
			die(errno, "the timer");
		steps += late;
		down.n = up.n = 0;
		for (uint64_t due = steps * t->udp_per_s * STEP_US / 1000000; udp < due; udp++)
			add(&down, &short_ones[udp % t->stations], sizeof *short_ones);
		for (uint64_t due = steps * t->tcp_per_s * STEP_US / 1000000; tcp < due;)
			next_tcp(flows, n, &down, &up, &tcp);
		send_all(down_fd, down.m, down.n);
		send_all(up_fd, up.m, up.n);
	}
}
