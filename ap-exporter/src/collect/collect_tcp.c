/* Collector: TCP connections of this host, as their sender: looks at all of them by sock_diag, notices of their ends.
 *
 * A round is a dump of all connections, IPv4 then IPv6, read in slices over its interval, so that neither the kernel
 * nor what comes after has to do it at one moment. What a round cost, its notices and rows included, says how long the
 * next one may take: where there are many connections they are looked at less often, and rows say how often. */
#include "base/clock.h"
#include "collect/collector.h"
#include "netlink/netlink.h"
#include "sender/connections.h"
#include "sender/sender_ends.h"
#include "sender/sender_filter.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	SLICE_DATAGRAMS = 4, /* of 32 KiB: some 300 connections */
	SLICE_CONNECTIONS = 256, /* that a slice is counted on to say */
	MOST_SLICE_TICKS = 63, /* between two slices: the kernel holds what it has read so far */
	ENDS_TICKS = 12, /* between two reads of notices: some 50 ms, of which few sockets hold all */
	MOST_ENDS = 1024, /* notices that one tick takes */
	ROW_NS = 1500, /* what a row costs from here on: bench/host.py */
	MOST_INTERVAL_MS = 60000,
};

struct collect {
	struct samples *samples;
	struct netlink *nl;
	struct sender_ends *ends; /* NULL: the kernel tells of none */
	struct connections *connections;
	struct sender_filter filter;
	struct config_tcp config;

	/* The round. */
	struct netlink_request request;
	struct netlink_walk walk;
	struct netlink_result result;
	bool dumping, whole; /* whole: nothing of it went wrong so far */
	uint8_t family;
	uint32_t round, interval_ms, said, expected; /* connections that this round said, and the one before */
	uint64_t began_tick, slice_due, ends_due, now_us;
	uint64_t cost_ns; /* since the round began */
	struct collector_counts counts; /* of this tick */
};

static uint64_t cpu_ns(void)
{
	struct timespec t = { 0 };

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* --- what is said of a connection */

static void send_row(struct collect *c, enum oal_table_id t, const struct sender_flow *f, const char *control,
		     const void *row)
{
	samples_sender_row(c->samples, t, f, control, row);
	c->cost_ns += ROW_NS;
}

static void on_look(void *ctx, const struct nlmsghdr *h, const uint8_t *payload, uint32_t len)
{
	struct collect *c = ctx;
	struct sender_look look;

	c->said++;
	if (h->nlmsg_type != SOCK_DIAG_BY_FAMILY || !inet_diag_parse(payload, len, &look) ||
	    !sender_filter_takes(&c->filter, &look))
		return;
	switch (connections_look(c->connections, &look, c->now_us, c->round)) {
	case CONNECTIONS_FULL: c->counts.senders_refused++; break;
	case CONNECTIONS_SAME: break;
	case CONNECTIONS_CHANGED:
		if (!c->config.looks)
			break;
		look.row.interval_ms = c->interval_ms;
		send_row(c, OAL_SENDER_TCP, &look.flow, look.control, &look.row);
	}
}

static void send_end(struct collect *c, const struct sender_end *end)
{
	if (c->config.sessions)
		send_row(c, OAL_SENDER_SESSION, &end->flow, end->control, &end->row);
}

static void on_end(void *ctx, const struct sender_look *look)
{
	struct collect *c = ctx;
	struct sender_end end;

	if (sender_filter_takes(&c->filter, look) && connections_end(c->connections, look, c->now_us, &end))
		send_end(c, &end);
}

/* --- rounds */

static int begin_dump(struct collect *c, uint8_t family)
{
	const struct inet_diag_req_v2 r = {
		.sdiag_family = family,
		.sdiag_protocol = IPPROTO_TCP,
		.idiag_ext = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1),
		.idiag_states = 1 << TCP_ESTABLISHED | 1 << TCP_FIN_WAIT1 | 1 << TCP_FIN_WAIT2 | 1 << TCP_CLOSE_WAIT |
				1 << TCP_LAST_ACK | 1 << TCP_CLOSING,
		/* The kernel itself leaves other ports out; it takes one. */
		.id.idiag_sport = c->filter.n_ports == 1 ? htons(c->filter.ports[0]) : 0,
	};

	c->family = family;
	netlink_request(&c->request, SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, &r, sizeof r);
	return netlink_dump_begin(c->nl, &c->request, on_look, c, &c->walk, &c->result);
}

/* Connections that are not there any more, and of whose end the kernel told nothing. */
static void end_missed(struct collect *c)
{
	struct sender_end end;
	unsigned at = 0;

	while (connections_missed(c->connections, &at, c->round, &end))
		send_end(c, &end);
}

/* As often as configured, and as the share of the processor lets: what this round cost, the next will. */
static void set_interval(struct collect *c, unsigned pace)
{
	const uint64_t afforded_ms = c->cost_ns / 1000u / c->config.cpu_permille;
	uint64_t ms = (uint64_t)c->config.interval_ms << pace;

	ms = ms < afforded_ms ? afforded_ms : ms;
	c->interval_ms = (uint32_t)(ms < MOST_INTERVAL_MS ? ms : MOST_INTERVAL_MS);
	c->cost_ns = 0;
}

static uint64_t interval_ticks(const struct collect *c)
{
	return ((uint64_t)c->interval_ms * 1000u + OAL_SETTING_TICK_US - 1) / OAL_SETTING_TICK_US;
}

