/* The control law in a closed loop with a model of one access point: senders that fill their windows, a delay to the
 * server, one queue that drains at a rate that changes. The lab has the real thing; here it is deterministic, and every
 * bound can be asserted. */
#include "check.h"
#include "control/control.h"

#include <errno.h>
#include <stdlib.h>

enum { TICK_US = 4000, MOST = 20, RING = 64, MSS = 1448 };

struct sender {
	bool on;
	uint32_t cwnd, window; /* window: what the last ACK said */
	uint32_t clamp; /* 0: none */
	uint64_t sent, acked; /* at the sender */
	uint64_t at_ap, queued, delivered; /* arrived at the AP; waiting; acknowledged as the AP sees it */
	uint64_t to_ap[RING], to_air[RING], to_server[RING]; /* bytes under way, by tick of arrival */
	uint32_t srtt_down, srtt_up;
	uint64_t rx_bytes; /* that the AP received of its station */
};

struct world {
	struct sender s[MOST];
	unsigned n, wired_ticks, air_ticks; /* one way */
	unsigned station_ticks; /* an ACK waits so long behind what its station sends */
	uint32_t sent_kbps; /* by each station, ACKs not counted */
	uint32_t capacity_kbps, limit_bytes; /* of the queue; 0: endless */
	uint32_t link_kbps; /* PHY rate to every station; 0: not known */
	bool own_queues; /* a station each, with a queue of its own, served in turn */
	uint64_t tick, lost, delivered, released[OAL_N_REWRITE_REASONS];
	uint64_t queue_sum_us, queue_n; /* since measure() */
	struct control *control;
	struct oal_policy policy;
	uint8_t class;
	bool shadow, obey; /* obey: clamps are carried out */
	uint32_t announced_bytes; /* by every client */
	uint8_t scale;
	unsigned sets, told;
	uint32_t least, most; /* of the windows */
};

static struct oal_policy normal(void)
{
	struct oal_policy p;

	oal_policy_defaults(&p);
	strcpy(p.name, "test");
	p.mode = OAL_POLICY_MODE_ENFORCE;
	p.act_class = 2;
	p.act_queue_us = 20000;
	p.target_us = 8000;
	p.target_txop_permille = 0;
	p.guard_permille = 50;
	return p;
}

static void begin(struct world *w, unsigned n, uint32_t capacity_kbps, const struct oal_policy *p)
{
	unsigned i;

	memset(w, 0, sizeof *w);
	w->n = n;
	w->wired_ticks = 3;
	w->air_ticks = 1;
	w->capacity_kbps = capacity_kbps;
	w->obey = true;
	w->announced_bytes = 4000000;
	w->least = UINT32_MAX;
	w->policy = *p;
	CHECK_EQ(control_new(&w->control, MOST, MOST), 0);
	control_policy(w->control, p);
	for (i = 0; i < n; i++)
		w->s[i] = (struct sender){ .on = true, .cwnd = 400000, .window = 4000000 };
}

static void obey(struct world *w, const struct control_action *a, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++) {
		CHECK(a[i].place < w->n);
		if (w->obey)
			w->s[a[i].place].clamp = a[i].window_bytes;
		if (!a[i].window_bytes)
			w->released[a[i].reason]++;
		else
			CHECK(a[i].window_bytes >= w->policy.floor_mss * MSS);
		if (a[i].window_bytes && a[i].window_bytes < w->least)
			w->least = a[i].window_bytes;
		if (a[i].window_bytes > w->most)
			w->most = a[i].window_bytes;
		w->sets++;
		w->told += a[i].report;
	}
}

static void step(struct world *w)
{
	struct control_station stations[MOST];
	struct control_flow flows[MOST];
	struct control_input in = {
		.t_us = 1000000000 + w->tick * TICK_US, .class = w->class, .shadow = w->shadow, .stations = stations,
		.flows = flows,
	};
	const struct control_action *actions;
	uint64_t backlog = 0;
	unsigned i, n;

	in.predicted_us = in.t_us;
	for (i = 0; i < w->n; i++) {
		const struct sender *s = &w->s[i];

		backlog += s->queued;
		if (w->own_queues || !i)
			stations[in.n_stations++] = (struct control_station){
				.mac = i + 1, .place = (uint16_t)i,
				.backlog_bytes = w->own_queues ? (uint32_t)s->queued : 0, .own_queues = w->own_queues,
				.rx_bytes = s->rx_bytes, .link_kbps = w->link_kbps,
			};
		if (s->on)
			flows[in.n_flows++] = (struct control_flow){
				.id = i + 1, .delivered_bytes = s->delivered,
				.unacked_bytes = (uint32_t)(s->at_ap - s->delivered), .rtt_down_us = s->srtt_down,
				.rtt_up_us = s->srtt_up, .place = (uint16_t)i,
				.station = w->own_queues ? (uint16_t)i : 0, .mss_bytes = MSS, .can_clamp = true,
				.announced_bytes = w->announced_bytes, .scale = w->scale,
			};
	}
	in.backlog_bytes = w->own_queues ? 0 : (uint32_t)backlog;
	n = control_step(w->control, &in, &actions);
	obey(w, actions, n);
}

