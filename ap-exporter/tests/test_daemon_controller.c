/* The controller with a real pipeline, flow tracker, inference and bundle; only what rewrites packets is a list of
 * calls. */
#include "control/controller.h"

#include "base/json.h"
#include "base/json_read.h"
#include "wire/batch_decode.h"
#include "bundle_golden.h"
#include "feature/feature.h"
#include "packet/flow_table.h"
#include "control/control.h"
#include "control/decision.h"
#include "effect/effects.h"
#include "feature/feature_slot.h"
#include "mark/mark.h"
#include "model/inference.h"
#include "packet/packet.h"
#include "pipeline/pipeline.h"
#include "rewrite/rwnd.h"

#include <errno.h>
#include <unistd.h>

enum { TICK_US = 4000, MSS = 1448, MOST = 4096 };
static const uint64_t START_US = UINT64_C(1800000000000000);
static const char KILL_FILE[] = "build/test_controller.kill";

/* --- a data path that remembers: the linker takes these instead of rwnd.c's */

struct rwnd {
	int unused;
};
static struct rwnd data_path;
static struct {
	struct rwnd_flow flow;
	uint32_t bytes, ttl_ms;
	unsigned sets, releases, releases_all;
	unsigned in_force, more_seen;
	int answer;
	struct {
		struct rwnd_flow flow;
		uint32_t bytes;
		unsigned sets, releases;
	} way[RWND_DIRECTIONS];
} calls;

int rwnd_set(struct rwnd *r, const struct rwnd_flow *f, uint32_t bytes, uint32_t ttl_ms)
{
	CHECK(r == &data_path);
	calls.flow = *f;
	calls.bytes = bytes;
	calls.ttl_ms = ttl_ms;
	calls.sets++;
	calls.way[f->direction].flow = *f;
	calls.way[f->direction].bytes = bytes;
	calls.way[f->direction].sets++;
	return calls.answer;
}

int rwnd_release(struct rwnd *r, const struct rwnd_flow *f)
{
	calls.releases++;
	calls.way[f->direction].releases++;
	return 0;
}

void rwnd_release_all(struct rwnd *r)
{
	calls.releases_all++;
}

void rwnd_poll(struct rwnd *r, uint64_t now_us)
{
}

void rwnd_stats(struct rwnd *r, struct action_stats *s)
{
	*s = (struct action_stats){
		.packets_seen = 30 + calls.more_seen, .packets_changed = 20, .packets_skipped = 10,
		.in_force = calls.in_force,
	};
}

void rwnd_json(struct rwnd *r, struct json *t)
{
	json_add(t, "{}");
}

enum oal_rewrite_backend rwnd_backend(const struct rwnd *r)
{
	return OAL_REWRITE_BACKEND_BPF;
}

struct mark {
	int unused;
};
static struct mark marking;
static struct {
	struct mark_station station;
	uint8_t marks;
	uint32_t ttl_ms;
	unsigned sets, releases, releases_all;
} marked;

int mark_set(struct mark *m, const struct mark_station *s, uint8_t marks, uint32_t ttl_ms)
{
	CHECK(m == &marking);
	marked.station = *s;
	marked.marks = marks;
	marked.ttl_ms = ttl_ms;
	marked.sets++;
	return 0;
}

int mark_release(struct mark *m, const struct mark_station *s)
{
	marked.releases++;
	return 0;
}

void mark_release_all(struct mark *m)
{
	marked.releases_all++;
}

void mark_poll(struct mark *m, uint64_t now_us)
{
}

void mark_json(struct mark *m, struct json *t)
{
	json_add(t, "{}");
}

enum oal_rewrite_backend mark_backend(const struct mark *m)
{
	return OAL_REWRITE_BACKEND_BPF;
}

/* --- the access point */

static struct world {
	struct pipeline *pipeline;
	struct inference *inference, *second, *third; /* of three policies */
	struct controller *controller;
	struct golden_bundles golden, golden2; /* of format 1, and 2 */
	uint64_t due_us, ns;
	uint32_t seq, acked, up, up_acked; /* up: bytes that the client sent on the same connection */
	bool traffic, uploads, scale_known;
	unsigned n_rewrites, n_controls;
	struct oal_action_row rewrites[MOST];
	struct oal_control_row controls[MOST];
	uint64_t flow_id;
	uint8_t forced_class; /* 0: what the tree says */
} w;