/* Between two slices of this round, if it has as many connections as the one before. */
static uint64_t slice_ticks(const struct collect *c)
{
	const uint64_t ticks = interval_ticks(c) / (c->expected / SLICE_CONNECTIONS + 2);

	return ticks < 1 ? 1 : ticks > MOST_SLICE_TICKS ? MOST_SLICE_TICKS : ticks;
}

static void end_round(struct collect *c, const struct collector_tick *t)
{
	c->dumping = false;
	if (c->whole)
		end_missed(c);
	c->expected = c->said;
	set_interval(c, t->pace);
	c->slice_due = c->began_tick + interval_ticks(c);
}

/* The dump went wrong: what it left unsaid proves nothing, and the socket has another's answers in it. */
static void fail(struct collect *c)
{
	struct netlink *again;

	c->counts.netlink_errors++;
	c->whole = false;
	if (netlink_open(&again, NETLINK_SOCK_DIAG) == 0) {
		netlink_close(c->nl);
		c->nl = again;
	}
}

static void slice(struct collect *c, const struct collector_tick *t)
{
	int ret = 0;

	if (!c->dumping) {
		c->round++;
		c->said = 0;
		c->dumping = c->whole = true;
		c->began_tick = t->number;
		ret = begin_dump(c, AF_INET);
	}
	if (!ret)
		ret = netlink_dump_more(c->nl, &c->walk, SLICE_DATAGRAMS);
	if (ret > 0 && c->result.interrupted) {
		c->counts.dumps_interrupted++;
		c->whole = false;
	}
	if (ret > 0 && c->family == AF_INET)
		ret = begin_dump(c, AF_INET6);
	else if (ret == -ENOENT && c->family == AF_INET6)
		ret = 1; /* a kernel without IPv6 has no such connections */
	if (ret < 0)
		fail(c);
	if (ret)
		end_round(c, t);
	else
		c->slice_due = t->number + slice_ticks(c);
}

static void read_ends(struct collect *c)
{
	bool lost;

	if (!c->ends)
		return;
	sender_ends_read(c->ends, MOST_ENDS, on_end, c, &lost);
	c->counts.sender_ends_lost += lost;
}

static void tick(void *self, const struct collector_tick *t)
{
	const uint64_t began_ns = cpu_ns();
	struct collect *c = self;

	c->now_us = t->monotonic_us;
	c->counts = (struct collector_counts){ 0 };
	if (t->number >= c->slice_due)
		slice(c, t);
	if (t->number >= c->ends_due) { /* after the slice: what it says of a connection is older than its end */
		read_ends(c);
		c->ends_due = t->number + ENDS_TICKS;
	}
	if (c->counts.netlink_errors || c->counts.dumps_interrupted || c->counts.senders_refused ||
	    c->counts.sender_ends_lost)
		samples_count(c->samples, &c->counts);
	c->cost_ns += cpu_ns() - began_ns;
}

static uint64_t due(void *self)
{
	const struct collect *c = self;

	return c->slice_due < c->ends_due ? c->slice_due : c->ends_due;
}

/* --- begin and end */

static uint32_t sections(const struct config *c)
{
	return c->n_tcp;
}

static void nothing(void *ctx, const struct nlmsghdr *h, const uint8_t *payload, uint32_t len)
{
	(void)ctx, (void)h, (void)payload, (void)len;
}

static int check(const struct config *config, uint32_t section, char *err, size_t err_size)
{
	const struct inet_diag_req_v2 of_no_state = { .sdiag_family = AF_INET, .sdiag_protocol = IPPROTO_TCP };
	const struct config_tcp *t = &config->tcp;
	struct netlink_request r;
	struct netlink_result result;
	struct sender_filter filter;
	struct netlink *nl = NULL;
	const char *wrong = sender_filter_parse(&filter, t->port, t->peer, t->loopback);
	int ret;

	(void)section;
	if (wrong) {
		snprintf(err, err_size, "section 'tcp': %s", wrong);
		return -EINVAL;
	}
	ret = netlink_open(&nl, NETLINK_SOCK_DIAG);
	netlink_request(&r, SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, &of_no_state, sizeof of_no_state);
	if (!ret)
		ret = netlink_dump(nl, &r, nothing, NULL, &result);
	netlink_close(nl);
	if (ret)
		snprintf(err, err_size,
			 "section 'tcp': this kernel does not say what its connections do (%s): load tcp_diag, or "
			 "remove the section",
			 strerror(-ret));
	return ret;
}

static void stop(void *self)
{
	struct collect *c = self;

	netlink_close(c->nl);
	sender_ends_close(c->ends);
	connections_free(c->connections);
	free(c);
}

static int start(void **self, const struct collector_env *env, char *err, size_t err_size)
{
	const struct config_tcp *t = &env->config->tcp;
	struct collect *c = calloc(1, sizeof *c);
	int ret = c ? netlink_open(&c->nl, NETLINK_SOCK_DIAG) : -ENOMEM;

	if (!ret)
		ret = connections_new(&c->connections, t->max_connections);
	if (!ret)
		ret = sender_ends_open(&c->ends);
	if (!ret && sender_filter_parse(&c->filter, t->port, t->peer, t->loopback))
		ret = -EINVAL;
	if (ret) {
		snprintf(err, err_size, "section 'tcp': cannot start: %s", strerror(-ret));
		if (c)
			stop(c);
		return ret;
	}
	c->samples = env->samples;
	c->config = *t;
	c->interval_ms = t->interval_ms;
	*self = c;
	return 0;
}

const struct collector_ops collect_tcp = {
	.name = "tcp",
	.sections = sections,
	.check = check,
	.start = start,
	.tick = tick,
	.due = due,
	.stop = stop,
	.live = true,
	.thread = COLLECTOR_SHARED,
};