/* A tick of the world: what is under way arrives, senders fill their windows, the queue drains in proportion to who is
 * in it. */
static void tick(struct world *w)
{
	const unsigned now = w->tick % RING;
	uint64_t room = (uint64_t)w->capacity_kbps * TICK_US / 8000, backlog = 0, left;
	unsigned i, busy = 0;

	for (i = 0; i < w->n; i++) {
		struct sender *s = &w->s[i];
		uint64_t window;

		s->acked += s->to_server[now];
		if (s->to_server[now])
			s->window = s->clamp ? s->clamp : 4000000; /* an ACK that passed the AP */
		s->delivered += s->to_air[now];
		s->to_server[(w->tick + w->wired_ticks) % RING] += s->to_air[now];
		s->at_ap += s->to_ap[now];
		s->queued += s->to_ap[now];
		s->to_server[now] = s->to_air[now] = s->to_ap[now] = 0;
		window = s->cwnd < s->window ? s->cwnd : s->window;
		if (s->on && s->sent - s->acked < window) {
			/* Pacing: a line rate of its own. */
			const uint64_t more = window - (s->sent - s->acked), most = room;

			s->sent += more < most ? more : most;
			s->to_ap[(w->tick + w->wired_ticks) % RING] += more < most ? more : most;
		}
		backlog += s->queued;
		busy += s->queued > 0;
		/* What the tracker measures. */
		s->srtt_up = 2 * w->wired_ticks * TICK_US;
	}
	w->queue_sum_us += w->capacity_kbps ? backlog * 8000 / w->capacity_kbps : 0;
	w->queue_n++;
	left = room < backlog ? room : backlog;
	w->delivered += left;
	for (i = 0; i < w->n && busy; i++) {
		struct sender *s = &w->s[i];
		const uint64_t mine = w->own_queues ? (s->queued < room / busy ? s->queued : room / busy)
		                      : backlog     ? left * s->queued / backlog
		                                    : 0;

		s->queued -= mine;
		s->to_air[(w->tick + w->air_ticks + w->station_ticks) % RING] += mine;
		s->rx_bytes += mine / 30 + (uint64_t)w->sent_kbps * TICK_US / 8000;
		s->srtt_down = w->air_ticks * TICK_US +
		               (uint32_t)(w->capacity_kbps ? (w->own_queues ? s->queued * busy : backlog) * 8000 /
		                                                     w->capacity_kbps
		                                           : 0);
	}
	w->tick++;
	if (w->tick % (w->policy.step_us / TICK_US) == 0)
		step(w);
}

static void run(struct world *w, unsigned ms)
{
	const uint64_t until = w->tick + ms * 1000 / TICK_US;

	while (w->tick < until)
		tick(w);
}

static void measure(struct world *w)
{
	w->delivered = w->queue_sum_us = w->queue_n = 0;
}

static unsigned used_permille(const struct world *w)
{
	return (unsigned)(w->delivered * 8000 / ((uint64_t)w->queue_n * TICK_US) * 1000 / w->capacity_kbps);
}

static unsigned queue_us(const struct world *w)
{
	return (unsigned)(w->queue_sum_us / w->queue_n);
}

static struct control_stats stats_of(const struct world *w)
{
	struct control_stats s;

	control_stats(w->control, &s);
	return s;
}

static void steady(bool own_queues)
{
	struct oal_policy p = normal();
	struct world w;
	unsigned plain;

	begin(&w, 3, 20000, &p);
	w.own_queues = own_queues;
	w.obey = false;
	run(&w, 3000);
	measure(&w);
	run(&w, 3000);
	plain = queue_us(&w);
	CHECK(used_permille(&w) >= 995);
	w.obey = true;
	run(&w, 3000);
	measure(&w);
	run(&w, 10000);
	printf("# queue %u us without, %u us with control, throughput %u permille of capacity, T %u us\n", plain,
	       queue_us(&w), used_permille(&w), stats_of(&w).target_us);
	CHECK(used_permille(&w) >= 980);
	CHECK(queue_us(&w) * 4 < plain);
	CHECK(queue_us(&w) < 3 * p.target_us);
	control_free(w.control);
}