static void on_batch(void *ctx, const struct batch_out *b)
{
	struct batch_flow_cursor flows;
	struct batch_flow flow;
	struct batch_cursor c;
	struct batch_view v;

	CHECK_EQ(batch_decode(&v, b->topic, b->bytes, b->len, "ap-1", b->t0_us), BATCH_OK);
	if (b->topic == OAL_TOPIC_PACKETS) {
		batch_flows(&flows, &v);
		if (batch_next_flow(&flows, &flow))
			w.flow_id = flow.flow_id;
	}
	if (b->topic != OAL_TOPIC_EVENTS)
		return;
	for (batch_rows(&c, &v, OAL_ACTION); w.n_rewrites < MOST && batch_next_row(&c, &w.rewrites[w.n_rewrites]);
	     w.n_rewrites++)
		;
	for (batch_rows(&c, &v, OAL_CONTROL); w.n_controls < MOST && batch_next_row(&c, &w.controls[w.n_controls]);
	     w.n_controls++)
		;
}

static void on_tick(void *ctx)
{
	decision_begin_tick(w.pipeline, w.inference);
	decision_begin_tick(w.pipeline, w.second);
	decision_begin_tick(w.pipeline, w.third);
}

static void on_tick_end(void *ctx, uint64_t t_us)
{
	if (w.controller)
		controller_tick(w.controller, t_us);
}

static void on_features(void *ctx, unsigned slot, const struct feature_vector *x)
{
	struct inference *f = slot == 2 ? w.third : slot ? w.second : w.inference;

	decision_make(w.pipeline, f, x);
	if (w.forced_class) /* the golden trees find no congestion in this traffic */
		((struct inference_last *)inference_last(f))->verdict.class = w.forced_class;
}

static void on_wake(void *ctx)
{
}

static uint64_t now_ns(void)
{
	return w.ns += 1000;
}

static void begin(enum oal_policy_mode ceiling, bool with_data_path)
{
	const struct pipeline_config c = {
		.ap_id = "ap-1", .site = "lab", .boot_id = 1, .program = &oal_feature_congestion, .now_ns = now_ns,
		.emit = on_batch,
		.consumer = { .begin_tick = on_tick, .features = on_features, .end_tick = on_tick_end },
	};
	struct feature_space spaces[OAL_N_TABLES];
	struct controller_config config = {
		.ceiling = ceiling, .kill_file = KILL_FILE, .monotonic_ns = now_ns, .mark_ceiling = ceiling,
		.rwnd = with_data_path ? &data_path : NULL, .mark = with_data_path ? &marking : NULL,
	};
	struct golden_bundles golden = w.golden, golden2 = w.golden2;

	unlink(KILL_FILE);
	memset(&w, 0, sizeof w);
	memset(&calls, 0, sizeof calls);
	memset(&marked, 0, sizeof marked);
	w.golden = golden;
	w.golden2 = golden2;
	w.due_us = START_US;
	w.traffic = w.scale_known = true;
	CHECK_EQ(pipeline_new(&w.pipeline, &c), 0);
	pipeline_feature_spaces(w.pipeline, spaces);
	w.inference = inference_new(
		&(struct inference_config){ pipeline_slot(w.pipeline, 0), spaces, now_ns, on_wake, NULL });
	config.pipeline = w.pipeline;
	w.second = inference_new(
		&(struct inference_config){ pipeline_slot(w.pipeline, 1), spaces, now_ns, on_wake, NULL });
	w.third = inference_new(
		&(struct inference_config){ pipeline_slot(w.pipeline, 2), spaces, now_ns, on_wake, NULL });
	config.inferences[0] = w.inference;
	config.inferences[1] = w.second;
	config.inferences[2] = w.third;
	CHECK_EQ(controller_new(&w.controller, &config), 0);
}

static void end(void)
{
	controller_free(w.controller);
	w.controller = NULL;
	pipeline_flush(w.pipeline);
	inference_free(w.inference);
	inference_free(w.second);
	inference_free(w.third);
	pipeline_free(w.pipeline);
	unlink(KILL_FILE);
}

static void offer_to(struct inference *f, const struct golden_bundles *golden, const char *name)
{
	const struct golden_case *g = golden_find(golden, name);
	struct candidate *c = calloc(1, sizeof *c);
	const struct bundle_terms terms = { .ap_id = "ap-1", .site = "lab" };
	char err[256] = "";

	CHECK_EQ(bundle_open(&c->bundle, g->bytes, g->len, &terms, NULL, err, sizeof err), OAL_BUNDLE_REASON_NONE);
	c->feature_hash = feature_program_id(bundle_program(c->bundle));
	c->status = (struct oal_bundle_status_row){
		.bundle = bundle_head(c->bundle)->id, .source = 1, .version = 5, .state = OAL_BUNDLE_STATE_APPLIED,
	};
	if (c->feature_hash != pipeline_slot(w.pipeline, f == w.third ? 2 : f == w.second)->program_id)
		CHECK_EQ(candidate_features_new(&c->features, f, bundle_program(c->bundle)), 0);
	inference_offer(f, c);
}

static void offer(const char *name)
{
	offer_to(w.inference, &w.golden, name);
}

