/*
 * What a tick costs: the nl80211 and qdisc collectors on the recorded replies of a real kernel (tests/data/nl: ten
 * stations under load), and the packets of the same 100 ms, through the whole pipeline to finished batches. Only the
 * kernel is left out: netlink_dump() hands out recorded datagrams. Run it under callgrind with
 * --toggle-collect=measured_tick; it prints the number of measured ticks and packets.
 */
#include "collect/collector.h"
#include "packet/interface.h"
#include "netlink/netlink.h"
#include "nl_sample.h"
#include "pipeline/pipeline.h"
#include "collect/rtnetlink_parse.h"

#include <errno.h>
#include <linux/netlink.h>

#define TICKS 25
#define ROUNDS 20 /* the recording again and again, so that batches end and decisions are made as often as in life */

struct replies {
	struct nl_record of[8]; /* by kind */
};

static struct replies ticks[TICKS];
static unsigned n_ticks, at;
static int lan_index, wlan_index;

/* --- netlink.h, from the recording */
struct netlink {
	int protocol;
};

int netlink_open(struct netlink **out, int protocol)
{
	*out = malloc(sizeof **out);
	(*out)->protocol = protocol;
	return 0;
}

void netlink_close(struct netlink *nl)
{
	free(nl);
}

int netlink_family(struct netlink *nl, const char *name)
{
	return 28;
}

void netlink_request(struct netlink_request *r, uint16_t type, uint16_t flags, const void *header, uint32_t header_len)
{
	memset(r, 0, sizeof *r);
	memcpy(r->bytes, header, header_len); /* the command is its first byte */
}

void netlink_append(struct netlink_request *r, uint16_t type, const void *data, uint16_t len)
{
}

static int answer(unsigned kind, bool dump, netlink_cb cb, void *ctx, struct netlink_result *result)
{
	const struct nl_record *r = &ticks[at].of[kind];
	struct netlink_walk w = {
		.seq_last = UINT32_MAX, .pending = 1, .dump = dump, .cb = cb, .ctx = ctx, .result = result,
	};

	*result = (struct netlink_result){ 0 };
	if (!r->bytes)
		return -EAGAIN;
	netlink_walk(&w, r->bytes, r->len);
	return result->error;
}

int netlink_dump(struct netlink *nl, struct netlink_request *r, netlink_cb cb, void *ctx, struct netlink_result *result)
{
	return answer(nl->protocol == NETLINK_ROUTE                    ? NL_QDISC
	              : r->bytes[0] == 50 /* NL80211_CMD_GET_SURVEY */ ? NL_SURVEY
	                                                               : NL_STATION,
	              true, cb, ctx, result);
}

int netlink_get(struct netlink *nl, struct netlink_request *const *requests, unsigned n, netlink_cb cb, void *ctx,
		struct netlink_result *result)
{
	return answer(NL_INTERFACE, false, cb, ctx, result);
}

/* --- interface.h: always there */
void interface_init(struct interface *i, const char *name)
{
	snprintf(i->name, sizeof i->name, "%s", name);
	i->index = (unsigned)(name[0] == 'l' ? lan_index : wlan_index);
}

bool interface_update(struct interface *i)
{
	return false;
}

bool interface_failed(struct interface *i, int error)
{
	return false;
}

void interface_report(struct interface *i, const char *who)
{
}

/* --- the measured part */
static uint64_t batches, batch_bytes, packets;

static void on_batch(void *ctx, const struct batch_out *b)
{
	batches++;
	batch_bytes += b->len;
}

struct frame {
	const uint8_t *bytes;
	uint32_t caplen, wirelen;
	uint64_t t_us;
};

static void *selves[2];
static struct samples *samples;
static struct collector_counts counts;

static void one_tick(struct pipeline *p, const struct frame *frames, unsigned n, const struct collector_tick *t)
{
	/* The recording's stations have MAC addresses 02:…; in life PACKET_OUTGOING tells. */
	for (unsigned i = 0; i < n; i++)
		pipeline_frame(p, frames[i].bytes, frames[i].caplen, frames[i].wirelen, frames[i].t_us,
		               frames[i].bytes[6] == 2 ? PIPELINE_UP : PIPELINE_DOWN);
	pipeline_tick(p, t->due_us, 0, 0);
	/* Both on one thread here; live, the collectors are a sampler's. */
	collect_nl80211.tick(selves[0], t);
	collect_qdisc.tick(selves[1], t);
	samples_drain(samples, p, &counts, t);
}

void measured_tick(struct pipeline *p, const struct frame *frames, unsigned n, const struct collector_tick *t);
__attribute__((noinline)) void measured_tick(struct pipeline *p, const struct frame *frames, unsigned n,
                                             const struct collector_tick *t)
{
	one_tick(p, frames, n, t);
}