static void steps(void)
{
	struct oal_policy p = normal();
	struct world w;
	unsigned i, down_us = 0;

	begin(&w, 3, 20000, &p);
	run(&w, 5000);
	for (i = 0; i < 6; i++) {
		w.capacity_kbps = i % 2 ? 20000 : 8000;
		run(&w, 500);
		measure(&w);
		run(&w, 2500);
		printf("# capacity %u kbit/s: queue %u us, throughput %u permille\n", w.capacity_kbps, queue_us(&w),
		       used_permille(&w));
		CHECK(used_permille(&w) >= 960);
		CHECK(queue_us(&w) < 30000);
		if (!(i % 2))
			down_us = queue_us(&w) > down_us ? queue_us(&w) : down_us;
	}
	control_free(w.control);
}

/* Four falls of a link to two fifths and back, in half seconds: the mean wait in those after a fall, and the part of
 * the capacity that is used in those after a rise. `told`: the PHY rate says so, too. */
static unsigned swinging(uint32_t link_follow_permille, bool told, bool own_queues, unsigned *used)
{
	struct oal_policy p = normal();
	unsigned i, wait_us = 0;
	struct world w;

	p.link_follow_permille = link_follow_permille;
	begin(&w, 3, 20000, &p);
	w.own_queues = own_queues;
	w.link_kbps = 65000;
	run(&w, 5000);
	for (i = *used = 0; i < 8; i++) {
		w.capacity_kbps = i % 2 ? 20000 : 8000;
		w.link_kbps = told && !(i % 2) ? 26000 : 65000;
		measure(&w);
		run(&w, 500);
		if (i % 2)
			*used += used_permille(&w) / 4;
		else
			wait_us += queue_us(&w) / 4;
	}
	control_free(w.control);
	return wait_us;
}

static void links(bool own_queues)
{
	unsigned used[4];
	const unsigned plain = swinging(0, true, own_queues, &used[0]);
	const unsigned half = swinging(500, true, own_queues, &used[1]);
	const unsigned all = swinging(1000, true, own_queues, &used[2]);
	const unsigned untold = swinging(1000, false, own_queues, &used[3]);

	printf("# links swing: wait %u us, half followed %u, followed %u; used %u, %u, %u permille\n", plain, half, all,
	       used[0], used[1], used[2]);
	CHECK(half < plain && all < half);
	CHECK(all * 4 < plain * 3);
	CHECK(used[2] >= used[0]);
	CHECK_EQ(untold, plain); /* a PHY rate that does not move changes nothing */
	CHECK_EQ(used[3], used[0]);
}

/* Rate control tries other rates: one sample in ten says a third less, and the link stays what it is. */
static void probing(void)
{
	struct oal_policy p = normal();
	unsigned i, wait_us[2], used[2];
	struct world w;

	for (i = 0; i < 2; i++) {
		unsigned k;

		p.link_follow_permille = i * 1000;
		begin(&w, 3, 20000, &p);
		w.own_queues = true;
		w.link_kbps = 65000;
		run(&w, 5000);
		measure(&w);
		for (k = 0; k < 500; k++) {
			w.link_kbps = k % 10 ? 65000 : 43300;
			run(&w, 20);
		}
		wait_us[i] = queue_us(&w);
		used[i] = used_permille(&w);
		control_free(w.control);
	}
	printf("# probes: wait %u us, followed %u us; used %u, %u permille\n", wait_us[0], wait_us[1], used[0],
	       used[1]);
	CHECK(used[1] + 10 >= used[0]);
	CHECK(wait_us[1] < wait_us[0] + wait_us[0] / 8);
}

/* A fall that the floor keeps from the window is owed: a link that comes back does not leave a larger one. */
static void owed(void)
{
	struct oal_policy p = normal();
	struct world w;
	uint32_t before;

	p.link_follow_permille = 1000;
	p.probe_permille = 0; /* only the link moves windows */
	p.guard_permille = 500;
	begin(&w, 2, 20000, &p);
	w.link_kbps = 60000;
	run(&w, 4000);
	before = w.s[0].clamp;
	CHECK(before > 5 * p.floor_mss * MSS);
	w.link_kbps /= 20;
	w.capacity_kbps /= 20;
	run(&w, 1000);
	CHECK(w.s[0].clamp < p.floor_mss * MSS * 9 / 8);
	w.link_kbps *= 20;
	w.capacity_kbps *= 20;
	run(&w, 1000);
	printf("# a window of %u bytes, and %u after its link came back\n", before, w.s[0].clamp);
	CHECK(w.s[0].clamp < before + before / 8 && w.s[0].clamp > before - before / 8);
	control_free(w.control);
}