static void packet(unsigned direction, uint8_t flags, uint32_t payload, uint64_t t_us)
{
	struct packet p = {
		.t_us = t_us, .direction = (uint8_t)direction, .addr_len = 4, .flags = flags,
		.seq = direction ? 500 + w.up : w.seq, .ack = direction ? w.acked : 500 + w.up_acked,
		.payload_bytes = (uint16_t)payload,
		.window_raw = 4000, .src_port = direction ? 40000 : 443, .dst_port = direction ? 443 : 40000,
		.src_mac = direction ? 2 : 9, .dst_mac = direction ? 9 : 2,
	};

	memcpy(direction ? p.src : p.dst, "\x0a\x00\x00\x05", 4);
	memcpy(direction ? p.dst : p.src, "\x0a\x00\x00\x01", 4);
	if (flags & PACKET_SYN) {
		p.syn_options = PACKET_SYN_WSCALE | PACKET_SYN_MSS;
		p.wscale = direction ? 7 : 9;
		p.mss_bytes = 1460;
		p.seq = direction ? 499 : w.seq - 1;
	}
	pipeline_packet(w.pipeline, &p);
}

/* About 12 Mbit/s to one client whose queue never empties. */
static void ticks(unsigned n)
{
	for (; n; n--, w.due_us += TICK_US) {
		const struct oal_station_row station = {
			.mac = 2, .device = pipeline_name(w.pipeline, "wlan0"), .interval_ticks = 1,
			.tx_airtime_us = (w.due_us - START_US) / 2, .tx_bytes = (w.due_us - START_US) * 3 / 2,
		};
		const struct oal_queue_row queue = {
			.device = station.device, .handle = 1, .parent = UINT32_MAX,
			.kind = pipeline_name(w.pipeline, "pfifo"), .backlog_bytes = 120000,
		};
		unsigned i;

		if (!w.seq) {
			w.seq = w.acked = 1000;
			if (w.scale_known) {
				packet(1, PACKET_SYN, 0, w.due_us - 3000);
				packet(0, PACKET_SYN | PACKET_ACK, 0, w.due_us - 2500);
			}
			packet(1, PACKET_ACK, 0, w.due_us - 2000);
		}
		for (i = 0; w.traffic && i < 4; i++) {
			packet(0, PACKET_ACK, MSS, w.due_us - 1500 + i * 100);
			w.seq += MSS;
		}
		if (w.traffic && w.seq - w.acked > 30 * MSS) {
			w.acked += 4 * MSS;
			packet(1, PACKET_ACK, 0, w.due_us - 1000);
		}
		if (w.uploads) {
			packet(1, PACKET_ACK, MSS, w.due_us - 900);
			w.up += MSS;
		}
		if (w.uploads && w.up - w.up_acked > 10 * MSS) {
			w.up_acked += 2 * MSS;
			packet(0, PACKET_ACK, 0, w.due_us - 800);
		}
		pipeline_tick(w.pipeline, w.due_us, 0, 0);
		pipeline_row(w.pipeline, OAL_STATION, &station);
		pipeline_row(w.pipeline, OAL_QUEUE, &queue);
	}
}

static const struct oal_control_row *latest(void)
{
	CHECK(w.n_controls > 0);
	return &w.controls[w.n_controls - 1];
}

static void enforce(void)
{
	const struct oal_action_row *r;

	begin(OAL_POLICY_MODE_ENFORCE, true);
	ticks(100);
	CHECK_EQ(calls.sets, 0); /* no bundle, nothing to follow */
	offer("ok_policy_enforce");
	ticks(500);
	CHECK(calls.sets > 0);
	CHECK_EQ(memcmp(calls.flow.client_addr, "\x0a\x00\x00\x05", 4), 0);
	CHECK_EQ(memcmp(calls.flow.server_addr, "\x0a\x00\x00\x01", 4), 0);
	CHECK_EQ(calls.flow.client_port, 40000);
	CHECK_EQ(calls.flow.server_port, 443);
	CHECK_EQ(calls.flow.addr_len, 4);
	CHECK_EQ(calls.flow.scale, 7); /* the client's, not the server's */
	CHECK_EQ(calls.flow.mss_bytes, 1448);
	CHECK(calls.ttl_ms >= 100 && calls.ttl_ms <= RWND_MAX_TTL_MS);
	CHECK(calls.bytes >= 4 * 1448);
	ticks(200);
	CHECK(w.n_rewrites > 0);
	r = &w.rewrites[0];
	CHECK_EQ(r->subject, w.flow_id & INT64_MAX); /* as packets and flows name it */
	CHECK_EQ(r->backend, OAL_REWRITE_BACKEND_BPF);
	CHECK_EQ(r->mac, 2);
	CHECK(r->reason == OAL_REWRITE_REASON_QUEUE || r->reason == OAL_REWRITE_REASON_CLASS);
	CHECK(r->value > 0 && r->rate_kbps > 1000 && r->queue_us > 10000 && r->capacity_kbps > 1000);
	CHECK_EQ(latest()->mode, OAL_POLICY_MODE_ENFORCE);
	CHECK_EQ(latest()->clamps, 1);
	CHECK_EQ(latest()->acks_clamped, 20);
	CHECK_EQ(latest()->set_errors, 0);
	end();
}

