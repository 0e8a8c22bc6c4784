/* The tap by a packet socket: a TPACKET_V3 ring that a filter fills with TCP. */
#include "tap/tap.h"

#include "base/log.h"
#include "packet/interface.h"
#include "packet/packet_filter.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	BLOCK_BYTES = 8192, /* small: a block is handed over full or old, and an old one costs a whole block */
	BLOCK_MS = 4, /* then a block is old: a tick, so that no packet waits for longer */
	STATISTICS_READS = 25, /* losses are read ten times a second, and at once when a packet tells of some */
};

struct tap {
	const char *section;
	struct interface interface;
	int fd;
	uint8_t *ring;
	uint32_t block_size, n_blocks, at;
	bool losing;
	unsigned reads; /* since losses were read */
	int bind_error, bind_reported;
	struct tap_stats stats;
};

static int check(const struct tap_config *c, char *err, size_t err_size)
{
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), ret = -errno;

	if (fd >= 0) {
		close(fd);
		return 0;
	}
	snprintf(err, err_size,
		 "%s on %s: cannot open a packet socket: %s; it takes root, or CAP_NET_RAW, at the start: restart "
		 "ap-exporter where it runs already",
		 c->section, c->interface, strerror(-ret));
	return ret;
}

static void release(struct tpacket_block_desc *b)
{
	__atomic_store_n(&b->hdr.bh1.block_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
}

static void read_block(struct tap *c, const struct tpacket_block_desc *b, tap_frame_cb cb, void *ctx)
{
	const uint8_t *start = (const uint8_t *)b, *p = start + b->hdr.bh1.offset_to_first_pkt;

	for (uint32_t i = 0; i < b->hdr.bh1.num_pkts; i++) {
		const struct tpacket3_hdr *h = (const struct tpacket3_hdr *)p;
		const struct sockaddr_ll *ll = (const struct sockaddr_ll *)(p + TPACKET_ALIGN(sizeof *h));
		const struct tap_frame frame = {
			.bytes = p + h->tp_mac,
			.captured = h->tp_snaplen,
			.length = h->tp_len,
			.t_us = (uint64_t)h->tp_sec * 1000000u + h->tp_nsec / 1000u,
			.outgoing = ll->sll_pkttype == PACKET_OUTGOING,
		};

		if (h->tp_status & TP_STATUS_LOSING)
			c->losing = true;
		if (ll->sll_pkttype != PACKET_LOOPBACK) {
			c->stats.packets++;
			cb(ctx, &frame);
		}
		if (!h->tp_next_offset)
			break;
		p += h->tp_next_offset;
	}
}

static void read_statistics(struct tap *c)
{
	struct tpacket_stats_v3 s;
	socklen_t len = sizeof s;

	if (getsockopt(c->fd, SOL_PACKET, PACKET_STATISTICS, &s, &len) == 0) /* reading restarts the counts */
		c->stats.overruns += s.tp_drops;
	c->losing = false;
	c->reads = 0;
}

static void read_tap(void *self, int64_t to_realtime_us, tap_frame_cb cb, void *ctx)
{
	struct tap *c = self;

	for (uint32_t i = 0; i < c->n_blocks; i++) { /* at most once around */
		struct tpacket_block_desc *b = (struct tpacket_block_desc *)(c->ring + (size_t)c->at * c->block_size);

		if (!(__atomic_load_n(&b->hdr.bh1.block_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER))
			break;
		read_block(c, b, cb, ctx);
		release(b);
		c->at = c->at + 1 < c->n_blocks ? c->at + 1 : 0;
	}
	if (c->losing || ++c->reads >= STATISTICS_READS)
		read_statistics(c);
}

/* (Re)attaches the ring to the interface, which may have another index than before. */
static void attach(struct tap *c)
{
	struct sockaddr_ll a = { .sll_family = AF_PACKET,
				 .sll_protocol = htons(ETH_P_ALL),
				 .sll_ifindex = (int)c->interface.index };
	socklen_t len = sizeof c->bind_error;

	getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &c->bind_error, &len); /* clears ENETDOWN */
	c->bind_error = 0;
	if (c->interface.index && bind(c->fd, (struct sockaddr *)&a, sizeof a) < 0) {
		c->bind_error = errno;
		c->interface.index = 0; /* tried again in a second */
	}
}

static void second(void *self)
{
	struct tap *c = self;
	const unsigned before = c->interface.index;

	if (interface_update(&c->interface)) {
		c->stats.losses += before != 0;
		attach(c);
	}
	if (c->bind_error && c->bind_error != c->bind_reported)
		log_warn("%s: cannot attach to %s: %s; trying once a second", c->section, c->interface.name,
			 strerror(c->bind_error));
	c->bind_reported = c->bind_error;
	if (!c->bind_error)
		interface_report(&c->interface, c->section);
}

static void stats(void *self, struct tap_stats *s)
{
	const struct tap *c = self;

	*s = c->stats;
	s->frames = s->packets + s->overruns;
	s->attached = c->interface.index != 0;
	s->last_error = c->bind_error ? strerror(c->bind_error) : "";
}

static void close_tap(void *self)
{
	struct tap *c = self;

	if (c->ring)
		munmap(c->ring, (size_t)c->n_blocks * c->block_size);
	if (c->fd >= 0)
		close(c->fd);
	free(c);
}

static int open_ring(struct tap *c, const struct tap_config *config, const char **step)
{
	struct sock_filter program[PACKET_FILTER_MAX];
	struct sock_fprog filter = { .filter = program };
	long page = sysconf(_SC_PAGESIZE);
	struct tpacket_req3 req = { 0 };
	int version = TPACKET_V3, locked = 1;

	*step = "open a packet socket";
	c->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
		       0); /* protocol 0: nothing arrives before bind */
	if (c->fd < 0)
		return -errno;
	*step = "select TPACKET_V3";
	if (setsockopt(c->fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version) < 0)
		return -errno;
	*step = "attach the filter";
	filter.len = (unsigned short)packet_filter_build(program, config->snaplen);
	if (setsockopt(c->fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) < 0)
		return -errno;
	*step = "lock the filter"; /* whoever takes this process over reads headers by it, and no more */
	if (setsockopt(c->fd, SOL_SOCKET, SO_LOCK_FILTER, &locked, sizeof locked) < 0)
		return -errno;
	*step = "make the ring";
	c->block_size = page > BLOCK_BYTES ? (uint32_t)page : (uint32_t)BLOCK_BYTES;
	c->n_blocks = config->ring_kb * 1024 / c->block_size;
	req.tp_block_size = c->block_size;
	req.tp_block_nr = c->n_blocks;
	req.tp_frame_size = 512; /* only bounds the number of frames that the kernel accounts for */
	req.tp_frame_nr = c->n_blocks * (c->block_size / req.tp_frame_size);
	req.tp_retire_blk_tov = BLOCK_MS;
	if (setsockopt(c->fd, SOL_PACKET, PACKET_RX_RING, &req, sizeof req) < 0)
		return -errno;
	*step = "map the ring";
	c->ring = mmap(NULL, (size_t)c->n_blocks * c->block_size, PROT_READ | PROT_WRITE, MAP_SHARED, c->fd, 0);
	if (c->ring == MAP_FAILED) {
		c->ring = NULL;
		return -errno;
	}
	return 0;
}

static int open_tap(void **self, const struct tap_config *config, char *err, size_t err_size)
{
	struct tap *c = calloc(1, sizeof *c);
	const char *step = "start";
	int ret = -ENOMEM;

	if (c) {
		c->fd = -1;
		c->section = config->section;
		ret = open_ring(c, config, &step);
	}
	if (ret) {
		snprintf(err, err_size, "%s on %s: cannot %s: %s", config->section, config->interface, step,
			 strerror(-ret));
		if (c)
			close_tap(c);
		return ret;
	}
	interface_init(&c->interface, config->interface);
	attach(c);
	interface_report(&c->interface, c->section);
	*self = c;
	return 0;
}

const struct tap_ops tap_packet = {
	.name = "packet",
	.check = check,
	.open = open_tap,
	.read = read_tap,
	.second = second,
	.stats = stats,
	.close = close_tap,
};