static void comers(void)
{
	struct oal_policy p = normal();
	struct world w;

	begin(&w, 6, 20000, &p);
	w.s[3].on = w.s[4].on = w.s[5].on = false;
	run(&w, 4000);
	w.s[3].on = w.s[4].on = w.s[5].on = true;
	run(&w, 1500);
	measure(&w);
	run(&w, 3000);
	CHECK(used_permille(&w) >= 980);
	CHECK(queue_us(&w) < 30000);
	w.s[0].on = w.s[1].on = w.s[2].on = w.s[3].on = w.s[4].on = false;
	run(&w, 700);
	measure(&w);
	run(&w, 2000);
	printf("# one of six left: throughput %u permille, queue %u us\n", used_permille(&w), queue_us(&w));
	CHECK(used_permille(&w) >= 780); /* whole windows arrive in lumps here: nothing paces them */
	control_free(w.control);
}

/* Stations begin to send: their ACKs wait 40 ms behind their own data. Round trips look as if the access point's queue
 * stood; it is empty, and windows that follow round trips would leave the air to the uploads. */
static void uploads(bool own_queues)
{
	struct oal_policy p = normal();
	struct world w;

	p.guard_permille = 900; /* not the guard's doing */
	begin(&w, 2, 20000, &p);
	w.own_queues = own_queues;
	run(&w, 4000);
	w.station_ticks = 10;
	w.sent_kbps = 5000;
	run(&w, 4000);
	measure(&w);
	run(&w, 6000);
	printf("# stations send: throughput %u permille, queue %u us\n", used_permille(&w), queue_us(&w));
	CHECK(used_permille(&w) >= 970);
	CHECK(queue_us(&w) < 3 * p.target_us);
	control_free(w.control);
}

/* Air that takes longer than it used to, and a law that may not probe: windows are too small, the queue runs empty,
 * throughput falls. */
static void guarded(void)
{
	struct oal_policy p = normal();
	struct control_stats first;
	struct world w;

	p.probe_permille = 0;
	begin(&w, 3, 20000, &p);
	run(&w, 6000);
	CHECK(stats_of(&w).clamps == 3);
	w.air_ticks = 12;
	run(&w, 8000);
	first = stats_of(&w);
	CHECK(first.guard_reverts >= 1);
	CHECK(w.released[OAL_REWRITE_REASON_GUARD] >= 3);
	CHECK(first.guarded_until_us > 1000000000 + w.tick * TICK_US);
	CHECK_EQ(first.clamps, 0);
	measure(&w);
	run(&w, 1500);
	CHECK(used_permille(&w) >= 990);
	run(&w, 120000);
	printf("# %llu reverts in two minutes\n", (unsigned long long)stats_of(&w).guard_reverts);
	CHECK(stats_of(&w).guard_reverts <= 5); /* each one keeps away for twice as long as the last */
	control_free(w.control);
}

static void slower_links(void)
{
	struct oal_policy p = normal();
	struct world w;

	begin(&w, 3, 20000, &p);
	run(&w, 6000);
	w.capacity_kbps = 9000;
	run(&w, 30000);
	CHECK_EQ(stats_of(&w).guard_reverts, 0);
	CHECK(stats_of(&w).clamps == 3);
	control_free(w.control);
}

static void shadow(void)
{
	struct oal_policy p = normal();
	struct world w;

	p.probe_permille = 0;
	begin(&w, 3, 20000, &p);
	w.shadow = true;
	w.obey = false;
	run(&w, 6000);
	w.air_ticks = 12;
	w.capacity_kbps = 5000;
	run(&w, 20000);
	CHECK_EQ(stats_of(&w).guard_reverts, 0);
	control_free(w.control);
}

/* Half a megabit a second: what the sender needs is some 10 kB. Nothing obeys, so the law must not wait for an effect
 * and go on correcting. */
