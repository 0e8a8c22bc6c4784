/* tap: the TCP and UDP headers of several interfaces in several network namespaces, as records of fixed size in the
 * order in which rings are read.
 *
 *     tap OUTPUT NAMESPACE:INTERFACE…        until SIGTERM
 *
 * One clock for all: what leaves the server and what arrives at the station are stamped by the same kernel, so that the
 * difference is the one-way delay. A record is the little that the evaluation needs; a pcap of the same packets would
 * be three times as large and would have to be parsed. The last line on standard error says how many packets were
 * written and how many the kernel had to let go.
 *
 * A datagram has neither a sequence number nor an identification that would tell it from others (with DF set that is
 * 0). QUIC's payload is encrypted, so that its first bytes do: a hash of them stands in both fields. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAX_TAPS = 64, BLOCK_BYTES = 1 << 16, BLOCKS = 16, SNAPLEN = 96, RETIRE_MS = 60, LINGER_POLLS = 5 };
enum { UDP_BYTES = 8, HASHED_BYTES = SNAPLEN - ETH_HLEN - 20 - UDP_BYTES }; /* of a datagram's payload */

/* Little-endian as the machines that run it; lab/evaluate/tap.py reads it by the same layout. */
struct record {
	uint64_t t_ns; /* realtime */
	uint32_t source, destination, seq, ack;
	uint16_t source_port, destination_port, ip_id, payload_bytes, window;
	uint8_t tap, flags; /* number of the interface on the command line; TCP flags */
	uint8_t sent, ecn; /* 1: leaves through this interface; bits of the IP header */
	uint8_t protocol, unused; /* IPPROTO_TCP or IPPROTO_UDP */
};
_Static_assert(sizeof(struct record) == 40, "tap.py reads records of 40 bytes");

struct tap {
	const char *name;
	int fd;
	uint8_t *ring;
	unsigned block;
	uint64_t packets;
};

static volatile sig_atomic_t stopping;

static void on_signal(int number)
{
	(void)number;
	stopping = 1;
}

static int fail(const char *what, const char *name)
{
	fprintf(stderr, "tap: %s of %s: %s\n", what, name, strerror(errno));
	return -1;
}

/* IPv4 with TCP or UDP, SNAPLEN bytes of it. */
static struct sock_filter wanted[] = {
	BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IP, 0, 4),
	BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 23),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_TCP, 1, 0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, SNAPLEN),
	BPF_STMT(BPF_RET | BPF_K, 0),
};

static int open_tap(struct tap *tap, char *spec)
{
	char *colon = strchr(spec, ':'), path[128];
	if (!colon) {
		fprintf(stderr, "tap: %s is not NAMESPACE:INTERFACE\n", spec);
		return -1;
	}
	tap->name = colon + 1;
	snprintf(path, sizeof path, "/run/netns/%.*s", (int)(colon - spec), spec);
	int there = open(path, O_RDONLY | O_CLOEXEC);
	if (there < 0 || setns(there, CLONE_NEWNET))
		return fail("namespace", spec);
	close(there);
	tap->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (tap->fd < 0)
		return fail("socket", spec);
	struct sock_fprog program = {.len = sizeof wanted / sizeof *wanted, .filter = wanted};
	int version = TPACKET_V3;
	struct tpacket_req3 request = {.tp_block_size = BLOCK_BYTES, .tp_block_nr = BLOCKS, .tp_frame_size = 256,
			.tp_frame_nr = BLOCK_BYTES / 256 * BLOCKS, .tp_retire_blk_tov = RETIRE_MS};
	struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL),
			.sll_ifindex = (int)if_nametoindex(tap->name)};
	if (setsockopt(tap->fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) ||
	    setsockopt(tap->fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version) ||
	    setsockopt(tap->fd, SOL_PACKET, PACKET_RX_RING, &request, sizeof request))
		return fail("ring", spec);
	tap->ring = mmap(NULL, (size_t)BLOCK_BYTES * BLOCKS, PROT_READ | PROT_WRITE, MAP_SHARED, tap->fd, 0);
	if (tap->ring == MAP_FAILED)
		return fail("mmap", spec);
	if (bind(tap->fd, (struct sockaddr *)&address, sizeof address))
		return fail("bind", spec);
	return 0;
}

static uint16_t be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static uint32_t be32(const uint8_t *p)
{
	return (uint32_t)be16(p) << 16 | be16(p + 2);
}

/* FNV-1a. */
static uint64_t hash_of(const uint8_t *p, uint32_t bytes)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (uint32_t i = 0; i < bytes; i++)
		h = (h ^ p[i]) * 0x100000001b3u;
	return h;
}

static void fill_tcp(struct record *r, const uint8_t *tcp, const uint8_t *ip, uint32_t ip_bytes)
{
	uint32_t headers = ip_bytes + (tcp[12] >> 4) * 4u, total = be16(ip + 2);

	r->seq = be32(tcp + 4);
	r->ack = be32(tcp + 8);
	r->ip_id = be16(ip + 4);
	r->payload_bytes = (uint16_t)(total > headers ? total - headers : 0);
	r->window = be16(tcp + 14);
	r->flags = tcp[13];
}

