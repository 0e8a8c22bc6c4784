#include "agent/ap.h"

#include "agent/agent.h"
#include "agent/peers.h"
#include "base/clock.h"
#ifdef HAVE_CONGESTION
#include "destination/destinations.h"
#endif
#include "control/controller.h"
#include "control/decision.h"
#include "feature/feature_slot.h"
#include "model/inference.h"
#include "pipeline/pipeline.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

_Static_assert((int)PIPELINE_SLOTS == (int)CONTROLLER_POLICIES, "a policy has a slot and a place of control");

struct ap {
	struct agent *agent; /* NULL: nothing is predicted */
	struct pipeline *pipeline;
	/* One a policy, at the slot of its number; NULL without an agent. */
	struct inference *inferences[PIPELINE_SLOTS];
	struct controller *controller; /* NULL: no control */
	struct destinations *destinations; /* of a host; NULL: likewise */
	struct peers peers;
};

#ifdef HAVE_AGENT
static void begin_tick(void *ctx)
{
	struct ap *ap = ctx;
	unsigned i;

	if (!ap->agent)
		return;
	if (peers_tick(&ap->peers, ap->pipeline, clock_monotonic_ns))
		agent_wake(ap->agent);
	for (i = 0; i < PIPELINE_SLOTS; i++)
		decision_begin_tick(ap->pipeline, ap->inferences[i]);
}

static void features(void *ctx, unsigned slot, const struct feature_vector *x)
{
	struct ap *ap = ctx;

#ifdef OAL_HOST /* programs of access points see nothing here, and a verdict on nothing is none */
	(void)ap, (void)slot, (void)x;
#else
	if (ap->agent)
		decision_make(ap->pipeline, ap->inferences[slot], x);
#endif
}

#ifdef HAVE_CONGESTION
static void session(void *ctx, const struct sender_flow *flow, const struct oal_sender_session_row *row, uint64_t t_us)
{
	struct ap *ap = ctx;

	if (ap->destinations)
		destinations_session(ap->destinations, flow, row, t_us);
}

static int open_destinations(struct ap *ap, const struct pipeline_config *p, const struct ap_config *c, char *err,
			     size_t err_size)
{
	struct destinations_config config = {
		.pipeline = ap->pipeline,
		.ceiling = c->congestion_ceiling,
		.kill_file = c->congestion_kill_file,
		.monotonic_ns = clock_monotonic_ns,
	};
	int ret;

	memcpy(config.inferences, ap->inferences, sizeof config.inferences);
	if (getrandom(&config.seed, sizeof config.seed, 0) != sizeof config.seed)
		config.seed = clock_realtime_us();
	ret = destinations_new(&ap->destinations, &config);
	if (ret)
		snprintf(err, err_size, "out of memory for the choices of %s", p->ap_id);
	return ret;
}
#endif

static void end_tick(void *ctx, uint64_t t_us)
{
	struct ap *ap = ctx;

	if (ap->controller)
		controller_tick(ap->controller, t_us);
#ifdef HAVE_CONGESTION
	if (ap->destinations)
		destinations_tick(ap->destinations);
#endif
}

static int open_inferences(struct ap *ap, const struct pipeline_config *p, char *err, size_t err_size)
{
	struct feature_space spaces[OAL_N_TABLES];
	struct inference_config c = {
		.spaces = spaces,
		.now_ns = clock_monotonic_ns,
		.wake = agent_wake,
		.ctx = ap->agent,
	};
	unsigned i;

	pipeline_feature_spaces(ap->pipeline, spaces);
	for (i = 0; i < PIPELINE_SLOTS; i++) {
		c.slot = pipeline_slot(ap->pipeline, i);
		ap->inferences[i] = inference_new(&c);
		if (!ap->inferences[i]) {
			snprintf(err, err_size, "out of memory for the predictions of %s", p->ap_id);
			return -ENOMEM;
		}
	}
	peers_init(&ap->peers);
	return agent_add(ap->agent, p->ap_id, p->boot_id, ap->inferences, &ap->peers, err, err_size);
}

