/* Backend `ovs`: a clamp is a flow with the action rewrite_rwnd in an Open vSwitch bridge. */
#include "rewrite/rwnd.h"

#include "openflow/openflow_actor.h"
#include "rewrite/rwnd_clamps.h"

/* "OALrwnd"; clamps of the way down have the next. */
#define COOKIE UINT64_C(0x4f414c72776e6400)

_Static_assert((int)RWND_DIRECTIONS <= (int)OPENFLOW_ACTOR_WAYS, "each way is counted by itself");

static struct openflow_trade trade_of(const struct config_rwnd *c)
{
	return (struct openflow_trade){
		.rundir = c->ovs_rundir,
		.bridge = c->bridge,
		.action = "rewrite_rwnd",
		.kind = OPENFLOW_CLAMP,
		.ways = RWND_DIRECTIONS,
		.cookie = COOKIE,
	};
}

static int check(const void *config, char *err, size_t err_size)
{
	const struct openflow_trade t = trade_of(config);

	return openflow_actor_check(&t, err, err_size);
}

static int open_backend(struct action *a, const void *config, char *err, size_t err_size)
{
	const struct openflow_trade t = trade_of(config);
	struct openflow_actor *o;
	const int ret = openflow_actor_open(&o, &t, err, err_size);

	if (!ret)
		a->self = o;
	return ret;
}

static struct openflow_rule rule_of(const struct rwnd_flow *f, uint16_t raw)
{
	const bool up = f->direction == RWND_UP;

	return (struct openflow_rule){
		.kind = OPENFLOW_CLAMP,
		.clamp = {
			.source = up ? f->client_addr : f->server_addr,
			.destination = up ? f->server_addr : f->client_addr,
			.addr_len = f->addr_len,
			.source_port = up ? f->client_port : f->server_port,
			.destination_port = up ? f->server_port : f->client_port,
			.raw = raw,
		},
	};
}

static int set(struct action *a, const void *key, uint64_t bytes, uint32_t ttl_ms)
{
	const struct rwnd_flow *f = key;
	const struct openflow_rule r = rule_of(f, rwnd_raw((uint32_t)bytes, rwnd_floor_bytes(f), f->scale));

	return openflow_actor_set(a->self, f->direction, &r, (uint16_t)ttl_ms);
}

static int release(struct action *a, const void *key)
{
	const struct rwnd_flow *f = key;
	const struct openflow_rule r = rule_of(f, 0);

	return openflow_actor_release(a->self, f->direction, &r);
}

static void release_all(struct action *a)
{
	openflow_actor_release_all(a->self);
}

static void poll_bridge(struct action *a, uint64_t now_us)
{
	openflow_actor_poll(a->self, now_us);
}

static void stats(struct action *a, struct action_stats *s)
{
	const struct openflow_actor *o = a->self;

	s->ready = openflow_actor_ready(o);
	s->errors += openflow_actor_errors(o);
	/* The datapath does not say which of them it changed. */
	s->down.packets_seen = openflow_actor_packets(o, RWND_DOWN);
	s->packets_seen = openflow_actor_packets(o, RWND_UP) + s->down.packets_seen;
}

static void json(struct action *a, struct json *j)
{
	openflow_actor_json(a->self, j);
}

static void close_backend(struct action *a)
{
	openflow_actor_close(a->self);
	a->self = NULL;
}

const struct action_ops rwnd_ovs = {
	.name = "ovs",
	.kind = OAL_ACTION_KIND_RWND,
	.id = OAL_REWRITE_BACKEND_OVS,
	.subject = "flow",
	.meet = rwnd_meet,
	.check = check,
	.open = open_backend,
	.set = set,
	.release = release,
	.release_all = release_all,
	.poll = poll_bridge,
	.stats = stats,
	.json = json,
	.close = close_backend,
};