static void least_of_all(enum oal_policy_mode ceiling, bool data_path_there, const char *bundle,
                         enum oal_policy_mode expected)
{
	begin(ceiling, data_path_there);
	offer(bundle);
	ticks(800);
	CHECK_EQ(latest()->mode, expected);
	CHECK_EQ(calls.sets > 0, expected == OAL_POLICY_MODE_ENFORCE);
	CHECK_EQ(w.n_rewrites > 0, expected != OAL_POLICY_MODE_OFF);
	if (expected == OAL_POLICY_MODE_SHADOW)
		CHECK_EQ(w.rewrites[0].backend, OAL_REWRITE_BACKEND_SHADOW);
	end();
}

/* A policy that enforces, with a window in force. */
static void enforcing(void)
{
	begin(OAL_POLICY_MODE_ENFORCE, true);
	offer("ok_policy_enforce");
	ticks(500);
	CHECK(calls.sets > 0 && !calls.releases);
}

/* What was in force ends within a tick, and nothing is set any more, because of a kill. */
static void ended_by_kill(void)
{
	const unsigned sets = calls.sets;

	ticks(1);
	CHECK_EQ(calls.releases, 1);
	CHECK_EQ(calls.releases_all, 1);
	ticks(400);
	CHECK_EQ(calls.sets, sets);
	CHECK_EQ(w.rewrites[w.n_rewrites - 1].reason, OAL_REWRITE_REASON_KILLED);
	CHECK_EQ(w.rewrites[w.n_rewrites - 1].value, 0);
	CHECK_EQ(latest()->mode, OAL_POLICY_MODE_OFF);
}

/* One policy of several: the others go on, and the AP does not say that all of its control is off. */
static void policy_killed(void)
{
	_Atomic uint32_t *killed_policies;
	unsigned sets;

	enforcing();
	killed_policies = inference_flags(w.inference)->killed_policies;
	atomic_store(&killed_policies[0], agent_flags_name("mark"));
	ticks(20);
	CHECK(!calls.releases && latest()->mode == OAL_POLICY_MODE_ENFORCE);
	atomic_store(&killed_policies[OAL_SETTING_MAX_KILLED_POLICIES - 1], agent_flags_name("rwnd-fair"));
	ended_by_kill();
	sets = calls.sets;
	CHECK_EQ(latest()->killed, 0);
	atomic_store(&killed_policies[OAL_SETTING_MAX_KILLED_POLICIES - 1], 0);
	ticks(500);
	CHECK(calls.sets > sets);
	atomic_store(&killed_policies[0], 0);
	end();
}

static void killed(bool by_service)
{
	unsigned sets;

	enforcing();
	sets = calls.sets;
	if (by_service)
		atomic_store(&inference_flags(w.inference)->killed, true);
	else
		fclose(fopen(KILL_FILE, "w"));
	ended_by_kill();
	CHECK_EQ(latest()->killed, 1);
	if (by_service)
		atomic_store(&inference_flags(w.inference)->killed, false);
	else
		unlink(KILL_FILE);
	ticks(500);
	CHECK(calls.sets > sets);
	CHECK_EQ(latest()->killed, 0);
	end();
}

static bool alarmed(void)
{
	char text[512];
	const size_t len = controller_alarm(w.controller, text, sizeof text);

	CHECK_EQ(len, strlen(text));
	if (len)
		CHECK(strstr(text, "control acts on nothing: 3 clamps in force") != NULL);
	return len > 0;
}

static void acts_on_nothing(void)
{
	begin(OAL_POLICY_MODE_ENFORCE, true);
	offer("ok_policy_enforce");
	ticks(2500); /* no clamp: ten seconds in which nothing is expected of ACKs */
	CHECK(!alarmed());
	calls.in_force = 3;
	ticks(750);
	CHECK(!alarmed());
	calls.in_force = 0; /* these seconds say nothing, either way */
	ticks(1500);
	CHECK(!alarmed());
	calls.in_force = 3;
	ticks(750);
	CHECK(alarmed());
	calls.in_force = 0; /* with nothing in force it is not known to be over */
	ticks(500);
	CHECK(alarmed());
	calls.in_force = 3;
	calls.more_seen = 1;
	ticks(260);
	CHECK(!alarmed());
	ticks(1600);
	CHECK(alarmed());
	controller_rwnd(w.controller, NULL);
	CHECK(!alarmed());
	ticks(1600);
	CHECK(!alarmed());
	end();
}

