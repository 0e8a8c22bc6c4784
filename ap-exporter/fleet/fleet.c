#include "fleet.h"

#include "agent/ap.h"
#include "base/clock.h"
#include "ship/kafka_producer.h"
#include "masters.h"
#include "oal_features.h"
#include "replay/replay.h"
#include "base/config.h"
#include "restamp.h"
#include "base/version.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define BATCH_US ((uint64_t)OAL_SETTING_BATCH_TICKS * OAL_SETTING_TICK_US)
enum { MOST_MESSAGES = 1000000 /* buffer_kb is the limit that counts */ };
/* Batches of the one AP that some APs are still to send: their phases span one batch, in which it makes some three. */
enum { MOST_UNDER_WAY = 64, MOST_PRODUCERS = 16, ID = CONFIG_NAME + 16 };

struct fleet_ap {
	char ap_id[ID];
	size_t ap_id_len;
	uint64_t boot_id, seq[OAL_N_TOPICS];
	uint64_t phase_us; /* after the first AP, always the same: times of an AP never go back */
	unsigned number;
	struct mac_key key;
};

struct under_way {
	struct restamp *batch;
	uint64_t made_us; /* monotonic */
	unsigned next; /* of the APs in the order of their phases */
	unsigned aps; /* how many there were when it was made */
};

struct fleet {
	struct fleet_options o;
	struct replay *replay;
	struct ap *real; /* the one AP that makes the batches */
	struct fleet_ap *aps; /* by phase */
	unsigned n; /* numbers below this take part */
	struct under_way under_way[MOST_UNDER_WAY];
	unsigned n_under_way;
	struct kafka_producer producers[MOST_PRODUCERS];
	struct kafka_events events;
	uint64_t now_us;
	struct fleet_counts counts;
	bool has_keys;
};

static void note(struct fleet *f, const char *text)
{
	f->counts.errors++;
	snprintf(f->counts.last_error, sizeof f->counts.last_error, "%.190s", text);
}

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *m, void *ctx)
{
	struct fleet *f = ctx;

	(void)rk;
	if (!m->err) {
		f->counts.delivered++;
		return;
	}
	f->counts.let_go++;
	if (m->err != RD_KAFKA_RESP_ERR__PURGE_QUEUE && m->err != RD_KAFKA_RESP_ERR__PURGE_INFLIGHT)
		note(f, rd_kafka_err2str(m->err));
}

static void on_error(rd_kafka_t *rk, int err, const char *reason, void *ctx)
{
	(void)rk;
	if (err != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN)
		note(ctx, reason);
}

/* --- the one AP */

static int open_ap(void *ctx, unsigned i, const struct pipeline_config *data_path, struct pipeline **out, char *err,
                   size_t err_size)
{
	static const struct ap_config watches_only = {.agent = NULL, .ceiling = OAL_POLICY_MODE_OFF};
	struct fleet *f = ctx;
	const int ret = ap_new(&f->real, data_path, &watches_only, err, err_size);

	if (!ret)
		*out = ap_pipeline(f->real);
	return ret;
}

static void on_batch(void *ctx, const char *ap_id, const struct batch_out *out)
{
	struct fleet *f = ctx;
	struct under_way *u = &f->under_way[f->n_under_way];

	(void)ap_id;
	if (f->n_under_way == MOST_UNDER_WAY || restamp_new(&u->batch, out->topic, out->bytes, out->len)) {
		f->counts.let_go += f->n; /* far behind, or no memory */
		return;
	}
	u->made_us = f->now_us;
	u->next = 0;
	u->aps = f->n;
	f->n_under_way++;
}

/* --- the fleet */

static void send_one(struct fleet *f, struct fleet_ap *ap, const struct restamp *batch)
{
	const int topic = restamp_topic(batch);
	const struct restamp_to to = {.ap_id = ap->ap_id,
				      .site = f->o.site,
				      .boot_id = ap->boot_id,
				      .seq = ap->seq[topic]++,
				      .shift_us = ap->phase_us};
	struct kafka_producer *p = &f->producers[ap->number % f->o.producers];
	const size_t room = restamp_room(batch);
	uint8_t *bytes = malloc(room);
	const size_t len = bytes ? restamp_write(batch, &to, bytes, room) : 0;
	uint8_t mac[MAC_HEADER_BYTES];
	rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR__QUEUE_FULL;

	if (len && f->o.dry) {
		if (f->has_keys)
			mac_header(mac, &ap->key, topic, bytes, len);
		free(bytes);
		f->counts.delivered++;
		err = RD_KAFKA_RESP_ERR_NO_ERROR;
	} else if (len) {
		err = kafka_producer_send(p, topic, ap->ap_id, ap->ap_id_len, bytes, len, f->has_keys ? &ap->key : NULL,
					  NULL);
	}
	if (err) {
		f->counts.let_go++;
		if (err != RD_KAFKA_RESP_ERR__QUEUE_FULL)
			note(f, rd_kafka_err2str(err));
		free(bytes);
		return;
	}
	f->counts.batches++;
	f->counts.rows += restamp_rows(batch);
	f->counts.bytes += len;
}

/* True: every AP has sent it. */
static bool send_due(struct fleet *f, struct under_way *u)
{
	for (; u->next < f->o.aps; u->next++) {
		struct fleet_ap *ap = &f->aps[u->next];
		const uint64_t due_us = u->made_us + ap->phase_us;

		if (due_us > f->now_us)
			return false;
		if (ap->number >= u->aps)
			continue;
		if (f->now_us - due_us > f->counts.late_max_us)
			f->counts.late_max_us = f->now_us - due_us;
		send_one(f, ap, u->batch);
	}
	return true;
}