static void shadow_is_what_an_ack_would_say(void)
{
	struct oal_policy p = normal();
	struct world w;

	begin(&w, 2, 500, &p);
	w.shadow = true;
	w.obey = false;
	w.class = 3;
	w.scale = 7;
	run(&w, 20000);
	CHECK(w.sets > 0 && w.most <= 40000);
	CHECK_EQ(w.least % (1 << w.scale), 0);
	CHECK_EQ(w.most % (1 << w.scale), 0);
	/* Senders that use little of their share: a window that is never obeyed must not grow and grow. */
	w.s[0].cwnd = w.s[1].cwnd = 3000;
	w.capacity_kbps = 20000;
	w.most = 0;
	run(&w, 20000);
	CHECK(w.most <= 200000);
	printf("# in shadow: windows of %u to %u bytes\n", w.least, w.most);
	/* Clients that announce less than the law would: no ACK would change, and no row says so. */
	w.announced_bytes = p.floor_mss * MSS;
	run(&w, 1000);
	w.sets = w.most = 0;
	run(&w, 10000);
	CHECK_EQ(w.most, 0);
	CHECK_EQ(stats_of(&w).clamps, 0);
	/* And none where it is not known. */
	w.announced_bytes = 0;
	run(&w, 5000);
	CHECK_EQ(w.most, 0);
	control_free(w.control);
}

static void always_bad(void)
{
	struct oal_policy p = normal();
	struct world w;
	unsigned i;

	p.act_queue_us = 0;
	begin(&w, 5, 20000, &p);
	w.class = 3;
	for (i = 0; i < 5; i++)
		w.s[i].cwnd = 20000; /* the senders alone do not fill the path */
	run(&w, 2000);
	measure(&w);
	run(&w, 4000);
	CHECK(used_permille(&w) >= 900);
	for (i = 0; i < 5; i++)
		w.s[i].cwnd = 400000;
	run(&w, 3000);
	measure(&w);
	run(&w, 6000);
	printf("# always Bad: throughput %u permille, queue %u us\n", used_permille(&w), queue_us(&w));
	CHECK(used_permille(&w) >= 970);
	control_free(w.control);
}

static void reasons(void)
{
	struct oal_policy p = normal();
	struct world w;
	unsigned i;

	p.act_queue_us = 0;
	begin(&w, 3, 20000, &p);
	run(&w, 3000);
	CHECK_EQ(w.sets, 0); /* a queue alone is no reason here, and the class is Good */
	w.class = 1;
	run(&w, 500);
	CHECK_EQ(w.sets, 0);
	w.class = 2;
	run(&w, 500);
	CHECK(stats_of(&w).clamps == 3);
	w.class = 0;
	run(&w, 5000); /* the clamps bind: they stay */
	CHECK(stats_of(&w).clamps == 3);
	for (i = 0; i < 3; i++)
		w.s[i].cwnd = 8000; /* the senders send less by themselves */
	run(&w, 900 + p.hold_us / 1000);
	CHECK_EQ(stats_of(&w).clamps, 0);
	CHECK_EQ(w.released[OAL_REWRITE_REASON_RELEASED], 3);
	control_free(w.control);
}

static void few_rows(void)
{
	struct oal_policy p = normal();
	struct world w;
	unsigned sets, told;

	begin(&w, 3, 20000, &p);
	run(&w, 10000);
	sets = w.sets;
	told = w.told;
	run(&w, 10000);
	printf("# steady: %u sets and %u rows in 10 s\n", w.sets - sets, w.told - told);
	CHECK(w.sets - sets >= 3 * 10000000 / p.ttl_us); /* renewed in time */
	CHECK(w.told - told <= 60);
	control_free(w.control);
}

/* One step with one flow, by hand. */
static unsigned once_linked(struct control *c, uint64_t t_us, const struct control_flow *f, uint32_t link_kbps,
			    const struct control_action **a)
{
	const struct control_station s = { .mac = 1, .backlog_bytes = 200000, .link_kbps = link_kbps };
	const struct control_input in = {
		.t_us = t_us, .predicted_us = t_us, .class = 3, .stations = &s, .n_stations = 1, .flows = f,
		.n_flows = 1,
	};

	return control_step(c, &in, a);
}

static unsigned once(struct control *c, uint64_t t_us, const struct control_flow *f, const struct control_action **a)
{
	return once_linked(c, t_us, f, 0, a);
}