static void bypassed_station(void)
{
	struct pipeline_stats stats;
	unsigned sets, rewrites;

	begin(OAL_POLICY_MODE_ENFORCE, true);
	offer("ok_policy_enforce");
	ticks(500);
	CHECK(calls.sets > 0 && !calls.releases);
	CHECK(!pipeline_station_bypassed(w.pipeline, 2));
	pipeline_station_set_bypassed(w.pipeline, 3, true); /* nobody's */
	CHECK(!pipeline_station_bypassed(w.pipeline, 3));
	pipeline_station_set_bypassed(w.pipeline, 2, true);
	pipeline_stats(w.pipeline, &stats);
	CHECK_EQ(stats.stations_bypassed, 1);
	ticks(10);
	CHECK_EQ(calls.releases, 1); /* at the next step */
	sets = calls.sets;
	ticks(500);
	rewrites = w.n_rewrites;
	CHECK_EQ(calls.sets, sets);
	CHECK_EQ(latest()->clamps, 0);
	CHECK_EQ(latest()->mode, OAL_POLICY_MODE_ENFORCE); /* of the others */
	CHECK_EQ(w.rewrites[rewrites - 1].value, 0);
	pipeline_station_set_bypassed(w.pipeline, 2, false);
	pipeline_stats(w.pipeline, &stats);
	CHECK_EQ(stats.stations_bypassed, 0);
	ticks(500);
	CHECK(calls.sets > sets);
	CHECK_EQ(latest()->clamps, 1);
	end();
}

static void failing(void)
{
	begin(OAL_POLICY_MODE_ENFORCE, true);
	calls.answer = -ENOTCONN;
	offer("ok_policy_enforce");
	ticks(800);
	CHECK(latest()->set_errors > 0);
	CHECK(w.n_rewrites > 0);
	CHECK_EQ(w.rewrites[0].reason, OAL_REWRITE_REASON_FAILED);
	CHECK_EQ(w.rewrites[0].value, 0);
	end();
}

static void unknown_scale(void)
{
	begin(OAL_POLICY_MODE_ENFORCE, true);
	w.scale_known = false;
	offer("ok_policy_enforce");
	ticks(800);
	CHECK_EQ(calls.sets, 0);
	CHECK_EQ(latest()->clamps, 0);
	end();
}

static void silence(void)
{
	unsigned sets;

	begin(OAL_POLICY_MODE_ENFORCE, true);
	offer("ok_policy_enforce");
	ticks(500);
	w.traffic = false;
	ticks(400);
	sets = calls.sets;
	ticks(400);
	CHECK_EQ(calls.sets, sets);
	CHECK_EQ(latest()->clamps, 0);
	CHECK_EQ(w.rewrites[w.n_rewrites - 1].value, 0);
	end();
}

static void changed_path(void)
{
	begin(OAL_POLICY_MODE_ENFORCE, true);
	offer("ok_policy_enforce");
	ticks(500);
	CHECK(calls.sets > 0);
	controller_rwnd(w.controller, NULL);
	ticks(500);
	CHECK_EQ(latest()->mode, OAL_POLICY_MODE_SHADOW);
	controller_rwnd(w.controller, &data_path);
	calls.sets = 0;
	ticks(500);
	CHECK_EQ(latest()->mode, OAL_POLICY_MODE_ENFORCE);
	CHECK(calls.sets > 0);
	end();
}

static void law_of_the_bundle(void)
{
	const struct oal_action_row *r;

	begin(OAL_POLICY_MODE_ENFORCE, true);
	offer("ok_policy_enforce");
	ticks(500);
	CHECK(calls.sets > 0);
	offer_to(w.inference, &w.golden2, "ok_direct_enforce"); /* values 0, 0, 60000, 30000 */
	ticks(100);
	CHECK(calls.releases > 0); /* what the other law had set */
	calls.sets = 0;
	ticks(400);
	CHECK_EQ(inference_last(w.inference)->verdict.class, 0);
	CHECK_EQ(calls.sets, 0);
	w.forced_class = 2;
	ticks(100);
	CHECK_EQ(calls.bytes, 60000);
	w.forced_class = 3;
	ticks(400);
	CHECK_EQ(calls.bytes, 30000);
	r = &w.rewrites[w.n_rewrites - 1];
	CHECK_EQ(r->value, 30000);
	CHECK_EQ(r->reason, OAL_REWRITE_REASON_CLASS);
	CHECK_EQ(r->class, 3);
	calls.releases = 0;
	w.forced_class = 0;
	offer("ok_policy_enforce");
	ticks(500);
	CHECK(calls.releases > 0);
	CHECK(calls.bytes != 30000);
	end();
}