static void fill_udp(struct record *r, const uint8_t *udp, uint32_t kept)
{
	uint32_t total = be16(udp + 4), payload = total > UDP_BYTES ? total - UDP_BYTES : 0, hashed = payload;

	if (hashed > HASHED_BYTES)
		hashed = HASHED_BYTES;
	if (hashed > kept - UDP_BYTES)
		hashed = kept - UDP_BYTES;
	uint64_t h = hash_of(udp + UDP_BYTES, hashed);
	r->seq = (uint32_t)h;
	r->ip_id = (uint16_t)(h >> 48 ^ h >> 32);
	r->payload_bytes = (uint16_t)payload;
}

static void write_packet(FILE *out, struct tap *tap, uint8_t number, const struct tpacket3_hdr *header)
{
	const uint8_t *ip = (const uint8_t *)header + header->tp_mac + ETH_HLEN;
	uint32_t kept = header->tp_snaplen - ETH_HLEN, ip_bytes = (ip[0] & 15u) * 4;
	uint32_t least = ip[9] == IPPROTO_TCP ? 20 : UDP_BYTES;
	if (header->tp_snaplen < ETH_HLEN + 20 + UDP_BYTES || ip_bytes < 20 || kept < ip_bytes + least ||
	    be16(ip + 6) & 0x1fff)
		return;
	const uint8_t *l4 = ip + ip_bytes;
	const struct sockaddr_ll *from = (const void *)((const uint8_t *)header + TPACKET_ALIGN(sizeof *header));
	struct record r = {
		.t_ns = header->tp_sec * 1000000000ull + header->tp_nsec,
		.source = be32(ip + 12), .destination = be32(ip + 16),
		.source_port = be16(l4), .destination_port = be16(l4 + 2), .tap = number,
		.sent = from->sll_pkttype == PACKET_OUTGOING, .ecn = ip[1] & 3, .protocol = ip[9],
	};
	if (r.protocol == IPPROTO_TCP)
		fill_tcp(&r, l4, ip, ip_bytes);
	else
		fill_udp(&r, l4, kept - ip_bytes);
	fwrite(&r, sizeof r, 1, out);
	tap->packets++;
}

/* How many packets were waiting. */
static unsigned drain(FILE *out, struct tap *tap, uint8_t number)
{
	unsigned found = 0;
	for (;;) {
		struct tpacket_block_desc *block = (void *)(tap->ring + (size_t)tap->block * BLOCK_BYTES);
		if (!(__atomic_load_n(&block->hdr.bh1.block_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER))
			return found;
		const uint8_t *at = (const uint8_t *)block + block->hdr.bh1.offset_to_first_pkt;
		for (uint32_t n = 0; n < block->hdr.bh1.num_pkts; n++) {
			const struct tpacket3_hdr *header = (const void *)at;
			write_packet(out, tap, number, header);
			at += header->tp_next_offset;
		}
		found += block->hdr.bh1.num_pkts;
		__atomic_store_n(&block->hdr.bh1.block_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
		tap->block = (tap->block + 1) % BLOCKS;
	}
}

int main(int argc, char **argv)
{
	static struct tap taps[MAX_TAPS];
	struct pollfd polls[MAX_TAPS];
	int count = argc - 2;
	if (count < 1 || count > MAX_TAPS) {
		fprintf(stderr, "usage: tap OUTPUT NAMESPACE:INTERFACE… (at most %d)\n", MAX_TAPS);
		return 2;
	}
	FILE *out = fopen(argv[1], "wb");
	if (!out)
		return -fail("output", argv[1]);
	struct sigaction action = {.sa_handler = on_signal};
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	for (int n = 0; n < count; n++) {
		if (open_tap(&taps[n], argv[n + 2]))
			return 1;
		polls[n] = (struct pollfd){.fd = taps[n].fd, .events = POLLIN};
	}
	fprintf(stderr, "tap: ready\n");
	/* after the signal as long as blocks may still be open */
	for (unsigned left = LINGER_POLLS; left; left -= stopping ? 1 : 0) {
		poll(polls, (nfds_t)count, RETIRE_MS);
		for (int n = 0; n < count; n++)
			drain(out, &taps[n], (uint8_t)n);
	}
	uint64_t packets = 0, lost = 0;
	for (int n = 0; n < count; n++) {
		struct tpacket_stats_v3 stats = {0};
		socklen_t size = sizeof stats;
		if (getsockopt(taps[n].fd, SOL_PACKET, PACKET_STATISTICS, &stats, &size))
			return -fail("statistics", taps[n].name);
		packets += taps[n].packets;
		lost += stats.tp_drops;
	}
	int failed = fclose(out) != 0;
	fprintf(stderr, "tap: %llu packets, %llu lost%s\n", (unsigned long long)packets, (unsigned long long)lost,
			failed ? "; the output is incomplete" : "");
	return failed || lost;
}