/* Interfaces of the recording: the one with fq_codel is the wired port; stations name the other. */
static void on_qdisc(void *ctx, const struct nlmsghdr *h, const uint8_t *payload, uint32_t len)
{
	struct oal_queue_row row;
	char kind[QDISC_KIND];
	int ifindex;

	if (qdisc_parse(payload, len, &row, &ifindex, kind) && !strcmp(kind, "fq_codel"))
		lan_index = ifindex;
}

int main(int argc, char **argv)
{
	static struct config config;
	struct pipeline_config pc = {
		.ap_id = "bench", .boot_id = 1, .max_stations = 128, .max_flows = 1024,
		.program = &oal_feature_congestion, .emit = on_batch,
	};
	struct collector_env env = { .config = &config };
	size_t size, pcap_size, pos = 0, pcap_at = 24;
	uint8_t *data = check_file("tests/data/nl/sample.nl", &size),
		*pcap = check_file("tests/data/nl/sample.pcap", &pcap_size);
	static struct frame frames[4096];
	struct netlink_result result;
	struct nl_record r;
	char err[256];
	/* Packets per tick on average; the others are left out. */
	unsigned per_tick = argc > 1 ? (unsigned)atoi(argv[1]) : 4096, taken = 0;

	while (nl_sample_next(data, size, &pos, &r) && (r.kind != NL_STATION || n_ticks < TICKS)) {
		if (r.kind == NL_STATION)
			n_ticks++;
		if (r.kind < 8 && n_ticks)
			ticks[n_ticks - 1].of[r.kind] = r;
	}
	for (unsigned i = 1; i < n_ticks; i++) /* slow kinds stay as they were */
		for (unsigned k = 0; k < 8; k++)
			if (!ticks[i].of[k].bytes)
				ticks[i].of[k] = ticks[i - 1].of[k];
	answer(NL_QDISC, true, on_qdisc, NULL, &result);
	wlan_index = lan_index + 1000; /* only has to be there */
	config.exporter.max_stations = 128;
	config.n_nl80211 = config.n_qdisc = 1;
	config.nl80211[0] = (struct config_nl80211){ true, "wlan0", 25, 250, 1, 5 };
	config.qdisc[0] = (struct config_qdisc){ true, "lan0", 1 };
	if (samples_new(&samples, samples_room(128)) < 0)
		return 1;
	env.samples = samples;
	if (pipeline_new(&env.pipeline, &pc) < 0 || collect_nl80211.start(&selves[0], &env, err, sizeof err) < 0 ||
	    collect_qdisc.start(&selves[1], &env, err, sizeof err) < 0)
		return 1;
	for (unsigned tick = 0; tick < n_ticks * ROUNDS; tick++) {
		const uint64_t shift_us = (uint64_t)(tick / n_ticks) * n_ticks * 4000;
		struct collector_tick t = { tick + 1, 0, 0 };
		unsigned n = 0;

		at = tick % n_ticks;
		t.due_us = ticks[at].of[NL_STATION].time_ns / 1000 + shift_us;
		if (!at)
			pcap_at = 24;

		while (pcap_at + 16 <= pcap_size && n < 4096) {
			uint64_t us = nl_sample_le(pcap + pcap_at, 4) * 1000000 + nl_sample_le(pcap + pcap_at + 4, 4) +
			              shift_us;
			uint32_t cap = (uint32_t)nl_sample_le(pcap + pcap_at + 8, 4);

			if (us >= t.due_us)
				break;
			if (taken < per_tick * (tick + 1)) {
				taken++;
				frames[n++] = (struct frame){ pcap + pcap_at + 16, cap,
				                              (uint32_t)nl_sample_le(pcap + pcap_at + 12, 4), us };
			}
			pcap_at += 16 + cap;
		}
		if (!tick) { /* the first look parses everything: a start, not a tick */
			one_tick(env.pipeline, frames, n, &t);
			continue;
		}
		packets += n;
		measured_tick(env.pipeline, frames, n, &t);
	}
	pipeline_flush(env.pipeline);
	printf("ticks %u packets %" PRIu64 " batches %" PRIu64 " bytes %" PRIu64 " netlink_errors %" PRIu64 "\n",
	       n_ticks * ROUNDS - 1, packets, batches, batch_bytes, counts.netlink_errors);
	collect_nl80211.stop(selves[0]);
	collect_qdisc.stop(selves[1]);
	pipeline_free(env.pipeline);
	free(data);
	free(pcap);
	return counts.netlink_errors || !n_ticks;
}