static void single_flow(struct control_flow f, const char *what, bool clamped)
{
	const struct control_action *a;
	struct oal_policy p = normal();
	struct control *c;
	unsigned i, set = 0;

	CHECK_EQ(control_new(&c, 4, 4), 0);
	control_policy(c, &p);
	for (i = 0; i < 50; i++) {
		f.delivered_bytes += 25000; /* 10 Mbit/s */
		set += once(c, 5000000 + i * 20000, &f, &a) > 0;
	}
	if ((set > 0) != clamped)
		printf("# %s\n", what);
	CHECK_EQ(set > 0, clamped);
	control_free(c);
}

static void left_alone(void)
{
	const struct control_flow good = {
		.id = 7, .unacked_bytes = 60000, .rtt_down_us = 30000, .rtt_up_us = 20000, .mss_bytes = MSS,
		.can_clamp = true,
	};
	struct control_flow f;

	single_flow(good, "an ordinary flow", true);
	f = good;
	f.can_clamp = false;
	single_flow(f, "its window scale is not known", false);
	f = good;
	f.rtt_up_us = f.rtt_down_us = f.unacked_bytes = 0;
	single_flow(f, "nothing is known of its round trip", false);
	f = good;
	f.station = CONTROL_NO_STATION;
	single_flow(f, "its station is not known, its path to the server is", true);
}

static void odd_input(void)
{
	const struct control_action *a;
	struct oal_policy p = normal();
	struct control_flow f = {
		.id = 1, .mss_bytes = MSS, .can_clamp = true, .rtt_down_us = UINT32_MAX, .rtt_up_us = UINT32_MAX,
		.unacked_bytes = UINT32_MAX,
	};
	struct control *c;
	unsigned round, i;

	CHECK_EQ(control_new(&c, 0, 1), -EINVAL);
	CHECK_EQ(control_new(&c, 1, 4097), -EINVAL);
	CHECK_EQ(control_new(&c, 2, 2), 0);
	srand(3);
	for (round = 0; round < 200; round++) { /* policies within their bounds, flows without any */
		for (i = 0; i < OAL_N_POLICY_FIELDS; i++)
			oal_policy_set(&p, i,
			               round % 3    ? oal_policy_fields[i].min +
			                                      (uint32_t)((uint64_t)rand() *
			                                                 (oal_policy_fields[i].max -
			                                                  (uint64_t)oal_policy_fields[i].min) /
			                                                 RAND_MAX)
			               : rand() % 2 ? oal_policy_fields[i].min
			                            : oal_policy_fields[i].max);
		control_policy(c, &p);
		for (i = 0; i < 40; i++) {
			f.delivered_bytes += rand() % 7 ? (uint64_t)rand() : UINT64_MAX / 3;
			f.place = (uint16_t)(rand() % 2);
			f.unacked_bytes = rand() % 3 ? UINT32_MAX : (uint32_t)rand() % 100000;
			once_linked(c, (uint64_t)round * 3000000 + (uint64_t)rand() % 3000000, &f,
				    rand() % 4 ? (uint32_t)rand() * 2 : UINT32_MAX, &a);
		}
	}
	control_release_all(c, OAL_REWRITE_REASON_KILLED, &a);
	CHECK_EQ(control_release_all(c, OAL_REWRITE_REASON_KILLED, &a), 0);
	control_free(c);
}

int main(void)
{
	test("one shared queue: a fraction of the delay at 98 % of the throughput");
	steady(false);
	test("a queue for each station: the same");
	steady(true);
	test("capacity that falls and rises is followed");
	steps();
	test("windows that follow their links: less wait after a fall, no less used after a rise; 0 follows nothing");
	links(false);
	links(true);
	test("a rate that is only probed costs next to nothing");
	probing();
	test("what the floor keeps from a window is owed when the link comes back");
	owed();
	test("flows that come and go leave neither a queue nor a hole");
	comers();
	test("stations that send keep their downloads: the wait of their ACKs is not the access point's");
	uploads(true);
	uploads(false);
	test("a clamp that costs throughput is taken back, and not tried again soon");
	guarded();
	test("links that became slower are not the clamps' fault");
	slower_links();
	test("in shadow there is nothing to take back");
	shadow();
	test("in shadow a window is what the next ACK would say, or nothing");
	shadow_is_what_an_ack_would_say();
	test("a tree that always says Bad costs no more than a tenth");
	always_bad();
	test("a class, not a rumour, is a reason to act; a clamp stays while it binds, and goes when it does not");
	reasons();
	test("a clamp that holds is renewed, and told once");
	few_rows();
	test("flows that cannot be judged are left alone");
	left_alone();
	test("no policy within its bounds and no counter makes it go wrong");
	odd_input();
	return done();
}