/* Rows of a policy from `from` on. */
static unsigned rows_of(const char *policy, unsigned from)
{
	unsigned i, n = 0;

	for (i = from; i < w.n_rewrites; i++)
		n += !strcmp(pipeline_name_of(w.pipeline, w.rewrites[i].policy), policy);
	return n;
}

static void side_by_side(void)
{
	unsigned before, n_second;

	begin(OAL_POLICY_MODE_ENFORCE, true);
	offer("ok_policy_enforce");
	offer_to(w.second, &w.golden2, "ok_direct_enforce");
	w.forced_class = 3;
	ticks(800);
	CHECK(rows_of("rwnd-fair", 0) > 0);
	CHECK_EQ(inference_in_force(w.second) != NULL, 1);
	CHECK(inference_last(w.second)->number > 0); /* its own program, its own verdicts */
	CHECK(inference_last(w.second)->verdict.bundle != inference_last(w.inference)->verdict.bundle);
	n_second = rows_of("example", 0);
	CHECK(n_second > 0);
	inference_withdraw(w.second);
	ticks(2);
	CHECK_EQ(inference_in_force(w.second) != NULL, 0);
	before = w.n_rewrites;
	ticks(400);
	CHECK(rows_of("example", before) <= 1); /* that it was given up */
	CHECK_EQ(pipeline_slot(w.pipeline, 1)->running != NULL, 0);
	CHECK_EQ(latest()->mode, OAL_POLICY_MODE_ENFORCE); /* the first goes on */
	inference_reclaim(w.second);
	offer_to(w.second, &w.golden2, "ok_direct_enforce");
	before = w.n_rewrites;
	ticks(800);
	CHECK(rows_of("example", before) > 0); /* and it may come back */
	end();
}

/* Is the status a JSON document, and how many policies does it name? */
static unsigned policies_in_status(void)
{
	char text[4096], name[64];
	struct json t = { .buf = text, .size = sizeof text };
	struct json_reader r;
	unsigned n = 0;

	controller_json(w.controller, &t);
	json_read_begin(&r, text, json_len(&t));
	if (json_read_object(&r))
		while (json_read_member(&r, name, sizeof name)) {
			if (strcmp(name, "policies") || !json_read_object(&r)) {
				json_read_skip(&r);
				continue;
			}
			for (; json_read_member(&r, name, sizeof name); n++)
				json_read_skip(&r);
		}
	CHECK(json_read_end(&r));
	return n;
}

static const struct oal_action_row *last_of(const char *policy)
{
	unsigned i = w.n_rewrites;

	while (i--)
		if (!strcmp(pipeline_name_of(w.pipeline, w.rewrites[i].policy), policy))
			return &w.rewrites[i];
	CHECK(!"there is a row");
	return &w.rewrites[0];
}

static void marks_of_stations(void)
{
	const struct oal_action_row *r;
	unsigned sets;

	begin(OAL_POLICY_MODE_ENFORCE, true);
	offer_to(w.second, &w.golden2, "ok_mark");
	ticks(500);
	CHECK_EQ(calls.sets, 0); /* windows are another policy's */
	CHECK(marked.sets > 0);
	CHECK_EQ(memcmp(marked.station.mac, "\0\0\0\0\0\2", 6), 0);
	CHECK_EQ(marked.station.interval_us, 100000);
	CHECK_EQ(marked.marks, MARK_ALL);
	CHECK(marked.ttl_ms >= 100 && marked.ttl_ms <= MARK_MAX_TTL_MS);
	r = last_of("mark");
	CHECK(r->kind == OAL_ACTION_KIND_MARK && r->subject == 2 && r->mac == 2);
	CHECK(r->value > 0 && r->reason == OAL_REWRITE_REASON_QUEUE);
	CHECK(r->backend == OAL_REWRITE_BACKEND_BPF);
	CHECK(r->queue_us > 15000 && r->rate_kbps > 10000);
	CHECK_EQ(latest()->mode, OAL_POLICY_MODE_ENFORCE);
	CHECK_EQ(latest()->clamps, 1);
	offer("ok_policy_enforce"); /* side by side */
	ticks(500);
	CHECK(calls.sets > 0);
	sets = marked.sets;
	fclose(fopen(KILL_FILE, "w"));
	ticks(1);
	CHECK_EQ(marked.releases, 1);
	CHECK_EQ(marked.releases_all, 1);
	ticks(100);
	CHECK_EQ(marked.sets, sets);
	r = last_of("mark");
	CHECK(r->reason == OAL_REWRITE_REASON_KILLED && !r->value);
	unlink(KILL_FILE);
	ticks(500);
	CHECK(marked.sets > sets);
	controller_mark(w.controller, NULL);
	sets = marked.sets;
	ticks(500);
	CHECK_EQ(marked.sets, sets);
	CHECK_EQ(last_of("mark")->backend, OAL_REWRITE_BACKEND_SHADOW);
	CHECK_EQ(last_of("rwnd-fair")->backend, OAL_REWRITE_BACKEND_BPF); /* windows go on */
	CHECK_EQ(policies_in_status(), 2);
	end();
	begin(OAL_POLICY_MODE_SHADOW, true);
	offer_to(w.second, &w.golden2, "ok_mark");
	ticks(800);
	CHECK_EQ(marked.sets, 0);
	CHECK_EQ(last_of("mark")->backend, OAL_REWRITE_BACKEND_SHADOW);
	CHECK_EQ(latest()->mode, OAL_POLICY_MODE_SHADOW);
	end();
}