static int open_controller(struct ap *ap, const struct pipeline_config *p, const struct ap_config *c, char *err,
                           size_t err_size)
{
	struct controller_config config = {
		.pipeline = ap->pipeline,
		.ceiling = c->ceiling,
		.kill_file = c->kill_file,
		.mark_ceiling = c->mark_ceiling,
		.mark_kill_file = c->mark_kill_file,
		.monotonic_ns = clock_monotonic_ns,
	};
	int ret;

	memcpy(config.inferences, ap->inferences, sizeof config.inferences);
	ret = controller_new(&ap->controller, &config);
	if (ret)
		snprintf(err, err_size, "cannot make the controller of %s for %u flows: %s", p->ap_id, p->max_flows,
		         strerror(-ret));
	return ret;
}

/* What makes the data path predict, and act. */
static int open_policies(struct ap *ap, const struct pipeline_config *p, const struct ap_config *c, char *err,
                         size_t err_size)
{
	int ret = ap->agent ? open_inferences(ap, p, err, err_size) : 0;

	if (!ret && ap->agent && (c->ceiling != OAL_POLICY_MODE_OFF || c->mark_ceiling != OAL_POLICY_MODE_OFF))
		ret = open_controller(ap, p, c, err, err_size);
#ifdef HAVE_CONGESTION
	if (!ret && ap->agent && c->congestion_ceiling != OAL_POLICY_MODE_OFF)
		ret = open_destinations(ap, p, c, err, err_size);
#endif
	return ret;
}

static void close_policies(struct ap *ap)
{
	unsigned i;

	for (i = 0; i < PIPELINE_SLOTS; i++)
		inference_free(ap->inferences[i]);
}

static struct pipeline_consumer consumer(struct ap *ap)
{
	return (struct pipeline_consumer){
		.begin_tick = begin_tick,
		.features = features,
#ifdef HAVE_CONGESTION
		.session = session,
#endif
		.end_tick = end_tick,
		.ctx = ap,
	};
}
#else /* nothing predicts: no bundle, no control */
static int open_policies(struct ap *ap, const struct pipeline_config *p, const struct ap_config *c, char *err,
                         size_t err_size)
{
	return 0;
}
static void close_policies(struct ap *ap) {}
static struct pipeline_consumer consumer(struct ap *ap)
{
	return (struct pipeline_consumer){.ctx = ap};
}
#endif

int ap_new(struct ap **out, const struct pipeline_config *data_path, const struct ap_config *c, char *err,
           size_t err_size)
{
	struct ap *ap = calloc(1, sizeof *ap);
	struct pipeline_config p = *data_path;
	int ret;

	if (!ap) {
		snprintf(err, err_size, "out of memory for %s", p.ap_id);
		return -ENOMEM;
	}
	ap->agent = c->agent;
	p.consumer = consumer(ap);
	ret = pipeline_new(&ap->pipeline, &p);
	if (ret)
		snprintf(err, err_size, "cannot make the pipeline of %s for %u stations and %u flows: %s", p.ap_id,
		         p.max_stations, p.max_flows, strerror(-ret));
	if (!ret)
		ret = open_policies(ap, &p, c, err, err_size);
	if (ret) {
		ap_free(ap);
		return ret;
	}
	*out = ap;
	return 0;
}

void ap_free(struct ap *ap)
{
	if (!ap)
		return;
	controller_free(ap->controller);
	ap->controller = NULL;
#if defined HAVE_AGENT && defined HAVE_CONGESTION
	destinations_free(ap->destinations);
	ap->destinations = NULL;
#endif
	if (ap->pipeline)
		pipeline_flush(ap->pipeline); /* its last decisions are still made */
	close_policies(ap);
	pipeline_free(ap->pipeline);
	free(ap);
}

struct pipeline *ap_pipeline(const struct ap *ap)
{
	return ap->pipeline;
}

struct controller *ap_controller(const struct ap *ap)
{
	return ap->controller;
}

struct destinations *ap_destinations(const struct ap *ap)
{
	return ap->destinations;
}

void ap_rwnd(struct ap *ap, struct rwnd *rwnd)
{
	if (ap->controller)
		controller_rwnd(ap->controller, rwnd);
}

void ap_mark(struct ap *ap, struct mark *mark)
{
	if (ap->controller)
		controller_mark(ap->controller, mark);
}
