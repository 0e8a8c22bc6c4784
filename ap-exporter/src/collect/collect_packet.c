/* Collector: TCP headers of a wired port, both directions, through a TPACKET_V3 ring. */
#include "collect/collector.h"

#include "packet/interface.h"
#include "base/log.h"
#include "packet/packet_filter.h"
#include "pipeline/pipeline.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	BLOCK_BYTES = 8192, /* small: a block is handed over full or old, and an old one costs a whole block */
	BLOCK_MS = 4, /* then a block is old: a tick, so that no packet waits for longer */
	STATISTICS_TICKS = 25, /* losses are read ten times a second, and at once when a packet tells of some */
};

struct collect {
	const struct config_packet *config;
	struct pipeline *pipeline;
	struct collector_counts *counts;
	struct interface interface;
	int fd;
	uint8_t *ring;
	uint32_t block_size, n_blocks, at;
	bool losing;
	uint64_t statistics_at;
	int bind_error, bind_reported;
};

static uint32_t sections(const struct config *c)
{
	return c->n_packet;
}

static int check(const struct config *c, uint32_t section, char *err, size_t err_size)
{
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), ret = -errno;

	if (fd >= 0) {
		close(fd);
		return 0;
	}
	snprintf(err, err_size, "packet on %s: cannot open a packet socket: %s; start as root, or with CAP_NET_RAW",
		 c->packet[section].interface, strerror(-ret));
	return ret;
}

static void release(struct tpacket_block_desc *b)
{
	__atomic_store_n(&b->hdr.bh1.block_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
}

static void read_block(struct collect *c, const struct tpacket_block_desc *b)
{
	const uint8_t *start = (const uint8_t *)b, *p = start + b->hdr.bh1.offset_to_first_pkt;

	for (uint32_t i = 0; i < b->hdr.bh1.num_pkts; i++) {
		const struct tpacket3_hdr *h = (const struct tpacket3_hdr *)p;
		const struct sockaddr_ll *ll = (const struct sockaddr_ll *)(p + TPACKET_ALIGN(sizeof *h));

		if (h->tp_status & TP_STATUS_LOSING)
			c->losing = true;
		if (ll->sll_pkttype != PACKET_LOOPBACK)
			pipeline_frame(c->pipeline, p + h->tp_mac, h->tp_snaplen, h->tp_len,
				       (uint64_t)h->tp_sec * 1000000u + h->tp_nsec / 1000u,
				       ll->sll_pkttype == PACKET_OUTGOING ? PIPELINE_UP : PIPELINE_DOWN);
		if (!h->tp_next_offset)
			break;
		p += h->tp_next_offset;
	}
}

static void read_statistics(struct collect *c)
{
	struct tpacket_stats_v3 s;
	socklen_t len = sizeof s;

	if (getsockopt(c->fd, SOL_PACKET, PACKET_STATISTICS, &s, &len) == 0) /* reading restarts the counts */
		c->counts->ring_drops += s.tp_drops;
	c->losing = false;
}

static void before_tick(void *self, const struct collector_tick *t)
{
	struct collect *c = self;

	for (uint32_t i = 0; i < c->n_blocks; i++) { /* at most once around */
		struct tpacket_block_desc *b = (struct tpacket_block_desc *)(c->ring + (size_t)c->at * c->block_size);

		if (!(__atomic_load_n(&b->hdr.bh1.block_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER))
			break;
		read_block(c, b);
		release(b);
		c->at = c->at + 1 < c->n_blocks ? c->at + 1 : 0;
	}
	if (c->losing || t->number >= c->statistics_at) {
		c->statistics_at = t->number + STATISTICS_TICKS;
		read_statistics(c);
	}
}

/* (Re)attaches the ring to the interface, which may have another index than before. */
static void attach(struct collect *c)
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
	struct collect *c = self;
	unsigned before = c->interface.index;

	if (interface_update(&c->interface)) {
		if (before)
			c->counts->interface_losses++;
		attach(c);
	}
	if (c->bind_error && c->bind_error != c->bind_reported)
		log_warn("packet: cannot attach to %s: %s; trying once a second", c->interface.name,
			 strerror(c->bind_error));
	c->bind_reported = c->bind_error;
	if (!c->bind_error)
		interface_report(&c->interface, "packet");
}

static void stop(void *self)
{
	struct collect *c = self;

	if (c->ring)
		munmap(c->ring, (size_t)c->n_blocks * c->block_size);
	if (c->fd >= 0)
		close(c->fd);
	free(c);
}

static int open_ring(struct collect *c, const char **step)
{
	struct sock_filter program[PACKET_FILTER_MAX];
	struct sock_fprog filter = { .filter = program };
	long page = sysconf(_SC_PAGESIZE);
	struct tpacket_req3 req = { 0 };
	int version = TPACKET_V3;

	*step = "open a packet socket";
	c->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
		       0); /* protocol 0: nothing arrives before bind */
	if (c->fd < 0)
		return -errno;
	*step = "select TPACKET_V3";
	if (setsockopt(c->fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version) < 0)
		return -errno;
	*step = "attach the filter";
	filter.len = (unsigned short)packet_filter_build(program, c->config->snaplen);
	if (setsockopt(c->fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) < 0)
		return -errno;
	*step = "make the ring";
	c->block_size = page > BLOCK_BYTES ? (uint32_t)page : (uint32_t)BLOCK_BYTES;
	c->n_blocks = c->config->ring_kb * 1024 / c->block_size;
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

static int start(void **self, const struct collector_env *env, char *err, size_t err_size)
{
	const struct config_packet *config = &env->config->packet[env->section];
	struct collect *c = calloc(1, sizeof *c);
	const char *step = "start";
	int ret = -ENOMEM;

	if (c) {
		c->fd = -1;
		c->config = config;
		c->pipeline = env->pipeline;
		c->counts = env->counts;
		ret = open_ring(c, &step);
	}
	if (ret) {
		snprintf(err, err_size, "packet on %s: cannot %s: %s", config->interface, step, strerror(-ret));
		if (c)
			stop(c);
		return ret;
	}
	interface_init(&c->interface, config->interface);
	attach(c);
	interface_report(&c->interface, "packet");
	*self = c;
	return 0;
}

const struct collector_ops collect_packet = {
	.name = "packet",
	.sections = sections,
	.check = check,
	.start = start,
	.before_tick = before_tick,
	.second = second,
	.stop = stop,
	.live = true,
};
