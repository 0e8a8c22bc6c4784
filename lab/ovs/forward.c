/* forward.c: how long a port takes for an ACK, from the driver that hands it in to the driver that takes it out.
 * usage: forward PORT OUT BURSTS BURST_PACKETS WINDOW [TOS]; prints two numbers of nanoseconds a packet of each burst,
 * a burst a line. Frames go out of PORT, a veth, and so in at its other end; the kernel does the rest before send
 * returns, unless it puts work off until later. First number: until send returned, 0 if OUT had not sent all packets by
 * then. Second: until it had. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 1024, FRAME = 66 };

static uint32_t add(uint32_t sum, const uint8_t *p, unsigned len)
{
	for (unsigned i = 0; i < len; i += 2)
		sum += (uint32_t)p[i] << 8 | p[i + 1];
	return sum;
}

static void put_sum(uint8_t *at, uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	at[0] = (uint8_t)(~sum >> 8);
	at[1] = (uint8_t)~sum;
}

/* 10.0.0.2:40000 acknowledges to 10.0.0.1:443, with timestamps. */
static void make_ack(uint8_t *f, unsigned window, unsigned tos)
{
	static const uint8_t head[FRAME] = {
		0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2, 0x08, 0x00,
		0x45, 0, 0, 52, 0, 1, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1,
		0x9c, 0x40, 0x01, 0xbb, 0, 0, 0, 1, 0, 0, 0, 2, 0x80, 0x10, 0, 0, 0, 0, 0, 0, 1, 1, 8, 10, 0, 0, 0, 1,
		0, 0, 0, 2,
	};

	memcpy(f, head, FRAME);
	f[15] = (uint8_t)tos;
	f[48] = (uint8_t)(window >> 8);
	f[49] = (uint8_t)window;
	put_sum(f + 24, add(0, f + 14, 20));
	put_sum(f + 50, add(6 + 32, f + 26, 8 + 32));
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static long long sent_by(int counter)
{
	char text[32] = "";

	return pread(counter, text, sizeof text - 1, 0) > 0 ? atoll(text) : -1;
}

int main(int argc, char **argv)
{
	const bool whole_line = argc == 6 || argc == 7;
	const int bursts = whole_line ? atoi(argv[3]) : 0, packets = whole_line ? atoi(argv[4]) : 0, one = 1;
	static struct mmsghdr messages[MOST];
	uint8_t frame[FRAME];
	struct iovec whole = { frame, FRAME };
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP) };
	char path[256];
	int fd, counter;

	if (bursts < 1 || packets < 1 || packets > MOST) {
		fprintf(stderr, "usage: forward PORT OUT BURSTS BURST_PACKETS WINDOW [TOS]\n");
		return 2;
	}
	make_ack(frame, (unsigned)atoi(argv[5]), argc == 7 ? (unsigned)atoi(argv[6]) : 0);
	to.sll_ifindex = (int)if_nametoindex(argv[1]);
	fd = socket(AF_PACKET, SOCK_RAW, 0);
	if (!to.sll_ifindex || fd < 0 || bind(fd, (struct sockaddr *)&to, sizeof to) ||
			setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof one)) {
		perror(argv[1]);
		return 1;
	}
	snprintf(path, sizeof path, "/sys/class/net/%s/statistics/tx_packets", argv[2]);
	counter = open(path, O_RDONLY);
	if (counter < 0) {
		perror(path);
		return 1;
	}
	for (int i = 0; i < packets; i++)
		messages[i].msg_hdr = (struct msghdr){ .msg_iov = &whole, .msg_iovlen = 1 };
	for (int i = 0; i < bursts; i++) {
		const long long out = sent_by(counter);
		const int64_t before = now_ns();
		const bool sent = sendmmsg(fd, messages, (unsigned)packets, 0) == packets;
		const int64_t took = now_ns() - before;
		const bool at_once = sent_by(counter) >= out + packets;
		int64_t all = took;

		if (!sent) {
			perror("send");
			return 1;
		}
		while (sent_by(counter) < out + packets) {
			all = now_ns() - before;
			if (all > INT64_C(20000000000)) {
				fprintf(stderr, "%lld of %d packets came out of %s\n", sent_by(counter) - out, packets,
						argv[2]);
				return 1;
			}
		}
		printf("%lld %lld\n", (long long)(at_once ? took / packets : 0), (long long)(all / packets));
	}
	return 0;
}