static void both_ways(void)
{
	struct inference_stats decided;
	const struct oal_action_row *r;

	begin(OAL_POLICY_MODE_ENFORCE, true);
	w.uploads = true;
	offer("ok_policy_enforce");
	offer_to(w.second, &w.golden2, "ok_cap");
	ticks(1000);
	CHECK(calls.way[RWND_UP].sets && calls.way[RWND_DOWN].sets);
	CHECK_EQ(calls.way[RWND_UP].flow.scale, 7); /* the client's windows: a download is held back */
	CHECK_EQ(calls.way[RWND_DOWN].flow.scale, 9); /* the server's: an upload is */
	CHECK_EQ(calls.way[RWND_DOWN].flow.mss_bytes, 1448);
	CHECK_EQ(memcmp(calls.way[RWND_DOWN].flow.client_addr, "\x0a\x00\x00\x05", 4), 0);
	CHECK(calls.way[RWND_UP].bytes != calls.way[RWND_DOWN].bytes); /* each its own, and no minimum of the two */
	r = last_of("uplink-cap");
	CHECK(r->kind == OAL_ACTION_KIND_RWND && r->class == CONTROL_NO_CLASS);
	CHECK(r->value > 0 && r->reason == OAL_REWRITE_REASON_QUEUE);
	CHECK(r->queue_us > 25000 && r->rate_kbps > 1000);
	inference_stats(w.second, &decided);
	CHECK(!decided.decisions && !decided.undecided); /* there is nothing to decide */
	w.uploads = false; /* it is given up; the download's goes on */
	ticks(600);
	CHECK(calls.way[RWND_DOWN].releases == 1 && !calls.way[RWND_UP].releases);
	w.uploads = true;
	ticks(1000);
	fclose(fopen(KILL_FILE, "w"));
	ticks(1);
	CHECK(calls.way[RWND_DOWN].releases == 2 && calls.way[RWND_UP].releases == 1);
	unlink(KILL_FILE);
	end();
	begin(OAL_POLICY_MODE_SHADOW, true);
	w.uploads = true;
	offer_to(w.second, &w.golden2, "ok_cap");
	ticks(1000);
	CHECK_EQ(calls.sets, 0);
	CHECK_EQ(last_of("uplink-cap")->backend, OAL_REWRITE_BACKEND_SHADOW);
	end();
	begin(OAL_POLICY_MODE_ENFORCE, true);
	w.uploads = true;
	w.scale_known = false;
	offer_to(w.second, &w.golden2, "ok_cap");
	ticks(1000);
	CHECK_EQ(calls.sets, 0);
	end();
}

static void without_the_first(void)
{
	begin(OAL_POLICY_MODE_ENFORCE, false);
	ticks(200);
	CHECK_EQ(policies_in_status(), 0);
	offer_to(w.third, &w.golden2, "ok_direct_enforce");
	ticks(200);
	CHECK_EQ(policies_in_status(), 1);
	offer_to(w.second, &w.golden2, "ok_direct_enforce");
	ticks(200);
	CHECK_EQ(policies_in_status(), 2);
	offer("ok_policy_enforce");
	ticks(200);
	CHECK_EQ(policies_in_status(), 3);
	end();
}