void fleet_run(struct fleet *f, uint64_t realtime_us, uint64_t monotonic_us)
{
	unsigned kept = 0;

	f->now_us = monotonic_us;
	replay_advance(f->replay, realtime_us);
	for (unsigned i = 0; i < f->n_under_way; i++) {
		struct under_way *u = &f->under_way[i];

		if (send_due(f, u))
			restamp_free(u->batch);
		else
			f->under_way[kept++] = *u;
	}
	f->n_under_way = kept;
	for (unsigned i = 0; i < f->o.producers && !f->o.dry; i++)
		rd_kafka_poll(f->producers[i].rk, 0);
}

bool fleet_failed(const struct fleet *f, char *err, size_t err_size)
{
	for (unsigned i = 0; i < f->o.producers && !f->o.dry; i++)
		if (rd_kafka_fatal_error(f->producers[i].rk, err, err_size))
			return true;
	return false;
}

void fleet_grow(struct fleet *f, unsigned aps)
{
	f->n = aps < f->o.aps ? aps : f->o.aps;
}

unsigned fleet_aps(const struct fleet *f)
{
	return f->n;
}

void fleet_counts(struct fleet *f, struct fleet_counts *c)
{
	*c = f->counts;
	f->counts.late_max_us = 0;
}

/* --- begin and end */

static int by_phase(const void *a, const void *b)
{
	const struct fleet_ap *x = a, *y = b;

	return x->phase_us < y->phase_us ? -1 : x->phase_us > y->phase_us ? 1 : x->number < y->number ? -1 : 1;
}

static int make_aps(struct fleet *f, uint64_t boot_id, char *err, size_t err_size)
{
	struct master master;
	int ret = f->o.mac_masters ? master_read(&master, f->o.mac_masters, err, err_size) : 0;

	if (ret)
		return ret;
	f->has_keys = f->o.mac_masters;
	f->aps = calloc(f->o.aps, sizeof *f->aps);
	if (!f->aps) {
		snprintf(err, err_size, "out of memory for %u APs", f->o.aps);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < f->o.aps; i++) {
		struct fleet_ap *ap = &f->aps[i];
		uint8_t key[MAC_KEY_BYTES];

		config_virtual_ap(ap->ap_id, sizeof ap->ap_id, f->o.prefix, f->o.aps, i);
		ap->ap_id_len = strlen(ap->ap_id);
		ap->boot_id = boot_id + i;
		ap->number = i;
		/* Multiples of the golden ratio: evenly spread over a batch, however many APs there are. */
		ap->phase_us = (uint64_t)((uint32_t)(i * UINT32_C(2654435769))) * BATCH_US >> 32;
		if (!f->has_keys)
			continue;
		mac_key_derive(key, master.key, ap->ap_id, f->o.site);
		mac_key_begin(&ap->key, master.id, key);
	}
	qsort(f->aps, f->o.aps, sizeof *f->aps, by_phase);
	return 0;
}

int fleet_new(struct fleet **out, const struct fleet_options *o, char *err, size_t err_size)
{
	struct fleet *f = calloc(1, sizeof *f);
	struct replay_config r = {.path = o->capture,
				  .loop = true,
				  .aps = 1,
				  .ap_id = o->prefix,
				  .site = o->site,
				  .start_us = o->start_us,
				  .program = &oal_feature_congestion,
				  .version = OAL_VERSION,
				  .now_ns = clock_monotonic_ns,
				  .open_ap = open_ap,
				  .emit = on_batch,
				  .ctx = f};
	int ret;

	if (!f) {
		snprintf(err, err_size, "out of memory");
		return -ENOMEM;
	}
	f->o = *o;
	if (!f->o.producers || f->o.producers > MOST_PRODUCERS)
		f->o.producers = 1;
	f->events = (struct kafka_events){on_delivery, on_error, NULL, f, -1, MOST_MESSAGES};
	if (getrandom(&r.boot_id, sizeof r.boot_id, 0) != sizeof r.boot_id)
		r.boot_id = r.start_us;
	r.boot_id = r.boot_id >> 1 | 1;
	ret = make_aps(f, r.boot_id, err, err_size);
	ret = ret ? ret : replay_new(&f->replay, &r, err, err_size);
	for (unsigned i = 0; i < f->o.producers && !ret && !o->dry; i++)
		ret = kafka_producer_new(&f->producers[i], &f->o.config, &f->events, err, err_size);
	if (ret) {
		fleet_end(f, NULL);
		return ret;
	}
	fleet_grow(f, o->from ? o->from : o->aps);
	*out = f;
	return 0;
}

void fleet_end(struct fleet *f, struct fleet_counts *last)
{
	const uint64_t until_us = clock_monotonic_us() + (uint64_t)f->o.config.kafka.flush_ms * 1000;

	for (unsigned i = 0; i < f->o.producers; i++)
		if (f->producers[i].rk) {
			const uint64_t now_us = clock_monotonic_us();

			rd_kafka_flush(f->producers[i].rk, now_us < until_us ? (int)((until_us - now_us) / 1000) : 0);
			kafka_producer_free(&f->producers[i]);
		}
	if (last)
		*last = f->counts;
	ap_free(f->real); /* before the batches under way: its last one joins them */
	for (unsigned i = 0; i < f->n_under_way; i++)
		restamp_free(f->under_way[i].batch);
	replay_free(f->replay);
	free(f->aps);
	free(f);
}