static void composed(void)
{
	const struct mark_station station = { .mac = { 2 } };
	const struct rwnd_flow flow = { .client_port = 1 };
	const struct effects_subject f = {.place = 3, .id = 7, .key = &flow},
				     other = {.place = 3, .id = 8, .key = &flow};
	struct effects e = { .self = &data_path };

	memset(&calls, 0, sizeof calls);
	CHECK_EQ(effects_new(&e, &effects_rwnd, 8), 0);
	effects_want(&e, 0, &f, 50000, 500000, 1000000);
	CHECK(calls.bytes == 50000 && calls.ttl_ms == 500);
	effects_want(&e, 1, &f, 20000, 300000, 1000000);
	CHECK(calls.bytes == 20000 && calls.ttl_ms == 300);
	effects_want(&e, 0, &f, 60000, 500000, 1100000);
	CHECK(calls.bytes == 20000 && calls.ttl_ms == 200); /* the smaller wish, at its own time */
	effects_want(&e, 0, &f, 10000, 500000, 1100000);
	CHECK_EQ(calls.bytes, 10000);
	effects_want(&e, 0, &f, 0, 0, 1200000);
	CHECK(calls.bytes == 20000 && calls.ttl_ms == 100 && !calls.releases); /* as long as that wish lasts */
	effects_want(&e, 0, &f, 60000, 500000, 1400000);
	CHECK_EQ(calls.bytes, 60000); /* the other's time is over */
	effects_want(&e, 0, &f, 0, 0, 1500000);
	CHECK_EQ(calls.releases, 1);
	effects_want(&e, 1, &f, 20000, 300000, 1600000);
	effects_want(&e, 0, &other, 50000, 500000, 1600000);
	CHECK_EQ(calls.bytes, 50000); /* another flow at the same place */
	effects_want(&e, 1, &other, 20000, 500000, 1600000);
	effects_give_up(&e, 1, false);
	CHECK_EQ(calls.releases_all, 0);
	effects_want(&e, 0, &other, 50000, 500000, 1600000);
	CHECK_EQ(calls.bytes, 50000);
	effects_give_up(&e, 0, true);
	CHECK_EQ(calls.releases_all, 1);
	effects_free(&e);
	memset(&marked, 0, sizeof marked);
	e = (struct effects){ .self = &marking };
	CHECK_EQ(effects_new(&e, &effects_mark, 8), 0);
	effects_want(&e, 0, &(struct effects_subject){3, 7, &station}, MARK_ECT1, 500000, 1000000);
	CHECK(marked.marks == MARK_ECT1 && marked.ttl_ms == 500);
	effects_want(&e, 1, &(struct effects_subject){3, 7, &station}, MARK_ECT0, 300000, 1000000);
	CHECK(marked.marks == MARK_ALL && marked.ttl_ms == 300); /* both, no longer than either */
	effects_want(&e, 0, &(struct effects_subject){3, 7, &station}, 0, 0, 1100000);
	CHECK(marked.marks == MARK_ECT0 && marked.ttl_ms == 200);
	effects_want(&e, 1, &(struct effects_subject){3, 7, &station}, 0, 0, 1100000);
	CHECK_EQ(marked.releases, 1);
	effects_free(&e);
}

int main(void)
{
	golden_read(&w.golden, "bundles");
	golden_read(&w.golden2, "bundles2");
	test("a policy that enforces, on an AP that may: windows are set, with the client's scale, and told with their "
	     "numbers");
	enforce();
	test("in force is the least of policy, the AP's ceiling and what can be carried out");
	least_of_all(OAL_POLICY_MODE_ENFORCE, true, "ok_policy_enforce", OAL_POLICY_MODE_ENFORCE);
	least_of_all(OAL_POLICY_MODE_ENFORCE, false, "ok_policy_enforce", OAL_POLICY_MODE_SHADOW);
	least_of_all(OAL_POLICY_MODE_SHADOW, true, "ok_policy_enforce", OAL_POLICY_MODE_SHADOW);
	least_of_all(OAL_POLICY_MODE_OFF, true, "ok_policy_enforce", OAL_POLICY_MODE_OFF);
	least_of_all(OAL_POLICY_MODE_ENFORCE, true, "ok_policy_off", OAL_POLICY_MODE_OFF);
	test("the push service's kill switch ends every clamp within a tick, and lets them come back");
	killed(true);
	test("so does the file on the AP");
	killed(false);
	test("a kill of one policy ends that one's within a tick, and no other's");
	policy_killed();
	test("clamps that not one ACK meets for five seconds are an alarm in words, until one does or control is off");
	acts_on_nothing();

	test("flows of a station whose packets pass the tap by are released and left alone, until it sees them again");
	bypassed_station();

	test("a data path that fails is counted and told, and harms nothing");
	failing();
	test("a flow whose SYN was missed is left alone");
	unknown_scale();
	test("a flow that fell silent is given up");
	silence();
	test("a data path that goes is shadow, one that comes is used");
	changed_path();
	test("the law is the bundle's: clamps of the one before are given up, and its values are set");
	law_of_the_bundle();
	test("two policies run side by side, each with its program, verdicts and rows; one is given up, and comes "
	     "back");
	side_by_side();
	test("a policy about stations marks them by their wait, beside one about flows, with rows of its own kind; the "
	     "kill switch, shadow and a data path that goes hold for it too");
	marks_of_stations();
	test("a policy about uploads, without a model, lowers the server's windows in the server's scale, beside one "
	     "about downloads on the same connection; unknown scale, shadow and kill as there");
	both_ways();
	test("the status is JSON whichever of the policies have a bundle");
	without_the_first();
	test("of the windows that policies want for a flow the smallest is set, of marks of a station all, for as long "
	     "as somebody wants it");
	composed();
	golden_free(&w.golden);
	golden_free(&w.golden2);
	return done();
}
